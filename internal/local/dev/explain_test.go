// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/operator/feed"
	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/memorysink"
)

var rewriteExplained = flag.Bool("rewrite-explained", false, "write testdata/explained anew")

// lookingAt is a run that brings the document "a" into a state, in which explain then sees the
// document.
type lookingAt struct {
	name  string
	state operate.State
	story func(s *scene)
}

// beside makes the sink give an answer for the document "a", and lets another document of the same
// request succeed. If the whole request failed, the circuit breaker would open.
func beside(s *scene, o sink.Outcome, times int) {
	for range times {
		s.sink.Script(doc("a"), memorysink.Answer{Outcome: o})
	}
	s.send(put(0, "a", 2), put(0, "b", 1))
}

// changed writes to the sink as another program. The version 0 writes a document without lull's
// metadata.
func (s *scene) changed(kind shard.Operation, version int) {
	s.t.Helper()
	op := sink.Op{Doc: doc("a"), Kind: kind, Fence: shard.Fence(time.Now().UnixMicro()), At: time.Now()}
	if kind == shard.Put {
		op.Version, op.Document = fmt.Sprint(version), []byte("{}")
		if version > 0 {
			op.Key = s.key(put(0, "a", version))
		}
	}
	if out := s.sink.Write(s.ctx, []sink.Op{op}); out[0].Kind != sink.Applied {
		s.t.Fatal(out)
	}
}

// settled sends a version, waits until it is written, and continues at a round time.
func (s *scene) settled(version int) { s.settles(put(0, "a", version)) }

func (s *scene) settles(m feed.Timed) {
	s.t.Helper()
	s.send(m)
	s.settle()
	s.wait(10*time.Second - time.Since(s.start)%(10*time.Second))
}

// mute is a sink that does not answer reads of documents.
type mute struct{ *memorysink.Sink }

func (mute) Get(context.Context, shard.DocID) (sink.Stored, bool, error) {
	return sink.Stored{}, false, errors.New("no route to host")
}

// away makes the sink unavailable until it counts as away, and then sends a document that receive
// does not decode.
func (s *scene) away(id string) {
	s.t.Helper()
	s.sink.SetDown(errors.New("no route to host"))
	s.send(put(0, "b", 1))
	for !s.e.cfg.Retry.Away(s.health(), shard.MicrosOf(time.Now())) {
		s.wait(100 * time.Millisecond)
		if time.Since(s.start) > time.Hour {
			s.t.Fatal("the sink never went away")
		}
	}
	s.send(put(0, id, 3))
	s.wait(3 * time.Second)
}

func (s *scene) health() shard.Row {
	s.t.Helper()
	rows, err := s.e.Shards.Read(s.ctx, []shard.DocID{shard.HealthRow("search")}, shard.Consistent)
	if err != nil {
		s.t.Fatal(err)
	}
	return rows[0]
}

func (s *scene) cancel() {
	s.t.Helper()
	_, err := s.e.Operator(nil).API().Cancel(s.ctx, operate.Cancellation{Key: doc("a"), By: "ann"})
	if err != nil {
		s.t.Fatal(err)
	}
}

var explained = []lookingAt{
	{"in its burst", operate.StateWaiting, func(s *scene) {
		s.settled(1)
		s.send(put(0, "a", 2), put(0, "a", 3))
		s.wait(3 * time.Second)
	}},
	{"while its write is under way", operate.StateClaimed, func(s *scene) {
		s.p.sink = slow{s.p.sink, 3 * time.Second}
		s.send(put(0, "a", 1))
		s.wait(7 * time.Second)
	}},
	{"written, and the answer was lost", operate.StateClaimed, func(s *scene) {
		s.sink.Script(doc("a"), memorysink.Answer{Outcome: sink.Outcome{Kind: sink.Unknown, Reason: "time-out"}, Apply: true})
		s.send(put(0, "a", 1))
		s.wait(7 * time.Second)
	}},
	{"after a claim without an answer", operate.StateUnknown, func(s *scene) {
		beside(s, sink.Outcome{Kind: sink.Unknown, Reason: "time-out"}, 9)
		s.wait(7 * time.Second)
		s.wait(time.Until(s.row("a").LeaseUntil.Time()) + time.Millisecond)
	}},
	{"throttled alone", operate.StateThrottled, func(s *scene) {
		beside(s, sink.Outcome{
			Kind: sink.Throttled, Status: 429, Apart: true, Reason: "index_blocked", RetryAfter: time.Minute,
		}, 9)
		s.wait(7 * time.Second)
	}},
	{"behind others of a sink that throttles", operate.StateThrottled, func(s *scene) {
		s.sink.SetRule(func(sink.Op) (memorysink.Answer, bool) {
			return memorysink.Answer{Outcome: sink.Outcome{Kind: sink.Throttled, Status: 429, Reason: "busy"}}, true
		})
		for i := range 300 {
			s.send(put(0, fmt.Sprint(i), 1))
		}
		s.wait(2500 * time.Millisecond)
		// these messages are received before the circuit breaker opens, because their batch window
		// would be longer after that
		for i := range 300 {
			s.send(put(0, fmt.Sprint("a", i), 1))
		}
		s.wait(3500 * time.Millisecond)
		s.sink.SetRule(nil)
		for ; time.Since(s.start) < time.Minute; s.wait(100 * time.Millisecond) {
			for i := range 300 {
				if s.about = fmt.Sprint("a", i); strings.Contains(s.explain().Sentence, "share") {
					return
				}
			}
		}
	}},
	{"its dead letter could not be sent", operate.StatePostponed, func(s *scene) {
		s.inject.next("SendMessageBatch", fault.FailBefore, -1)
		beside(s, sink.Outcome{Kind: sink.Rejected, Status: 400, Reason: "mapper_parsing_exception"}, 9)
		s.wait(7 * time.Second)
	}},
	{"the index is not configured for it", operate.StateConfigured, func(s *scene) {
		missing := "index_not_found_exception"
		beside(s, sink.Outcome{Kind: sink.Configuration, Status: 404, Apart: true, Reason: missing}, 9)
		s.wait(7 * time.Second)
	}},
	{"refused", operate.StateRefused, func(s *scene) {
		beside(s, sink.Outcome{Kind: sink.Refused, Status: 500, Reason: "odd_exception"}, 1)
		s.wait(time.Until(s.start) + 5900*time.Millisecond)
	}},
	{"in front of an unhealthy sink", operate.StateOpen, func(s *scene) {
		s.settled(1)
		s.sink.SetRule(func(sink.Op) (memorysink.Answer, bool) {
			o := sink.Outcome{Kind: sink.Throttled, Status: 429, RetryAfter: time.Minute}
			return memorysink.Answer{Outcome: o}, true
		})
		s.send(put(0, "a", 2))
		s.wait(7 * time.Second)
	}},
	{"in front of a sink that an operator has paused", operate.StatePaused, func(s *scene) {
		o := operate.PauseOrder{Sink: "search", By: "ann", Why: "a new mapping"}
		if _, err := s.e.Operator(nil).API().Pause(s.ctx, o); err != nil {
			s.t.Fatal(err)
		}
		s.send(put(0, "a", 1))
		s.wait(7 * time.Second)
	}},
	{"sent while its sink is away, and not decoded yet", operate.StateAway, func(s *scene) { s.away("a") }},
	{"committed before its sink went away", operate.StateAway, func(s *scene) {
		s.settled(1)
		s.away("a")
	}},
	{"pending when its sink went away", operate.StateOpen, func(s *scene) {
		s.send(put(0, "a", 2))
		s.away("c")
	}},
	{"in front of a paused sink", operate.StatePaused, func(s *scene) {
		s.settled(1)
		order := operate.PauseOrder{All: true, Why: "a new mapping", By: "ann@laptop"}
		if _, err := s.e.Operator(nil).API().Pause(s.ctx, order); err != nil {
			s.t.Fatal(err)
		}
		s.send(put(0, "a", 2))
		s.wait(7 * time.Second)
	}},
	{"behind a dead version that may be in the sink", operate.StateBlocked, func(s *scene) {
		beside(s, sink.Outcome{Kind: sink.Unknown, Reason: "time-out"}, 9)
		s.wait(7 * time.Second)
		s.wait(time.Until(s.row("a").LeaseUntil.Time()) + time.Millisecond)
		s.cancel()
		s.send(put(0, "a", 1))
		s.wait(3 * time.Second)
	}},
	{"receive died between ADMIT and the launch", operate.StateUnheld, func(s *scene) {
		s.inject.next("PutManifest", fault.CrashBefore, 1)
		s.send(put(0, "a", 1))
		s.wait(10 * time.Second)
	}},
	{"the start of its execution was lost", operate.StateLate, func(s *scene) {
		s.inject.next("StartExecution", fault.CrashBefore, 1)
		s.send(put(0, "a", 1))
		s.wait(30 * time.Second)
	}},
	{"committed", operate.StateFresh, func(s *scene) { s.settled(1) }},
	{"deleted", operate.StateFresh, func(s *scene) {
		s.settled(1)
		s.settles(del(0, "a", 2))
	}},
	{"committed, and the sink does not answer", operate.StateFresh, func(s *scene) {
		s.settled(1)
		s.p.sink = mute{s.sink}
	}},
	{"scheduled, and never written", operate.StateScheduled, func(s *scene) {
		s.send(notBefore(s.start.Add(2*time.Hour), put(0, "a", 1)), notBefore(s.start.Add(3*time.Hour), put(0, "a", 2)))
		s.wait(5 * time.Second)
	}},
	{"scheduled beside a committed version", operate.StateScheduled, func(s *scene) {
		s.send(notBefore(s.start.Add(2*time.Hour), put(0, "a", 2)), put(0, "a", 1))
		s.settle()
	}},
	{"rejected", operate.StateDead, func(s *scene) {
		s.settled(1)
		answers(sink.Rejected, 1)(s)
		s.settled(2)
	}},
	{"a message that is not an event of it", operate.StateDead, func(s *scene) { s.settles(put(0, "a", 1, "[]")) }},
	{"redriven", operate.StateRedriven, func(s *scene) {
		answers(sink.Rejected, 1)(s)
		s.settled(2)
		if _, err := s.e.Operator(nil).API().Redrive(s.ctx, operate.LetterOrder{By: "ann", All: true}); err != nil {
			s.t.Fatal(err)
		}
	}},
	{"its dead letter was dropped", operate.StateDropped, func(s *scene) {
		answers(sink.Rejected, 1)(s)
		s.settled(2)
		if _, err := s.e.Operator(nil).API().Drop(s.ctx, operate.LetterOrder{By: "ann", All: true}); err != nil {
			s.t.Fatal(err)
		}
	}},
	{"an absurd version", operate.StateFarAhead, func(s *scene) {
		s.settles(native("a", `"`+strings.Repeat("9", 40)+`"`, `,"data":{}`))
		s.settled(7)
	}},
	{"an absurd version was taken back", operate.StateReset, func(s *scene) {
		s.settles(native("a", `"`+strings.Repeat("9", 40)+`"`, `,"data":{}`))
		order := operate.ResetOrder{Key: doc("a"), To: "7", By: "ann"}
		if _, err := s.e.Operator(nil).API().Reset(s.ctx, order); err != nil {
			s.t.Fatal(err)
		}
	}},
	{"forgotten by an operator", operate.StateForgotten, func(s *scene) {
		s.settled(3)
		api, clk := s.e.Operator(nil).API(), clock.System{}
		f := operate.Forgetting{Key: doc("a"), By: "ann", Clock: clk}
		if _, err := f.Forget(s.ctx, job.Runner{Store: api.JobStore(), Clock: clk, By: f.By}, api); err != nil {
			s.t.Fatal(err)
		}
	}},
	{"lost by the sink", operate.StateSinkLost, func(s *scene) {
		s.settled(3)
		s.changed(shard.Delete, 0)
	}},
	{"the sink was restored", operate.StateSinkOlder, func(s *scene) {
		s.settled(3)
		s.changed(shard.Put, 2)
	}},
	{"somebody else wrote it", operate.StateSinkOlder, func(s *scene) {
		s.settled(3)
		s.changed(shard.Put, 0)
	}},
	{"the table was restored", operate.StateSinkNewer, func(s *scene) {
		s.settled(3)
		s.changed(shard.Put, 4)
	}},
	{"a restored sink has what was deleted", operate.StateSinkKept, func(s *scene) {
		s.settles(del(0, "a", 3))
		s.changed(shard.Put, 2)
	}},
	{"its row was collected", operate.StateCollected, func(s *scene) {
		s.settled(3)
		s.wait(33 * 24 * time.Hour)
	}},
	{"nobody ever sent it", operate.StateNobody, func(s *scene) {}},
	{"sent, and not received yet", operate.StateNobody, func(s *scene) { s.send(put(0, "a", 1)) }},
	{"its row is of a newer build", operate.StateUnreadable, func(s *scene) {
		_, err := s.e.Shards.Write(s.ctx, shard.Write{Doc: doc("a"), Update: []shard.Action{{
			Verb: shard.Set, Attr: shard.AttrSchema,
			Val: shard.Value{Kind: shard.KindNumber, Num: shard.SchemaVersion + 1},
		}}})
		if err != nil {
			s.t.Fatal(err)
		}
	}},
}

func (s *scene) explain() operate.Explanation {
	s.t.Helper()
	x, err := s.e.Operator(nil).API().Explain(s.ctx, doc(cmp.Or(s.about, "a")))
	if err != nil {
		s.t.Fatal(err)
	}
	return x
}

// Parts of texts that differ in each run: ids of flights, and times and rates that depend on random
// waits.
var (
	ulids = regexp.MustCompile(`\b[0-9A-HJKMNP-TV-Z]{26}\b`)
	paces = regexp.MustCompile(`[0-9.]+ documents a second`)
	opens = regexp.MustCompile(`is claimed before \S+`)
)

func TestExplainTellsTheTruthInEveryState(t *testing.T) {
	seen := map[operate.State]bool{}
	for _, c := range explained {
		seen[c.state] = true
		t.Run(c.name, func(t *testing.T) {
			stage{}.play(t, func(s *scene) {
				c.story(s)
				x := s.explain()
				var got strings.Builder
				fmt.Fprintf(&got, "state      %s\nknown      %t\ncommitted  %q\nin sink    %q\n", x.State, x.Known,
					x.Version, x.InSink)
				for _, h := range x.Held {
					fmt.Fprintf(&got, "held       v%s, due after %s\n", h.Version, h.Due.Sub(s.start))
				}
				for _, p := range x.Scheduled {
					fmt.Fprintf(&got, "scheduled  v%s, after %s\n", p.Version, p.NotBefore.Sub(s.start))
				}
				for _, l := range x.Letters {
					fmt.Fprintf(&got, "dead       v%s, %s, %s\n", l.Version, l.Reason, l.State)
				}
				fmt.Fprintf(&got, "\n%s\n", opens.ReplaceAllString(paces.ReplaceAllString(
					ulids.ReplaceAllString(x.Sentence, "FLIGHT"), "N documents a second"), "is claimed before T."))
				if x.State != c.state {
					t.Errorf("it is %s, want %s:\n%s", x.State, c.state, got.String())
				}
				path := filepath.Join("testdata", "explained", strings.ReplaceAll(c.name, " ", "_")+".txt")
				if *rewriteExplained {
					if err := os.WriteFile(path, []byte(got.String()), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(path)
				if err != nil || string(want) != got.String() {
					t.Errorf("got\n%swant\n%s(error %v; -rewrite-explained writes it)", got.String(), want, err)
				}
			})
		})
	}
	for _, m := range operate.States() {
		if !seen[m.State] {
			t.Errorf("no run shows state %s", m.State)
		}
	}
}
