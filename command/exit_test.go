package command

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/lullhq/lull/internal/operator/operate"
)

// endsOf returns the exit codes that the help of a command names.
func endsOf(c *cobra.Command) (codes []exitCode) {
	_, text, _ := strings.Cut(c.Long, "\nExit codes:\n")
	for line := range strings.Lines(text) {
		var code exitCode
		if _, err := fmt.Sscanf(line, "  %d  ", &code); err == nil {
			codes = append(codes, code)
		}
	}
	return codes
}

// The help names codes of the table only, and each command can end well, fail and refuse its flags.
func TestTheHelpOfEachCommandNamesItsEnds(t *testing.T) {
	t.Parallel()
	for _, c := range commands(tree()) {
		codes := endsOf(c)
		for _, code := range codes {
			if int(code) >= len(exitCodes) {
				t.Errorf("%s: code %d is not in the table", c.CommandPath(), code)
			}
		}
		for _, code := range []exitCode{exitOK, exitFailed, exitUsage} {
			if !c.HasSubCommands() && !slices.Contains(codes, code) {
				t.Errorf("%s: the help does not name code %d", c.CommandPath(), code)
			}
		}
	}
}

// Each command ends with the same code for the same reason: a flag that does not exist, a stack
// that fails, and a thing that is not there.
func TestTheSameReasonIsTheSameCode(t *testing.T) {
	t.Parallel()
	args := argsOf(t)
	args["resync"] = []string{write(t, put("a", "1", "{}"))}
	stacks := map[exitCode]string{}
	for code, err := range map[exitCode]error{
		exitFailed: errors.New("the table is away"), exitMissing: operate.ErrNotFound,
	} {
		server := httptest.NewServer(operate.Handler(hostile{err: err}))
		t.Cleanup(server.Close)
		stacks[code] = server.URL
	}
	for _, c := range commands(tree()) {
		if c.HasSubCommands() {
			continue
		}
		name := strings.TrimPrefix(c.CommandPath(), "lull ")
		lull(t, "", append(strings.Fields(name), "--no-such-flag")...).want(t, name, exitUsage, "no-such-flag")
		if c.Annotations[alone] != "" || asksNoStack[name] {
			continue
		}
		for code, url := range stacks {
			if !slices.Contains(endsOf(c), code) || code == exitMissing && anotherMissing[name] {
				continue
			}
			line := slices.Concat(strings.Fields(name), args[name], []string{"--dev", url})
			lull(t, put("a", "1", "{}"), line...).want(t, strings.Join(line, " "), code)
		}
	}
}

// asksNoStack lists commands that talk to sinks, to brokers or to AWS.
var asksNoStack = map[string]bool{"index install-template": true, "console": true, "bridge rabbitmq": true}

// anotherMissing lists commands to which an answer says what is missing.
var anotherMissing = map[string]bool{"wait": true, "explain": true}
