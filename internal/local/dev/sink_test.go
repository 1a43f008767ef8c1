// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/operator/feed"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/memorysink"
)

// The tests of this file play the flows of docs/faults.md about the answers of a sink.

func TestRetryAfterSlowsAllFlightsDown(t *testing.T) {
	stage{}.play(t, func(s *scene) {
		s.sink.ScriptRequests(memorysink.Answer{Outcome: sink.Outcome{
			Kind: sink.Throttled, Status: 429,
			RetryAfter: 20 * time.Second, Reason: "too_many_requests",
		}})
		s.send(put(0, "a", 1))
		s.wait(3 * time.Second)
		s.send(put(0, "b", 1)) // another flight, due while the circuit breaker is open
		s.wait(7 * time.Second)
		at := s.notes.Of(journal.CircuitOpened)[0].At
		s.settle()
		s.holds("a", "1")
		s.holds("b", "1")
		for _, n := range s.notes.Of(journal.Committed) {
			if n.At.Sub(at) < 20*time.Second {
				t.Errorf("%s written %s after the 429, before its Retry-After of 20 s", n.Doc, n.At.Sub(at))
			}
		}
		if row := s.row("a"); row.Refusals != 0 {
			t.Errorf("%d refusals, want a throttle to count none", row.Refusals)
		}
		if p := s.sink.Counts().Pings; p != 1 {
			t.Errorf("%d pings, want one prober", p)
		}
	})
}

// After an outage, messages become visible at random moments, and all messages of a batch together.
// So a single live message may come after a bulk message. The test compares averages over several
// outages.
func TestLiveGoesBeforeBulk(t *testing.T) {
	const flights, outages = 96, 5 // flights of each lane
	var mu sync.Mutex
	waited := map[string]time.Duration{}
	t.Run("outage", func(t *testing.T) {
		for i := range outages {
			t.Run(strconv.Itoa(i), func(t *testing.T) {
				stage{}.play(t, func(s *scene) {
					s.sink.SetDown(errDown)
					for i := range flights {
						s.send(native(fmt.Sprintf("bulk%d", i), `"1"`,
							`,"data":{},"mode":"resync","resyncrun":"00K0000000000000000000000A"`),
							put(0, fmt.Sprintf("live%d", i), 1))
						// longer than the windows, so that the next messages are in other flights
						s.wait(4 * time.Second)
					}
					s.wait(2 * time.Minute)
					up := time.Now()
					s.sink.SetDown(nil)
					s.settle()
					mu.Lock()
					defer mu.Unlock()
					n := map[string]int{}
					for _, c := range s.notes.Of(journal.Committed) {
						waited[c.Lane] += c.At.Sub(up)
						n[c.Lane]++
					}
					if n["live"] != flights || n["bulk"] != flights {
						t.Errorf("committed %v, want %d of each lane", n, flights)
					}
				})
			})
		}
	})
	if live, bulk := waited["live"], waited["bulk"]; live >= bulk {
		t.Errorf("after the outages live waited %s on average, bulk %s: want live first",
			live/flights/outages, bulk/flights/outages)
	}
}

func TestUnknownOutcomeKeepsLeaseAndClaimed(t *testing.T) {
	stage{}.play(t, func(s *scene) {
		m := put(0, "a", 1)
		s.sink.Script(doc("a"), memorysink.Answer{Outcome: sink.Outcome{Kind: sink.Unknown, Status: 503}, Apply: true})
		s.send(m)
		s.wait(9 * time.Second)
		row := s.row("a")
		if row.Owner == "" || row.Claimed != s.key(m) || row.Committed != "" || row.Refusals != 0 {
			t.Errorf("row %+v, want lease and claimed to stay, nothing committed or refused", row)
		}
		until := row.LeaseUntil.Time()
		s.settle()
		h := s.sink.History(doc("a"))
		if len(h) != 2 || h[0].Key != h[1].Key {
			t.Errorf("%d writes, want the same one again", len(h))
		}
		if h[1].At.Before(until) {
			t.Errorf("written again at %s, before the lease ended at %s", h[1].At, until)
		}
	})
}

func TestConflictUnderALiveLeaseIsNotASuccess(t *testing.T) {
	stage{}.play(t, func(s *scene) {
		s.sink.Script(doc("a"), memorysink.Answer{Outcome: sink.Outcome{Kind: sink.Newer, Status: 409}})
		s.send(put(0, "a", 1))
		s.wait(9 * time.Second)
		s.noted(journal.SinkNewer, 1)
		s.noted(journal.Committed, 0)
		s.noted(journal.Deleted, 0)
		s.settle()
		s.holds("a", "1")
	})
}

func TestRequestThatLandsLateIsHarmless(t *testing.T) {
	stage{noVers: true}.play(t, func(s *scene) {
		s.sink.Script(doc("a"), memorysink.Answer{Outcome: sink.Outcome{Kind: sink.Unknown, Reason: "timeout"}})
		s.send(put(0, "a", 1))
		s.wait(9 * time.Second)
		s.send(put(0, "a", 2))
		s.wait(25 * time.Second) // within applyDelay, the sink may still apply the request after lull hung up
		late := sink.Op{
			Doc: doc("a"), Kind: "put", Key: s.key(put(0, "a", 1)), Version: "1",
			Document: []byte(`{"title":"late"}`),
		}
		s.sink.Write(s.ctx, []sink.Op{late})
		s.settle()
		s.holds("a", "2")
	})
}

func TestUnclassifiedErrorsAreRetriedUntilMaxRefusals(t *testing.T) {
	stage{}.play(t, func(s *scene) {
		s.sink.SetRule(func(op sink.Op) (memorysink.Answer, bool) {
			return memorysink.Answer{Outcome: sink.Outcome{Kind: sink.Refused, Reason: "some_exception"}},
				op.Doc == doc("a")
		})
		s.send(put(0, "a", 1), put(0, "b", 1))
		r := s.settle()
		s.holds("b", "1")
		if len(r.DeadLetters) != 1 || r.DeadLetters[0].Reason != "refusals" {
			t.Fatalf("dead letters %+v, want one for its refusals", r.DeadLetters)
		}
		if got := len(s.notes.Of(journal.Released)); got != s.e.cfg.Retry.MaxRefusals-1 {
			t.Errorf("released %d times, want one less than maxRefusals", got)
		}
	})
}

func TestBulkAnswerOfWrongLengthIsUnknown(t *testing.T) {
	stage{}.play(t, func(s *scene) {
		s.p.sink = short{s.p.sink, new(int)}
		s.send(put(0, "a", 1), put(0, "b", 1))
		s.wait(9 * time.Second)
		s.noted(journal.OutcomeUnknown, 2)
		s.noted(journal.Committed, 0)
		s.settle()
		s.holds("a", "1")
		s.holds("b", "1")
	})
}

func TestADocumentThatKillsRequestsIsFoundAlone(t *testing.T) {
	stage{}.play(t, func(s *scene) {
		killer := doc("killer")
		var sizes []int
		s.p.sink = fatal{s.p.sink, func(ops []sink.Op) bool {
			for _, op := range ops {
				if op.Doc == killer {
					sizes = append(sizes, len(ops))
					return len(sizes) < 6
				}
			}
			return false
		}}
		s.send(put(0, "killer", 1))
		for i := range 15 {
			s.send(put(0, fmt.Sprintf("good-%02d", i), 1))
		}
		r := s.settle()
		if r.Written != 16 || r.Dead != 0 {
			t.Errorf("%d written, %d dead, want all written in the end", r.Written, r.Dead)
		}
		if last := sizes[len(sizes)-1]; last != 1 {
			t.Errorf("requests with the killer had %v documents, want it alone in the end", sizes)
		}
	})
}

// short is a sink that once returns one outcome too few.
type short struct {
	sink.Sink
	done *int
}

func (s short) Write(ctx context.Context, ops []sink.Op) []sink.Outcome {
	out := s.Sink.Write(ctx, ops)
	if *s.done++; *s.done == 1 {
		return out[:len(out)-1]
	}
	return out
}

// fatal is a sink that gives no answer to requests for which kill returns true.
type fatal struct {
	sink.Sink
	kill func([]sink.Op) bool
}

func (s fatal) Write(ctx context.Context, ops []sink.Op) []sink.Outcome {
	if !s.kill(ops) {
		return s.Sink.Write(ctx, ops)
	}
	out := make([]sink.Outcome, len(ops))
	for i := range out {
		out[i].Kind = sink.Unknown
	}
	return out
}

func TestHoursOfOutageMakeNoDeadLetters(t *testing.T) {
	stage{}.play(t, func(s *scene) {
		s.sink.SetDown(errDown)
		for i := range 50 {
			s.send(put(0, fmt.Sprintf("doc-%d", i), 1))
		}
		s.wait(3 * time.Hour)
		for i := range 50 {
			s.send(put(0, fmt.Sprintf("doc-%d", i), 2))
		}
		s.wait(2 * time.Hour)
		back := time.Now()
		s.sink.SetDown(nil)
		r := s.settle()
		for i := range 50 {
			s.holds(fmt.Sprintf("doc-%d", i), "2")
			if row := s.row(fmt.Sprintf("doc-%d", i)); row.Refusals != 0 {
				t.Errorf("doc-%d: %d refusals, want none", i, row.Refusals)
			}
		}
		if r.Dead != 0 {
			t.Errorf("%d dead letters, want none", r.Dead)
		}
		for _, n := range s.notes.Of(journal.Committed) {
			if n.At.Sub(back) > 5*time.Minute {
				t.Errorf("%s fresh only %s after the sink came back", n.Doc, n.At.Sub(back))
			}
		}
		// Each message waits at least 3.2 minutes, and all messages of a batch return together.
		if n, most := len(s.notes.Of(journal.Received)), int(5*time.Hour/(192*time.Second)); n > most {
			t.Errorf("%d batches received, want at most %d", n, most)
		}
	})
}

func TestThrottledWriteBacksOffThenFailsTheMessage(t *testing.T) {
	stage{}.play(t, func(s *scene) {
		s.inject.next("ADMIT", fault.Throttle, 4)
		s.send(put(0, "a", 1))
		s.wait(5 * time.Second)
		s.noted(journal.Failed, 1)
		s.noted(journal.Launched, 0)
		s.settle()
		s.holds("a", "1")
	})
}

func TestNoSinkWriteWithoutClaim(t *testing.T) {
	stage{}.play(t, func(s *scene) {
		s.inject.next("CLAIM", fault.Throttle, 4)
		s.send(put(0, "a", 1))
		s.wait(8 * time.Second)
		if n := s.sink.Counts().Requests; n != 0 {
			t.Errorf("%d sink requests without a claim", n)
		}
		s.settle()
		s.holds("a", "1")
	})
}

func TestClosedTableOutageLosesNothing(t *testing.T) {
	stage{}.play(t, func(s *scene) {
		s.inject.next("ADMIT", fault.FailBefore, 40)
		s.inject.next("Read", fault.FailBefore, 40)
		for i := range 5 {
			s.send(put(0, fmt.Sprintf("doc-%d", i), 1))
		}
		r := s.settle()
		if len(s.notes.Of(journal.Unreachable)) == 0 {
			t.Error("the outage was not noticed")
		}
		for i := range 5 {
			s.holds(fmt.Sprintf("doc-%d", i), "1")
		}
		if r.Dead != 0 || r.SinkItems != 5 {
			t.Errorf("dead %d, sink items %d, want 0 and 5", r.Dead, r.SinkItems)
		}
	})
}

func TestMessageOlderThanRowsMeetsTheAgeGuard(t *testing.T) {
	stage{}.play(t, func(s *scene) {
		ms := time.Now().Add(-29*24*time.Hour - time.Minute).UnixMilli()
		old := func(id string, v int) feed.Timed {
			m := put(0, id, v)
			m.Attributes = map[string]queue.Attribute{queue.AttrFirstSent: {Type: "Number", String: fmt.Sprint(ms)}}
			return m
		}
		s.send(put(0, "known", 1))
		s.settle()
		s.send(old("unknown", 1), old("known", 2))
		r := s.settle()
		s.holds("unknown", "")
		s.holds("known", "2")
		if len(r.DeadLetters) != 1 || r.DeadLetters[0].Reason != "too_old_to_judge" {
			t.Errorf("dead letters %+v, want the unknown document's, too old to judge", r.DeadLetters)
		}
	})
}

// tableAway makes the table unreachable until the returned value is set to false.
func tableAway(s *scene) *atomic.Bool {
	away := new(atomic.Bool)
	away.Store(true)
	s.inject.mu.Lock()
	defer s.inject.mu.Unlock()
	s.inject.rule = func(op fault.Op) (fault.Verdict, bool) {
		return fault.FailBefore, away.Load() && op.Service == fault.Table
	}
	return away
}

func outageOpen(c *config.Config) { c.TableOutage = config.TableOutageOpen }

func TestOpenTableOutageNeverAcknowledges(t *testing.T) {
	stage{cfg: outageOpen}.play(t, func(s *scene) {
		away := tableAway(s)
		s.send(put(0, "a", 1), put(0, "a", 2), put(0, "b", 1))
		s.wait(30 * time.Second)
		s.holds("a", "2") // written at once, without asking the row
		s.holds("b", "1")
		s.noted(journal.OutageWrite, 2)
		s.noted(journal.Deleted, 0)
		if n := s.p.lane(flight.Live).queue.Counts().Total(); n != 3 {
			t.Errorf("%d messages in the queue, want all three unacknowledged", n)
		}
		away.Store(false)
		r := s.settle()
		s.holds("a", "2")
		s.holds("b", "1")
		if r.Written != 2 || r.Superseded != 1 || r.Dead != 0 {
			t.Errorf("written %d, superseded %d, dead %d: want the messages judged as usual afterwards", r.Written,
				r.Superseded, r.Dead)
		}
	})
}

func TestDeletesAreReassertedAfterAnOpenOutage(t *testing.T) {
	stage{cfg: outageOpen, sink: memorysink.Settings{ForgetAfter: time.Minute}}.play(t, func(s *scene) {
		s.send(del(0, "gone", 5), put(0, "newer", 5))
		s.settle()
		s.wait(5 * time.Minute) // the sink has forgotten the delete
		away := tableAway(s)
		s.send(put(0, "gone", 4), put(0, "newer", 4))
		s.wait(30 * time.Second)
		s.holds("gone", "4") // during the outage, promise 1 of the design does not apply
		away.Store(false)
		s.settle()
		s.holds("gone", "")
		s.noted(journal.Reasserted, 1)
		s.noted(journal.OutageResync, 1) // for the document "newer", whose body is not available
		if row := s.row("gone"); row.Owner != "" || row.LastWrite == 0 {
			t.Errorf("row %+v, want no lease left behind", row)
		}
	})
}
