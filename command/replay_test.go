// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/operator/operate/operatetest"
	"github.com/lullhq/lull/internal/operator/replay"
	"github.com/lullhq/lull/internal/pipeline/archive"
	"github.com/lullhq/lull/internal/seam/clock"
)

// table is a stack that has only a table: jobs need no more.
func table() operate.API {
	return (&operate.Operator{Shards: memory.NewShards(), Clock: clock.System{}, Config: new(config.Config)}).API()
}

// tape is a stack whose archive takes four steps to replay.
type tape struct {
	operate.API
	fails  int // the step that fails each time, from 1; 0 for none
	why    error
	faults []replay.Fault // the faults of the first step
	empty  bool
	asked  []operate.ReplayOrder
}

func (s *tape) Archived(_ context.Context, o operate.ReplayOrder) (archive.Size, error) {
	switch {
	case o.Source == "nobody's":
		return archive.Size{}, operate.ErrInput
	case s.empty:
		return archive.Size{}, nil
	}
	return archive.Size{Objects: 4, Messages: 8, Bytes: 4096}, nil
}

func (s *tape) Replay(_ context.Context, o operate.ReplayOrder) (operate.ReplayStep, error) {
	s.asked = append(s.asked, o)
	if s.fails > 0 && len(o.Cursor) == s.fails-1 {
		return operate.ReplayStep{}, s.why
	}
	step := operate.ReplayStep{Messages: 2, Sent: 1, Next: o.Cursor + "x"}
	step.Events = map[replay.Outcome]int{"sent": 1, "newer": 1}
	if o.Cursor == "" {
		step.Faults = s.faults
		for _, f := range s.faults {
			if f.Outcome == replay.Refused {
				step.Events["refused"]++
			}
		}
	}
	if step.Next == "xxxx" {
		step.Next = ""
	}
	return step, nil
}

func (s *tape) run(t *testing.T, f replayFlags) (r operate.Replayed, a answer, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	p := newApp(strings.NewReader(""), &out, &errs)
	p.streams.output = "json"
	f.rate = 1e6
	err = failed(runReplay(t.Context(), &p.streams, operatetest.API(s.API, s), f))
	a = answer{codeOf(err), out.String(), errs.String()}
	if lines := strings.Split(strings.TrimSpace(a.out), "\n"); lines[0] != "" {
		r = decode[operate.Replayed](t, lines[len(lines)-1])
	}
	return r, a, err
}

// A replay that failed continues on another machine with its run and its time range. "2h" still
// means two hours before its beginning.
func TestAReplayContinuesWithItsRunAndItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, stack := replayFlags{from: "2h"}, table()
		down := &tape{API: stack, fails: 3, why: errDown}
		_, a, err := down.run(t, f)
		if a.code != exitFailed || !errors.Is(err, errDown) ||
			!strings.Contains(err.Error(), "the same command continues") ||
			!strings.Contains(a.errors, "8 messages in 4 objects") || len(down.asked) != 6 {
			t.Fatalf("%v, %+v, %d calls; want four tries, what to do, and how much there is", err, a, len(down.asked))
		}
		other := f
		other.from = "3h"
		_, _, err = (&tape{API: stack}).run(t, other)
		refusedFor(t, err, "began with other arguments", `"from":"2h"`, "lull jobs drop replay")
		again := &tape{API: stack}
		r, a, err := again.run(t, f)
		if err != nil || r.Sent != 4 || r.Messages != 8 || r.Events["newer"] != 4 || len(again.asked) != 2 ||
			!strings.Contains(a.errors, "replay continues after 4") {
			t.Errorf("%+v, %v, %+v; want four sent in all", r, err, a)
		}
		first, next := down.asked[0], again.asked[0]
		if next.Cursor != "xx" || next.Run != first.Run || next.ArchiveRange != first.ArchiveRange || r.Run != first.Run {
			t.Errorf("continued with %+v, began with %+v", next, first)
		}
		if _, _, err := again.run(t, f); err != nil || again.asked[2].Run == first.Run {
			t.Errorf("after its end: %v, %+v; want a new run", err, again.asked[2])
		}
	})
}

// The rate counts the messages that are sent. It does not count messages that are passed over.
func TestAReplayPassesOverMessagesFasterThanItSends(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began, stack := time.Now(), operatetest.API(table(), &tape{})
		p := newApp(strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{})
		if err := runReplay(t.Context(), &p.streams, stack, replayFlags{from: "2h", rate: 0.5}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began).Seconds(); took != 6 { // the last step waits for nothing
			t.Errorf("four messages at one in two seconds took %v s, want 6", took)
		}
	})
}

func TestAReplayThatLeftSomethingOutSaysSo(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fault replay.Fault
		code  exitCode
	}{
		"unreadable": {replay.Fault{Object: "o", Outcome: replay.Unreadable, Why: "cut off"}, exitRefused},
		"refused":    {replay.Fault{Object: "o", Message: "m\x1b[31m", Outcome: replay.Refused, Why: "too large"}, exitRefused},
		"invalid":    {replay.Fault{Object: "o", Message: "m", Outcome: replay.Invalid, Why: "not JSON"}, exitOK},
	} {
		synctest.Test(t, func(t *testing.T) {
			r, a, err := (&tape{API: table(), faults: []replay.Fault{tt.fault}}).run(t, replayFlags{from: "2h"})
			if a.code != tt.code || r.Sent != 4 || !strings.Contains(a.out, `"why":"`+tt.fault.Why) ||
				strings.Contains(a.out, "\x1b") {
				t.Errorf("%s: %v, %+v, %+v", name, err, r, a)
			}
		})
	}
}

func TestAReplayThatCannotBeginBlocksNoOther(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		f    replayFlags
		api  tape
		says string
		code exitCode
	}{
		"no time":                 {replayFlags{}, tape{}, "--from", exitUsage},
		"an odd time":             {replayFlags{from: "yesterday"}, tape{}, "--from", exitUsage},
		"an end before the start": {replayFlags{from: "1h", to: "2h"}, tape{}, "a later one", exitUsage},
		"nothing there":           {replayFlags{from: "1h"}, tape{empty: true}, "has nothing", exitMissing},
		"refused":                 {replayFlags{from: "1h", source: "nobody's"}, tape{}, operate.ErrInput.Error(), exitUsage},
		"a dry run":               {replayFlags{from: "1h", dryRun: true}, tape{fails: 2, why: errDown}, errDown.Error(), exitFailed},
	} {
		synctest.Test(t, func(t *testing.T) {
			tt.api.API = table()
			_, a, err := tt.api.run(t, tt.f)
			if err == nil || !strings.Contains(err.Error(), tt.says) || a.code != tt.code {
				t.Errorf("%s: got %v, exit %d, want %q in it, exit %d", name, err, a.code, tt.says, tt.code)
			}
			tt.api.fails, tt.api.empty = 0, false
			if _, _, err := tt.api.run(t, replayFlags{from: "2h"}); err != nil {
				t.Errorf("%s: the next replay: %v", name, err)
			}
		})
	}
}
