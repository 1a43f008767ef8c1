// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/memorysink"
)

func poison() memorysink.Answer {
	return memorysink.Answer{Outcome: sink.Outcome{
		Kind: sink.Rejected, Status: 400,
		Reason: "mapper_parsing_exception: field title",
	}}
}

// admit makes a version pending during the flight, as another receive would.
func (b *bench) admit(body string) {
	b.Helper()
	b.Admit(b.EventOf(body))
}

// The form of COMMIT follows from the image of the row that the turn has. If the row has changed
// since, the other form is used, and the burst of the newer pending version continues.
func TestAVersionThatComesDuringTheWriteStaysPending(t *testing.T) {
	stage{sink: memorysink.Settings{Latency: time.Second}}.play(t, func(b *bench) {
		s := b.hold(put("a", 1))
		b.inject = at("COMMIT", func() { b.admit(put("a", 2)) })
		b.fly(s, 1)
		b.Noted(journal.Committed, 1)
		b.Noted(journal.RowRefused, 1)
		b.Noted(journal.LeaseLost, 0)
		if r := b.Row(doc("a")); r.Committed != b.key("a", 1) || r.Pending != b.key("a", 2) || r.BurstStart != now() ||
			r.Owner != "" {
			b.Errorf("row %+v, want version 1 committed and version 2 pending in a burst that begins now", r)
		}
		b.inQueue(0)
	})
}

func TestAVersionThatComesDuringARejectedWriteStaysPending(t *testing.T) {
	stage{}.play(t, func(b *bench) {
		b.sink.Script(doc("a"), poison())
		s := b.hold(put("a", 1))
		b.inject = at("REJECT", func() { b.admit(put("a", 2)) })
		b.fly(s, 1)
		if r := b.Row(doc("a")); r.Dead != b.key("a", 1) || r.Pending != b.key("a", 2) || r.Claimed != "" || r.Owner != "" {
			b.Errorf("row %+v, want version 1 dead and version 2 pending, unclaimed", r)
		}
		b.inQueue(0)
	})
}

// If a write to the table got no answer, the document is still under its lease. No flight works on
// the document until the lease has expired.
func TestAnAnswerOfTheTableThatNeverCame(t *testing.T) {
	for _, c := range []struct {
		call    string
		answer  memorysink.Answer
		what    fault.Verdict
		tries   int
		waits   bool // the document waits for the end of the lease
		letters int
	}{
		{"CLAIM", memorysink.Answer{}, fault.FailBefore, 4, true, 0},
		{"CLAIM", memorysink.Answer{}, fault.FailAfter, 1, false, 0},
		{"COMMIT", memorysink.Answer{}, fault.FailBefore, 4, true, 0},
		{"COMMIT", memorysink.Answer{}, fault.FailAfter, 1, false, 0},
		{"COMMIT", memorysink.Answer{}, fault.Throttle, 3, false, 0},
		{"RELEASE", throttled(), fault.FailBefore, 4, true, 0},
		{"RELEASE", throttled(), fault.FailAfter, 1, false, 0},
		{"REJECT", poison(), fault.FailBefore, 4, true, 2},
		{"REJECT", poison(), fault.FailAfter, 1, false, 1},
	} {
		t.Run(c.call+" "+c.what.String(), func(t *testing.T) {
			stage{}.play(t, func(b *bench) {
				if c.answer.Outcome.Status != 0 {
					b.sink.Script(doc("a"), c.answer, c.answer)
				}
				s := b.hold(put("a", 1))
				b.inject = fails(c.call, c.what, c.tries)
				begin := s.Wake()
				s = b.turn(s)
				lease := begin.Add(b.Config.Lease("search"))
				if c.waits != (!s.Done && s.Wake().After(lease)) {
					b.Errorf("done %v, wakes %s after the turn: want the flight to wait for the lease of %s: %v", s.Done,
						s.Wake().Sub(begin), b.Config.Lease("search"), c.waits)
				}
				if s.Done == (c.waits || c.call == "RELEASE") {
					b.Errorf("done %v", s.Done)
				}
				b.fly(s, 4)
				if l := b.TakeLetters(b.dead); len(l) != c.letters || c.letters == 2 && l[0].ID != l[1].ID {
					b.Errorf("dead letters %+v, want %d copies of the same one", l, c.letters)
				}
				if c.letters == 0 {
					b.holds("a", "1")
				}
				b.Noted(journal.LeaseLost, 0)
				b.inQueue(0)
			})
		})
	}
}

// If another receive or flight changed the row between the read and the claim, index decides again
// by the row that the refused claim returns.
func TestAClaimThatWasOvertakenIsDecidedAgain(t *testing.T) {
	type row struct {
		race func(b *bench)
		left bool
		note journal.Step
	}
	usecasetest.Table(t, stage{}.play, map[string]row{
		"by a newer version": {func(b *bench) { b.admit(put("a", 2)) }, false, journal.LeftSuperseded},
		"by another owner": {func(b *bench) {
			b.Write(shard.Claim(shard.Bid{
				Doc: doc("a"), Key: b.key("a", 1), Token: "t", Now: now(),
				Until: now().Add(13 * time.Second),
			}))
		}, true, journal.Waiting},
		"by an earlier claim of the same flight": {func(b *bench) { // the lease has expired: the other form of CLAIM
			b.Write(shard.Claim(shard.Bid{
				Doc: doc("a"), Key: b.key("a", 1), Token: "t", Now: now() - 10,
				Until: now() - 5,
			}))
		}, false, journal.Committed},
		"by a commit": {func(b *bench) {
			l := shard.Lease{Doc: doc("a"), Key: b.key("a", 1), Token: "t", At: now() - 1}
			b.Write(shard.Claim(shard.Bid{Doc: l.Doc, Key: l.Key, Token: l.Token, Now: l.At, Until: now()}))
			b.Write(shard.Commit(l, shard.Put, now(), 1, b.Row(doc("a"))))
		}, false, journal.Duplicate},
		"by the dead letter of the version": {
			func(b *bench) { b.Write(shard.Park(doc("a"), b.key("a", 1), now(), 1, b.Row(doc("a")))) },
			false, journal.AlreadyDead,
		},
		"by the deletion of the row": {
			func(b *bench) { b.Write(shard.Write{Transition: shard.COLLECT, Doc: doc("a"), Drop: true}) },
			false, journal.LeftFlight,
		},
	}, func(b *bench, c row) {
		s := b.hold(put("a", 1))
		b.inject = at("CLAIM", func() { c.race(b) })
		s = b.turn(s)
		if s.Done == c.left {
			b.Errorf("done %v, want a message left in the flight: %v", s.Done, c.left)
		}
		b.Noted(c.note, 1)
		b.Noted(journal.LeaseLost, 0)
		if c.note != journal.Committed && b.sink.Counts().Requests != 0 {
			b.Error("the document was written without a claim")
		}
	})
}

// A body that was prepared for one version is never written as another version.
func TestAnOlderVersionIsNeverClaimedWithTheNewestsBody(t *testing.T) {
	stage{}.play(t, func(b *bench) {
		s := b.hold(put("a", 1), put("a", 2))
		b.inject = at("CLAIM", func() {
			b.Write(shard.Park(doc("a"), b.key("a", 2), now(), 1, b.Row(doc("a"))))
			b.admit(put("a", 1)) // version 1 is delivered again at the same time
		})
		s = b.turn(s)
		b.Noted(journal.AlreadyDead, 1)
		b.Noted(journal.Claimed, 0)
		b.fly(s, 2)
		got, _, err := b.sink.Get(b.Context(), doc("a"))
		if err != nil || got.Version != "1" || string(got.Document) != `{"title":"v1"}` {
			b.Errorf("version %s, document %s (%v), want both of version 1", got.Version, got.Document, err)
		}
		b.inQueue(0)
	})
}

func TestTwoMessagesOfADeadVersionAreOneDeadLetter(t *testing.T) {
	stage{}.play(t, func(b *bench) {
		b.sink.Script(doc("a"), poison())
		b.fly(b.hold(put("a", 1), put("a", 1)), 1)
		b.WantLetters(b.dead, 1)
		b.Noted(journal.DeadLettered, 1)
		b.Noted(journal.AlreadyDead, 1)
		b.inQueue(0)
	})
}

// A version that may be in the sink and is not a dead letter blocks older versions, and a note says
// so.
func TestWhatMayBeInTheSinkBlocksOlderVersions(t *testing.T) {
	stage{}.play(t, func(b *bench) {
		s := b.hold(put("a", 1), put("a", 3))
		// claimed by another flight, with an unknown outcome
		b.Change(doc("a"), func(r *shard.Row) { r.Claimed, r.LeaseUntil = b.key("a", 2), now() })
		b.sink.Script(doc("a"), poison())
		s = b.turn(s)
		b.Noted(journal.Rejected, 1)
		b.Noted(journal.Blocked, 1)
		if r := b.Row(doc("a")); r.Claimed != b.key("a", 2) {
			b.Errorf("row %+v, want version 2 to count as claimed still", r)
		}
		b.holds("a", "")
		if s.Done {
			b.Error("version 1 left the flight, and no other flight holds it")
		}
	})
}

// An unknown outcome is answered with 409 after the lease has ended. This is expected: the present
// owner of the lease has written a newer version.
func TestA409AfterTheLeaseHasEndedIsNotAnAlarm(t *testing.T) {
	usecasetest.Table(t, stage{}.play, map[string]time.Duration{
		"under a live lease": 5 * time.Second,
		"after the lease":    14 * time.Second,
	}, func(b *bench, after time.Duration) {
		s := b.hold(put("a", 1))
		b.sink.Script(doc("a"), memorysink.Answer{Outcome: sink.Outcome{Kind: sink.Newer, Status: 409}})
		var log spans
		b.through = func(to sink.Sink) sink.Sink { return zombie{to, s.Wake().Add(after), &log} }
		s = b.turn(s)
		want := 0
		if after < b.Config.Lease("search") {
			want = 1
		}
		b.Noted(journal.SinkNewer, want)
		b.Noted(journal.Committed, 0)
		b.inQueue(1)
		if s.Done {
			b.Error("the 409 was taken for success")
		}
		b.delivers(s, 2, "a", "1")
	})
}

func TestADeadLetterThatCannotBeSentKeepsTheMessage(t *testing.T) {
	stage{}.play(t, func(b *bench) {
		b.sink.Script(doc("a"), poison(), poison())
		s := b.hold(put("a", 1))
		b.inject = fails("SendMessageBatch", fault.FailBefore, 1)
		s = b.turn(s)
		if r := b.Row(doc("a")); s.Done || r.Dead != "" || r.Owner != "" || r.Refusals != 0 {
			b.Errorf("done %v, row %+v: want the lease released, no dead letter and no refusal counted", s.Done, r)
		}
		b.inQueue(1)
		b.fly(s, 2)
		if l := b.TakeLetters(b.dead); len(l) != 1 || l[0].Reason != deadletter.RejectedBySink {
			b.Errorf("dead letters %+v, want one in the end", l)
		}
		b.inQueue(0)
	})
}

func TestRefusalsAreInTheDeadLetter(t *testing.T) {
	stage{cfg: func(c *config.Config) { c.Retry.MaxRefusals = 2 }}.play(t, func(b *bench) {
		refused := memorysink.Answer{Outcome: sink.Outcome{Kind: sink.Refused, Status: 500, Reason: "some_exception"}}
		b.sink.Script(doc("a"), refused, refused)
		b.fly(b.hold(put("a", 1)), 3)
		l := b.TakeLetters(b.dead)
		if len(l) != 1 || l[0].Reason != deadletter.Refusals || l[0].Refusals != 2 ||
			!strings.Contains(l[0].FirstError, "some_exception") || l[0].LastError != "some_exception" ||
			l[0].Lane != "live" || l[0].Sink != "search" {
			b.Errorf("dead letters %+v, want one that contains the earlier refusal", l)
		}
	})
}

// Without a dead-letter queue, a version that cannot be written is dropped and counted once. No
// note says that there is a dead letter, because nobody could find it.
func TestWithoutDeadLettersWhatCannotBeWrittenIsDroppedAloud(t *testing.T) {
	stage{cfg: func(c *config.Config) { c.DeadLetters = config.DeadLettersNone }}.play(t, func(b *bench) {
		b.sink.Script(doc("a"), poison())
		b.fly(b.hold(put("a", 1), put("b", 1)), 1)
		b.Noted(journal.Dropped, 1)
		b.Noted(journal.DeadLettered, 0)
		b.InQueue(b.dead, 0, "the settings want no dead letters")
		if r := b.Row(doc("a")); r.Dead != b.key("a", 1) || r.Pending != "" {
			b.Errorf("row %+v, want the version dead", r)
		}
		b.holds("b", "1")
		b.inQueue(0)
	})
}

// miscounts is a sink that returns another number of outcomes than it was asked for.
type miscounts struct {
	sink.Sink
	answers int
}

func (m miscounts) Write(ctx context.Context, ops []sink.Op) []sink.Outcome {
	m.Sink.Write(ctx, ops)
	return make([]sink.Outcome, m.answers) // every outcome is Applied
}

// If a sink returns a wrong number of outcomes, lull believes none of them.
func TestAnAnswerOfTheWrongLengthIsUnknown(t *testing.T) {
	usecasetest.Table(t, stage{}.play, map[string]int{"none": 0, "too short": 1, "too long": 3}, func(b *bench, n int) {
		s := b.hold(put("a", 1), put("b", 1))
		b.through = func(to sink.Sink) sink.Sink { return miscounts{to, n} }
		b.turn(s)
		b.Noted(journal.OutcomeUnknown, 2)
		b.Noted(journal.Committed, 0)
		b.inQueue(2)
	})
}

// Documents that can never be built are rejected in parallel, just as written documents are
// committed in parallel. So one invocation can reject a whole batch of documents.
func TestBrokenDocumentsAreRejectedTogether(t *testing.T) {
	stage{cfg: openBucket}.play(t, func(b *bench) {
		const documents = 1000
		s := b.hold(many(documents, touched, "")...) // the test has no loader for the references
		b.inject = decide(func(op fault.Op) fault.Verdict {
			if op.Call == "REJECT" || op.Call == "SendMessageBatch" {
				time.Sleep(8 * time.Millisecond)
			}
			return fault.OK
		})
		time.Sleep(time.Until(s.Wake()))
		begin := time.Now()
		b.fly(s, 1)
		if took := time.Since(begin); took > b.Config.Index.Timeout/2 {
			b.Errorf("rejecting %d documents took %s, want less", documents, took)
		}
		b.Noted(journal.Rejected, documents)
		b.inQueue(0)
	})
}

// A missing index affects only its own collection, and other collections do not wait for it. If a
// sink refuses all documents, the circuit opens.
func TestOneIndexInTroubleDoesNotOpenTheCircuit(t *testing.T) {
	for apart, want := range map[bool]int{true: 0, false: 1} {
		t.Run(fmt.Sprint("apart ", apart), func(t *testing.T) {
			stage{}.play(t, func(b *bench) {
				b.sink.Script(doc("a"), memorysink.Answer{Outcome: sink.Outcome{
					Kind: sink.Throttled, Status: 404,
					Apart: apart, Reason: "sink_config: index_not_found_exception",
				}})
				s := b.turn(b.hold(put("a", 1), put("b", 1)))
				b.Noted(journal.CircuitOpened, want)
				b.Noted(journal.Released, 1)
				b.holds("b", "1")
				b.delivers(s, 3, "a", "1")
			})
		})
	}
}
