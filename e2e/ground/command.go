// SPDX-License-Identifier: Apache-2.0

package ground

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// Answer is the output and the exit code of a command.
type Answer struct {
	Code        int
	Out, Errors string
}

// Lull runs the command line against the stack.
func (s *Stack) Lull(t testing.TB, args ...string) Answer {
	t.Helper()
	return s.LullAs(t, nil, "", args...)
}

// Says runs the command line, and fails the test unless the program exits with this code and prints
// this text.
func (s *Stack) Says(t testing.TB, code int, text string, args ...string) {
	t.Helper()
	s.SaysTo(t, nil, "", code, text, args...)
}

// SaysTo is Says with other credentials and with a standard input. If who is nil, the command has
// the credentials of the account's owner.
func (s *Stack) SaysTo(t testing.TB, who Who, input string, code int, text string, args ...string) {
	t.Helper()
	a := s.LullAs(t, who, input, args...)
	if a.Code != code || !strings.Contains(a.Out+a.Errors, text) {
		t.Errorf("lull %s: exit %d, want %d and %q; it says\n%s%s", strings.Join(args, " "), a.Code, code, text, a.Out,
			a.Errors)
	}
}

// Who is the credentials with which a command runs, as environment variables.
type Who []string

// Role returns credentials of one of the stack's roles for operators.
func (s *Stack) Role(t testing.TB, what string) Who {
	t.Helper()
	role := "arn:aws:iam::" + s.AccountID + ":role/" + s.Names.Role(what, s.Account.Region)
	answer, err := s.Query(t.Context(), "sts", "2011-06-15", "AssumeRole",
		url.Values{"RoleArn": {role}, "RoleSessionName": {"e2e"}})
	Must(t, err)
	return Who{
		"AWS_ACCESS_KEY_ID=" + elementText(answer, "AccessKeyId"),
		"AWS_SECRET_ACCESS_KEY=" + elementText(answer, "SecretAccessKey"),
		"AWS_SESSION_TOKEN=" + elementText(answer, "SessionToken"),
	}
}

// LullAs is Lull with other credentials and with a standard input. If who is nil, the command has
// the credentials of the account's owner.
func (s *Stack) LullAs(t testing.TB, who Who, input string, args ...string) Answer {
	t.Helper()
	a, err := s.Command(t.Context(), who, input, args...)
	if err != nil {
		t.Fatalf("lull %s: %v", strings.Join(args, " "), err)
	}
	return a
}

// Command is LullAs for code that is not a test. The error is nil whatever the exit code is.
func (s *Stack) Command(ctx context.Context, who Who, input string, args ...string) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(s.Work, "lull"),
		append([]string{"--aws", "--config", s.settings}, args...)...)
	cmd.Env, cmd.Stdin = append(os.Environ(), who...), strings.NewReader(input)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return Answer{}, err
	}
	return Answer{cmd.ProcessState.ExitCode(), out.String(), errs.String()}, nil
}

// JSON runs the command line with -o json and decodes the answer. It fails the test if the command
// fails.
func (s *Stack) JSON(t testing.TB, into any, args ...string) {
	t.Helper()
	a := s.Lull(t, append(args, "-o", "json")...)
	if a.Code != 0 && !(a.Code == 3 && args[0] == "explain") { // explain exits with 3 for a dead letter
		t.Fatalf("lull %s: exit %d: %s", strings.Join(args, " "), a.Code, a.Errors)
	}
	if err := json.Unmarshal([]byte(a.Out), into); err != nil {
		t.Fatalf("lull %s: %v in %s", strings.Join(args, " "), err, a.Out)
	}
}

// File writes a file for the command line, and returns the path of the file.
func File(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	Must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// SameBody reports whether a parked body equals the sent body, byte for byte. On servers that
// run.sh did not start, it compares the JSON values. The official image of LocalStack decodes a
// body and encodes it again before it invokes a function, but AWS does not.
func (s *Stack) SameBody(got, sent string) bool {
	if got == sent || s.ours {
		return got == sent
	}
	var a, b any
	return json.Unmarshal([]byte(got), &a) == nil && json.Unmarshal([]byte(sent), &b) == nil && reflect.DeepEqual(a, b)
}
