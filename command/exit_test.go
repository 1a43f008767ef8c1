// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/operator/operate/operatetest"
	"github.com/lullhq/lull/internal/operator/rebuild"
	"github.com/lullhq/lull/internal/operator/replay"
	"github.com/lullhq/lull/internal/pipeline/redrive"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/shard"
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

// The help names only codes of the table. Each command has the codes for success, failure and wrong
// usage.
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

// calm is a stack in which every request succeeds.
type calm struct{ hostile }

func (calm) Object(context.Context, operate.ObjectOrder) (operate.ObjectResult, error) {
	return operate.ObjectResult{Sinks: []operate.ObjectProgress{{Sink: "search"}}}, nil
}

func (calm) Unsearchable(context.Context, operate.UnsearchableQuery) (operate.Unsearchable, error) {
	return operate.Unsearchable{}, nil
}

func (calm) Rebuild(_ context.Context, o operate.RebuildOrder) (operate.RebuildStep, error) {
	return operate.RebuildStep{Sink: "search", Next: rebuild.Cursor{Progress: rebuild.Progress{Phase: rebuild.Done}}, Done: o.From != nil}, nil
}

// refusing is a stack that does a part of each request, refuses the rest, and has a dead letter.
type refusing struct{ calm }

func (refusing) Publish(context.Context, operate.Publication) (operate.Published, error) {
	return operate.Published{Refused: []operate.Refusal{{Why: "it is too large"}}}, nil
}

func (r refusing) Rebuild(ctx context.Context, o operate.RebuildOrder) (operate.RebuildStep, error) {
	step, err := r.calm.Rebuild(ctx, o)
	step.Next.Left = 1
	return step, err
}

func (refusing) Backfill(context.Context, operate.BackfillOrder) (operate.BackfillStep, error) {
	return operate.BackfillStep{Outcomes: map[string]int{operate.Copied: 1, operate.Failed: 1}}, nil
}

func (refusing) Replay(context.Context, operate.ReplayOrder) (operate.ReplayStep, error) {
	return operate.ReplayStep{Messages: 1, Events: map[replay.Outcome]int{replay.Refused: 1}}, nil
}

func (refusing) Redrive(context.Context, operate.LetterOrder) (operate.LetterResult, error) {
	return operate.LetterResult{Outcomes: map[string]int{string(redrive.Sent): 1, operate.Failed: 1}}, nil
}

func (r refusing) Drop(ctx context.Context, o operate.LetterOrder) (operate.LetterResult, error) {
	return r.Redrive(ctx, o)
}

func (refusing) Explain(context.Context, shard.DocID) (operate.Explanation, error) {
	return operate.Explanation{
		Known: true, State: operate.StateDead, Letters: []operate.Letter{{Version: "1", State: deadletter.Parked}},
	}, nil
}

// left is a stack in which something remains.
type left struct{ calm }

func (left) Forget(context.Context, operate.ForgetOrder) (operate.ForgetStep, error) {
	return operate.ForgetStep{Counts: map[string]int{"dead letters found": 1}}, nil
}

func (left) Explain(context.Context, shard.DocID) (operate.Explanation, error) {
	return operate.Explanation{Known: true, State: operate.StateBlocked}, nil
}

// full is a writer that fails as on a full disk.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("the disk is full") }

// walk runs commands, and records the exit codes that each command reached.
type walk struct {
	*testing.T

	reached map[string][]exitCode
}

// end runs a command, and wants this exit code.
func (w walk) end(code exitCode, in string, args ...string) {
	w.Helper()
	w.is(code, lull(w.T, in, args...).code, args...)
}

func (w walk) is(code, got exitCode, args ...string) {
	w.Helper()
	if got != code {
		w.Errorf("%v: exit %d, want %d", args, got, code)
	}
	c, _, err := tree().Find(args)
	if err != nil {
		w.Fatal(err)
	}
	w.reached[c.CommandPath()] = append(w.reached[c.CommandPath()], got)
}

// Each command reaches each exit code that its help names.
func TestEachCommandReachesItsEnds(t *testing.T) {
	t.Parallel()
	w := walk{t, map[string][]exitCode{}}
	w.flags()
	w.stacks()
	w.documents()
	w.programs()
	w.outputs()
	w.interrupted()
	for _, c := range commands(tree()) {
		if c.HasSubCommands() && c.Name() != "rebuild" && c.Name() != "jobs" {
			continue
		}
		for _, code := range endsOf(c) {
			reached := slices.Contains(w.reached[c.CommandPath()], code)
			if why := elsewhere[fmt.Sprint(c.CommandPath(), " ", code)]; reached == (why != "") {
				t.Errorf("%s: reached code %d: %t (%s)", c.CommandPath(), code, reached, why)
			}
		}
	}
}

// elsewhere says why TestEachCommandReachesItsEnds does not reach an exit code of a command. A key
// is the path of the command and the exit code.
var elsewhere = map[string]string{
	"lull console 1": "it needs a listener that breaks while it serves",
}

// flags gives each command a flag that it does not have.
func (w walk) flags() {
	for _, c := range commands(tree()) {
		w.end(exitUsage, "", append(strings.Fields(c.CommandPath())[1:], "--no-such-flag")...)
	}
}

// stacks asks stacks that all give the same answer.
func (w walk) stacks() {
	args := argsOf(w.T)
	args["resync"] = []string{write(w.T, put("a", "1", "{}"))}
	serve := func(stack any) string {
		server := httptest.NewServer(operate.Handler(operatetest.API(operate.API{}, stack)))
		w.Cleanup(server.Close)
		return server.URL
	}
	settings := filepath.Join(w.TempDir(), "settings.json")
	if err := os.WriteFile(settings, []byte("{}"), 0o600); err != nil {
		w.Fatal(err)
	}
	does := calm{hostile{tame: true}}
	for code, url := range map[exitCode]string{
		exitOK: serve(does), exitFailed: serve(hostile{err: errors.New("the table is away")}),
		exitRefused: serve(refusing{does}), exitMissing: serve(hostile{err: operate.ErrNotFound}),
		exitWrong: serve(left{does}),
	} {
		for _, c := range commands(tree()) {
			name := strings.TrimPrefix(c.CommandPath(), "lull ")
			if c.Annotations[alone] != "" || c.HasSubCommands() && args[name] == nil && name != "jobs" ||
				!slices.Contains(endsOf(c), code) || asksOthers[name] ||
				asksAll[name] && (code == exitOK || code >= exitMissing) {
				continue
			}
			line := slices.Concat(strings.Fields(name), args[name], []string{"--dev", url})
			if name == "rebuild" && code == exitRefused { // a dry run leaves nothing out
				line = []string{name, "content", "--settings", settings, "--dev", url}
			}
			w.end(code, put("a", "1", "{}"), line...)
		}
	}
}

// asksOthers lists the commands that talk to sinks, to brokers or to AWS.
var asksOthers = map[string]bool{"index install-template": true, "console": true, "bridge rabbitmq": true, "bridge postgres": true}

// asksAll lists the commands whose exit codes depend on several answers. They are tested with a
// real stack.
var asksAll = map[string]bool{
	"wait": true, "explain": true, "doctor": true, "index check": true, "index repair": true,
}

// documents runs commands about documents against real stacks.
func (w walk) documents() {
	s, drifted := settled(w.T, "--events", write(w.T, put("a", "1", "{}")), "--speed", "100"), putBack(w.T)
	blocked := httptest.NewServer(operate.Handler(operatetest.API(operate.API{}, left{calm{hostile{tame: true}}})))
	w.Cleanup(blocked.Close)
	for _, ask := range []struct {
		url  string
		code exitCode
		line string
	}{
		{s.url, exitOK, "wait content#a --version 1"},
		{s.url, exitMissing, "wait content#b --version 1 --timeout 1ms"},
		{s.url, exitOK, "explain content#a"},
		{s.url, exitMissing, "explain content#b"},
		{blocked.URL, exitWrong, "explain content#a"},
		{s.url, exitOK, "index check content"},
		{s.url, exitMissing, "index check contents"},
		{drifted.url, exitWrong, "index check content"},
		{s.url, exitOK, "index repair content"},
		{s.url, exitMissing, "index repair contents"},
		{drifted.url, exitWrong, "index repair content"}, // documents that the sink has lost are only named
		{s.url, exitOK, "doctor"},
	} {
		w.end(ask.code, "", append(strings.Fields(ask.line), "--dev", ask.url)...)
	}
}

// programs runs the commands that ask no stack.
func (w walk) programs() {
	folder, good := w.TempDir(), put("a", "1", "{}")
	loop := filepath.Join(folder, "loop")
	if err := os.Symlink(loop+".missing", loop); err != nil {
		w.Fatal(err)
	}
	bad := write(w.T, good, "not JSON")
	older, newer := write(w.T, "sinks: {search: {kind: bleve}}"), write(w.T, "{stack: other, sinks: {search: {kind: bleve}}}")
	var engine templates
	prepared := write(w.T, "sinks: {search: {kind: opensearch, index: 'k-{collection}', url: '"+engine.start(w.T)+"'}}")
	away := write(w.T, "sinks: {search: {kind: opensearch, index: 'k-{collection}', url: 'http://127.0.0.1:1'}}")
	play := []string{"--exit-when-idle", "--speed", "100", "--events"}
	for _, run := range []struct {
		code exitCode
		args []string
	}{
		{exitOK, append([]string{"dev"}, append(play, write(w.T, good))...)},
		{exitFailed, append([]string{"dev"}, append(play, write(w.T, `{"after_ms":-1,"body":{}}`))...)},
		{exitRefused, append([]string{"dev"}, append(play, bad)...)},
		{exitOK, []string{"new", filepath.Join(folder, "new")}},
		{exitFailed, []string{"new", loop}},
		{exitOK, []string{"cost"}},
		{exitOK, []string{"simulate", "--events", write(w.T, good), "--pollers", "1"}},
		{exitFailed, []string{"simulate", "--events", write(w.T, `{"Service":"Amazon S3","Event":"s3:TestEvent"}`), "--config", write(w.T, "{sources: {media: {kind: s3}}, defaultSource: media}")}},
		{exitRefused, []string{"simulate", "--events", bad, "--pollers", "1"}},
		{exitOK, []string{"config", "check", older}},
		{exitRefused, []string{"config", "check", older, "--message", bad}},
		{exitOK, []string{"config", "show", older}},
		{exitOK, []string{"config", "schema"}},
		{exitOK, []string{"config", "diff", older, older}},
		{exitWrong, []string{"config", "diff", older, newer}},
		{exitOK, []string{"index", "install-template", "--config", prepared}},
		{exitFailed, []string{"index", "install-template", "--config", away}},
		{exitOK, []string{"completion", "bash"}},
		{exitOK, []string{"version"}},
		{exitOK, []string{"bridge", "postgres", "setup", "articles"}},
	} {
		w.end(run.code, "", run.args...)
	}
	console := newAccount(w.T, nil).console(w.T)
	w.is(exitOK, console.end(), "console")
}

// outputs runs commands whose answers cannot be written.
func (w walk) outputs() {
	settings := write(w.T, "sinks: {search: {kind: bleve}}")
	for _, args := range [][]string{
		{"config", "check", settings},
		{"config", "show", settings},
		{"config", "schema"},
		{"config", "diff", settings, settings},
		{"completion", "bash"},
		{"version"},
		{"bridge", "postgres", "setup", "articles"},
	} {
		var errs bytes.Buffer
		w.is(exitFailed, newApp(strings.NewReader(""), full{}, &errs).run(w.Context(), args), args...)
	}
}

// interrupted runs commands that Ctrl-C ends.
func (w walk) interrupted() {
	s := start(w.T, strings.NewReader(put("a", "1", "{}")), "--events", "-", "-v", "--quiet", "10s")
	s.out.await(w.T, `HOLD +content#a v1`)
	w.is(exitWrong, s.stopped().code, "dev")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.Fatal(err)
	}
	defer taken.Close()
	bridge := []string{"bridge", "rabbitmq", "--url", "amqp://127.0.0.1:1/", "--queue", "q", "--dev", "http://127.0.0.1:1"}
	w.end(exitFailed, "", append(bridge, "--listen", taken.Addr().String())...)
	rows := []string{"bridge", "postgres", "--url", "postgres://127.0.0.1:1/", "--dev", "http://127.0.0.1:1"}
	w.end(exitFailed, "", append(rows, "--listen", taken.Addr().String())...)
	ctx, cancel := context.WithCancel(w.Context())
	cancel()
	for _, end := range []struct {
		code exitCode
		args []string
	}{{exitOK, bridge}, {exitOK, rows}, {exitFailed, []string{"cost"}}} {
		var out, errs bytes.Buffer
		w.is(end.code, newApp(strings.NewReader(""), &out, &errs).run(ctx, end.args), end.args...)
	}
}
