// SPDX-License-Identifier: Apache-2.0

package command

import "fmt"

// exitCode says how a command ended. A script reads it. A code means the same in every command.
type exitCode int

// The exit codes of every command.
const (
	exitOK      exitCode = 0
	exitFailed  exitCode = 1
	exitUsage   exitCode = 2
	exitRefused exitCode = 3
	exitMissing exitCode = 4
	exitWrong   exitCode = 5
)

// exitCodes is the table of all exit codes, as docs/cli.md shows it.
var exitCodes = [...]string{
	exitOK:      "done",
	exitFailed:  "failed: something stopped it",
	exitUsage:   "wrong usage or settings: nothing was read or changed",
	exitRefused: "done, with dead letters or refusals",
	exitMissing: "not found, or timed out",
	exitWrong:   "differences or work remain",
}

// ends says what the exit codes mean for one command. The command ends only with these codes.
type ends map[exitCode]string

// exitError carries an exit code. If err is nil, nothing more is printed.
type exitError struct {
	code exitCode
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

func usage(err error) error { return &exitError{exitUsage, err} }

func usagef(format string, args ...any) error { return usage(fmt.Errorf(format, args...)) }
