package ground

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Answer is what the command line said.
type Answer struct {
	Code        int
	Out, Errors string
}

// Lull runs the command line against the stack.
func (s *Stack) Lull(t testing.TB, args ...string) Answer {
	t.Helper()
	return s.LullWith(t, "", args...)
}

// LullWith is Lull with something on its standard input.
func (s *Stack) LullWith(t testing.TB, input string, args ...string) Answer {
	t.Helper()
	return s.run(t, input, nil, args...)
}

// Who is somebody who runs the command line: credentials, as variables.
type Who []string

// Role is somebody who has assumed one of the stack's roles for operators.
func (s *Stack) Role(t testing.TB, what string) Who {
	t.Helper()
	as, err := s.As(t.Context(), s.Names.Role(what, s.Account.Region))
	if err != nil {
		t.Fatal(err)
	}
	keys, err := as.Credentials.Retrieve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return Who{
		"AWS_ACCESS_KEY_ID=" + keys.AccessKeyID, "AWS_SECRET_ACCESS_KEY=" + keys.SecretAccessKey,
		"AWS_SESSION_TOKEN=" + keys.SessionToken,
	}
}

// LullAs is LullWith by somebody else.
func (s *Stack) LullAs(t testing.TB, who Who, input string, args ...string) Answer {
	t.Helper()
	return s.run(t, input, who, args...)
}

func (s *Stack) run(t testing.TB, input string, who Who, args ...string) Answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(s.work, "lull"),
		append([]string{"--aws", "--settings", s.settings}, args...)...)
	cmd.Env, cmd.Stdin = append(os.Environ(), who...), strings.NewReader(input)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("lull %s: %v", strings.Join(args, " "), err)
	}
	return Answer{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// JSON runs the command line with -o json and decodes its answer; it has to succeed.
func (s *Stack) JSON(t testing.TB, into any, args ...string) {
	t.Helper()
	a := s.Lull(t, append(args, "-o", "json")...)
	if a.Code != 0 {
		t.Fatalf("lull %s: exit %d: %s", strings.Join(args, " "), a.Code, a.Errors)
	}
	if err := json.Unmarshal([]byte(a.Out), into); err != nil {
		t.Fatalf("lull %s: %v in %s", strings.Join(args, " "), err, a.Out)
	}
}
