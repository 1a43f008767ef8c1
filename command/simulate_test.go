// SPDX-License-Identifier: Apache-2.0

package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/simulation/sim"
)

// simulated runs `lull simulate` and returns what it printed and its report.
func simulated(t *testing.T, args ...string) (string, sim.Summary) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.json")
	a := lull(t, "", append([]string{"simulate", "--report", file}, args...)...)
	a.want(t, strings.Join(args, " "), exitOK)
	s := decode[sim.Summary](t, contents(t, file))
	return a.out, s
}

func TestSimulateShowsWhatABurstCosts(t *testing.T) {
	t.Parallel()
	events := write(t,
		`{"after_ms":0,"body":`+put("a", "1", `{"title":"one"}`)+`}`,
		`{"after_ms":700,"body":`+put("a", "3", `{"title":"three"}`)+`}`,
		`{"after_ms":900,"body":`+put("a", "2", `{"title":"two"}`)+`}`)
	out, s := simulated(t, "--events", events, "--pollers", "1")
	if s.Counts.Events != 3 || s.Counts.Applied != 1 || s.Freshness.Count != 1 {
		t.Errorf("%d events, %d sink writes, %d versions written, want 3, 1 and 1", s.Counts.Events, s.Counts.Applied,
			s.Freshness.Count)
	}
	if s.Freshness.Max < 5000 || s.Freshness.Max > 8000 {
		t.Errorf("freshness %d ms, want between quiet and quiet + window + 1 s", s.Freshness.Max)
	}
	if s.Bill.PerMillion <= 0 {
		t.Error("a burst costs nothing")
	}
	if !strings.Contains(out, "every promise held") {
		t.Errorf("printed %q", out)
	}
}

func TestSimulateGivesTheSameRunForTheSameSeed(t *testing.T) {
	t.Parallel()
	out, one := simulated(t, "--faults", "swarm", "--seed", "11")
	again, two := simulated(t, "--faults", "swarm", "--seed", "11")
	if one.Trace != two.Trace || out != again {
		t.Errorf("traces %s and %s, printed\n%s\nand\n%s", one.Trace, two.Trace, out, again)
	}
	if _, other := simulated(t, "--faults", "swarm", "--seed", "12"); other.Trace == one.Trace {
		t.Error("another seed gave the same trace")
	}
}

// An outage on demand: what waited is written, once the sink is back and by what it takes, and
// there is a picture of it.
func TestSimulateDrawsAnOutage(t *testing.T) {
	t.Parallel()
	svg := filepath.Join(t.TempDir(), "outage.svg")
	out, s := simulated(t, "--load", "5", "--for", "15m", "--sink-down", "3m-8m", "--sink-takes", "20", "--pollers",
		"1", "--plot", svg)
	if s.Freshness.Max < 5*60*1000 || s.Counts.Events < 4000 || !strings.Contains(out, "every promise held") {
		t.Errorf("the oldest of %d events written after %d ms: the sink was away for five minutes\n%s", s.Counts.Events,
			s.Freshness.Max, out)
	}
	picture := contents(t, svg)
	for _, text := range []string{"<svg", "Requests to the sink", "the rate of the sink: 20", "</svg>"} {
		if !strings.Contains(picture, text) {
			t.Errorf("the picture lacks %q", text)
		}
	}
}

// A burst is one write, whatever the size of it.
func TestSimulateWritesABurstOnce(t *testing.T) {
	t.Parallel()
	_, s := simulated(t, "--load", "4", "--for", "5m", "--burst", "8", "--documents", "100000")
	if events, writes := s.Counts.Events, s.Counts.Applied; events < 800 || writes*8 > int64(events) {
		t.Errorf("%d writes for %d events in bursts of 8", writes, events)
	}
}

func TestSimulateRefusesWhatItCannotRun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		args []string
		says string
	}{
		{"faults", []string{"--faults", "some"}, "none, standard or swarm"},
		{"pollers", []string{"--pollers", "0"}, "at least 1"},
		{"events", []string{"--events", "there-is-no-such-file.ndjson"}, "there-is-no-such-file"},
		{"source", []string{"--source", "telepathy"}, "telepathy"},
		{"load and events", []string{"--load", "5", "--events", "-"}, "leave out --events"},
		{"load", []string{"--load", "5", "--burst", "0", "--documents", "0"}, "--documents 0"},
		{"negative load", []string{"--load", "-5"}, "--load -5"},
		{"an outage that ends before it begins", []string{"--load", "5", "--sink-down", "20m-10m"}, "FROM-TO"},
		{"an outage without an end", []string{"--load", "5", "--sink-down", "20m"}, "FROM-TO"},
		{"an outage beyond the end", []string{"--load", "5", "--for", "30m", "--sink-down", "20m-40m"}, "30m"},
		{
			"a sink that throttles in its own way",
			[]string{"--sink-throttles", "politely"},
			"bucket, queue, random, late or drift",
		},
		{"a sink that takes less than nothing", []string{"--sink-takes", "-1"}, "--sink-takes -1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			lull(t, "", append([]string{"simulate"}, c.args...)...).want(t, c.name, exitUsage, c.says)
		})
	}
}

// Generated load has the form of the configured sources, whichever kinds they are.
func TestSimulateLoadsEveryKindOfSource(t *testing.T) {
	t.Parallel()
	files := map[string]string{"docs/lull.yaml": filepath.Join("..", "docs", "lull.yaml")}
	for name, sources := range stacks {
		files[name] = settings(t, sources)
	}
	for name, file := range files {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, load := range [][]string{{"--load", "1", "--for", "2m"}, nil} {
				out, s := simulated(t, append([]string{"--config", file, "--pollers", "1"}, load...)...)
				if s.Counts.Events < 3 || s.Freshness.Count == 0 || s.Counts.Applied == 0 {
					t.Errorf("%d events, %d written\n%s", s.Counts.Events, s.Freshness.Count, out)
				}
				if load != nil && (len(s.DeadLetters) > 0 || !strings.Contains(out, "every promise held")) {
					t.Errorf("printed\n%s", out)
				}
			}
		})
	}
}

// No run says that all is well over dead letters, or over nothing.
func TestSimulateSaysWhatDied(t *testing.T) {
	t.Parallel()
	bad := `{"type":"doc.changed","subject":"a\u001b[31m","sequence":"x","data":{}}`
	for _, tt := range []struct {
		name  string
		lines []string
		code  exitCode
		says  []string
	}{
		{
			"one of two",
			[]string{put("a", "1", "{}"), bad},
			exitRefused,
			[]string{"no promise broken, but 1 dead letters", "(line 2)"},
		},
		{
			"all",
			[]string{bad},
			exitFailed,
			[]string{"but nothing was written: 1 dead letters", "contract: subject:", "(line 1)"},
		},
		{
			"none of them an event",
			[]string{`{"Service":"Amazon S3","Event":"s3:TestEvent"}`},
			exitFailed,
			[]string{"nothing was written"},
		},
		{"nothing", nil, exitOK, []string{"because there were no events"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := lull(t, "", "simulate", "--events", write(t, tt.lines...), "--pollers", "1")
			if a.code != tt.code || strings.Contains(a.out, "every promise held") || strings.Contains(a.out, "\x1b") {
				t.Errorf("exit %d, want %d: %s%s", a.code, tt.code, a.out, a.errors)
			}
			for _, s := range tt.says {
				if !strings.Contains(a.out, s) {
					t.Errorf("printed %s, want %q", a.out, s)
				}
			}
		})
	}
	dropping := settings(t, "deadLetters: none\ntableOutage: open")
	a := lull(t, "", "simulate", "--config", dropping, "--events", write(t, put("a", "1", "{}"), bad))
	if a.code != exitRefused || !strings.Contains(a.out, "no promise broken, but 1 dead letters") {
		t.Errorf("settings that drop dead letters: exit %d, want %d: %s", a.code, exitRefused, a.out)
	}
	a = lull(t, "", "simulate", "--config", settings(t, "sources: {media: {kind: s3}}"), "--load", "1")
	a.want(t, "a source that reads nothing", exitUsage, "payload.allow")
}

func TestDevSaysWhereADeadLetterStood(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "report.json")
	a := lull(t, "", "dev", "--exit-when-idle", "--speed", "100", "--report", file, "--events",
		write(t, put("a", "1", "{}"), "", put("b", "", "{}")))
	if a.code != exitRefused || !strings.Contains(a.out, "dead letter: content#b: version_invalid: sequence: ") ||
		!strings.Contains(a.out, "(line 3)") {
		t.Errorf("exit %d: %s", a.code, a.out)
	}
	b, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(b), `"where": "line 3"`) || !strings.Contains(string(b), `"detail": "sequence: `) {
		t.Errorf("report %s, error %v", b, err)
	}
}
