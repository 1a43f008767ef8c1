// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/lullhq/lull/internal/terminal"
)

// consent is the user's agreement to a change that cannot be undone, by --yes or by an answer in
// the terminal.
type consent struct{ yes bool }

func (k *consent) flag() option {
	return flag("yes,y", &k.yes, "do not ask: for scripts, which have no terminal")
}

// check returns an error if the question cannot be asked, before anything is read or changed.
func (k *consent) check(std *streams, what string) error {
	if _, can := tty(std.in); !k.yes && !can {
		return usagef("%s cannot be undone, and without a terminal lull cannot ask: give --yes", what)
	}
	return nil
}

var errDeclined = errors.New("nothing was changed")

// ask asks the question, unless --yes has answered it.
func (k *consent) ask(ctx context.Context, std *streams, question string) error {
	if k.yes {
		return nil
	}
	terminal.Printf(std.err, "%s [y/N] ", terminal.Styled{Style: terminal.Bold, Text: question})
	answers := make(chan string, 1)
	go func() { answers <- readLine(std.in) }() // without an answer, this goroutine ends with the process
	select {
	case <-ctx.Done():
		return ctx.Err()
	case answer := <-answers:
		switch strings.ToLower(strings.TrimSpace(answer)) {
		case "y", "yes":
			return nil
		}
		return &exitError{exitFailed, errDeclined}
	}
}

// readLine reads one line and nothing after it, up to a length that is enough for any answer.
func readLine(in io.Reader) string {
	var line []byte
	for b := make([]byte, 1); len(line) < 100; line = append(line, b[0]) {
		if n, err := in.Read(b); n == 0 && err != nil || n == 1 && b[0] == '\n' {
			break
		}
	}
	return string(line)
}
