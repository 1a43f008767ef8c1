package command

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/operator/replay"
	"github.com/lullhq/lull/internal/pipeline/archive"
)

// tape is an archive of four steps.
type tape struct {
	operate.API
	fails  int // the step that fails, from 1; 0 for none
	why    error
	faults []replay.Fault // of the first step
	empty  bool
	asked  []operate.ReplayOrder
}

func (s *tape) Archived(context.Context, operate.ArchiveRange) (archive.Size, error) {
	if s.empty {
		return archive.Size{}, nil
	}
	return archive.Size{Objects: 4, Messages: 8, Bytes: 4096}, nil
}

func (s *tape) Replay(_ context.Context, o operate.ReplayOrder) (operate.ReplayStep, error) {
	s.asked = append(s.asked, o)
	if len(s.asked) == s.fails {
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

func (s *tape) run(t *testing.T, f replayFlags) (r replayed, said string, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	a := newApp(strings.NewReader(""), &out, &errs)
	a.target.output = "json"
	f.rate = 1e6
	err = a.replay(t.Context(), s, f)
	if out.Len() > 0 {
		r = decode[replayed](t, out.String())
	}
	return r, errs.String(), err
}

func TestAReplayGoesOnWithItsRunAndItsTimes(t *testing.T) {
	t.Parallel()
	f := replayFlags{from: "2h", checkpoint: filepath.Join(t.TempDir(), "cp")}
	down := &tape{fails: 3, why: errDown}
	_, said, err := down.run(t, f)
	if !errors.Is(err, errDown) || !strings.Contains(err.Error(), "goes on from "+f.checkpoint) ||
		!strings.Contains(said, "8 messages in 4 objects") {
		t.Fatalf("%v, said %q; want what to do, and how much there is", err, said)
	}
	other := f
	other.collection = "news"
	_, _, err = (&tape{}).run(t, other)
	refusedFor(t, err, "another replay", "--from 2h")
	again := &tape{}
	r, said, err := again.run(t, f)
	if err != nil || r.Sent != 4 || r.Messages != 8 || r.Events["newer"] != 4 || !strings.Contains(said, "going on") {
		t.Errorf("%+v, %v, said %q; want four sent in all", r, err, said)
	}
	first, next := down.asked[0], again.asked[0]
	if next.Cursor != "xx" || next.Run != first.Run || next.ArchiveRange != first.ArchiveRange {
		t.Errorf("went on with %+v, began with %+v", next, first)
	}
	absent(t, f.checkpoint)
}

func TestAReplayThatLeftSomethingOutFails(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fault replay.Fault
		code  exitCode
	}{
		"unreadable": {replay.Fault{Object: "o", Outcome: replay.Unreadable, Why: "cut off"}, exitRefused},
		"refused":    {replay.Fault{Object: "o", Message: "m\x1b[31m", Outcome: replay.Refused, Why: "too large"}, exitRefused},
		"invalid":    {replay.Fault{Object: "o", Message: "m", Outcome: replay.Invalid, Why: "not JSON"}, exitOK},
	} {
		f := replayFlags{from: "2h", checkpoint: filepath.Join(t.TempDir(), "cp")}
		s := &tape{faults: []replay.Fault{tt.fault}}
		r, said, err := s.run(t, f)
		code := codeOf(err)
		if code != tt.code || r.Sent != 4 || len(r.Faults) != 1 || !strings.Contains(said, tt.fault.Why) ||
			strings.Contains(said, "\x1b") {
			t.Errorf("%s: code %d (%v), %+v, said %q", name, code, err, r, said)
		}
	}
}

func TestAReplayThatCannotBeginLeavesNothing(t *testing.T) {
	t.Parallel()
	at := filepath.Join(t.TempDir(), "cp")
	for name, tt := range map[string]struct {
		f    replayFlags
		api  *tape
		says string
	}{
		"no time":       {replayFlags{}, &tape{}, "--from"},
		"an odd time":   {replayFlags{from: "yesterday"}, &tape{}, "--from"},
		"the wrong way": {replayFlags{from: "1h", to: "2h"}, &tape{}, "a later one"},
		"nothing there": {replayFlags{from: "1h"}, &tape{empty: true}, "has nothing"},
		"refused":       {replayFlags{from: "1h"}, &tape{fails: 1, why: operate.ErrInput}, operate.ErrInput.Error()},
		"a dry run":     {replayFlags{from: "1h", dryRun: true}, &tape{fails: 2, why: errDown}, errDown.Error()},
	} {
		tt.f.checkpoint = at
		if _, _, err := tt.api.run(t, tt.f); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: got %v, want %q in it", name, err, tt.says)
		}
		absent(t, at)
	}
	save(t, at, `{"input":"a resync's"}`)
	_, _, err := (&tape{}).run(t, replayFlags{from: "1h", checkpoint: at})
	refusedFor(t, err, "not one of a replay")
}
