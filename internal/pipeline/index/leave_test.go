// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
)

// comeBack waits until messages that left their flights are visible again. It checks the number of
// messages, and lets receive judge them.
func (b *bench) comeBack(want int) flight.State {
	b.Helper()
	for b.live.Counts().Visible == 0 && b.live.Counts().Total() > 0 {
		time.Sleep(time.Second)
	}
	if got := b.live.Counts().Visible; got != want {
		b.Errorf("%d messages are visible again, want %d", got, want)
	}
	return b.receive(flight.Live)
}

// superseded makes two flights for document a: one holds v1, the other v2. v2 was sent 3 s after
// v1.
func (b *bench) superseded() (older, newer flight.State) {
	b.Helper()
	older = b.hold(put("a", 1))
	time.Sleep(3 * time.Second)
	return older, b.hold(put("a", 2))
}

// ADR 0028. The flight of a superseded message ends in its first turn without a call to SQS, and
// receive acknowledges the message when it returns.
func TestASupersededMessageLeavesAndIsAcknowledgedWhenItReturns(t *testing.T) {
	stage{}.play(t, func(b *bench) {
		older, newer := b.superseded()
		if turns := b.fly(older, 1); turns != 1 {
			b.Errorf("%d turns of the older flight, want 1", turns)
		}
		b.Noted(journal.LeftSuperseded, 1)
		b.Noted(journal.Extended, 0)
		b.Noted(journal.Deleted, 0)
		b.delivers(newer, 1, "a", "2")
		b.inQueue(1)
		if s := b.comeBack(1); !s.Done {
			b.Error("the message is held again, want it acknowledged")
		}
		b.Noted(journal.Stale, 1)
		b.Noted(journal.Held, 2) // v1 and v2, each held once
		b.inQueue(0)
	})
}

// No message is acknowledged because a newer version is pending. If the newer version becomes a
// dead letter, the older version is written when its message returns.
func TestAVersionThatLeftIsWrittenWhereTheNewerOneDies(t *testing.T) {
	stage{}.play(t, func(b *bench) {
		older, newer := b.superseded()
		b.fly(older, 1)
		b.rejects("a", 1)
		b.delivers(newer, 2, "a", "")
		b.delivers(b.comeBack(1), 2, "a", "1")
		b.inQueue(0)
	})
}

// A message that returned too early stays in its flight. It leaves only once, so the cap applies to
// it.
func TestAMessageLeavesOnce(t *testing.T) {
	cfg := func(c *config.Config) { c.Debounce.MaxWait = time.Minute }
	stage{cfg: cfg}.play(t, func(b *bench) {
		begin := time.Now()
		older, _ := b.superseded() // the flight of the newer version is lost
		b.fly(older, 1)
		b.delivers(b.comeBack(1), 9, "a", "1")
		b.Noted(journal.LeftSuperseded, 1)
		if at := time.Since(begin); at < 70*time.Second || at > 75*time.Second {
			b.Errorf("written after %s, want the cap and the cap grace: 70 s", at)
		}
	})
}

// A superseded message stays in its flight if the newer version is not due before the message
// returns, or may not be written by then.
func TestASupersededMessageStays(t *testing.T) {
	for name, c := range map[string]struct {
		cfg    func(*config.Config)
		bodies []string
		before func(b *bench)
		leaves bool
	}{
		"a flight of a hundred messages": {bodies: many(100, put, "doc-"), leaves: true},
		"a flight of more messages":      {bodies: many(101, put, "doc-")},
		"beside a version that is not superseded": {
			bodies: []string{put("a", 1), put("b", 5)},
			before: func(b *bench) { b.leased(doc("b"), time.Minute) },
		},
		"the circuit is open": {before: func(b *bench) {
			b.Write(shard.Trip("search", now(), now().Add(time.Minute), 1))
		}},
		"the sink throttles": {before: func(b *bench) {
			b.Change(shard.HealthRow("search"), func(r *shard.Row) { r.Rate, r.RateAt = 5_000, now() })
		}},
		"more traffic is expected than a queue may hold for that time": {
			cfg: func(c *config.Config) { c.Queues.ExpectedRate = 2_001 },
		},
		"the message is visible again before the newer version is due": {
			cfg: func(c *config.Config) { c.Debounce.Quiet, c.Debounce.MaxWait = 20*time.Second, time.Minute },
		},
	} {
		t.Run(name, func(t *testing.T) {
			stage{cfg: c.cfg}.play(t, func(b *bench) {
				bodies := c.bodies
				if bodies == nil {
					bodies = []string{put("a", 1)}
				}
				s := b.hold(bodies...)
				time.Sleep(3 * time.Second)
				for _, body := range bodies {
					if e := b.EventOf(body); e.Version == "1" {
						b.admit(put(e.Doc.ID(), 2))
					}
				}
				if c.before != nil {
					c.before(b)
				}
				if s = b.turn(s); s.Done != c.leaves {
					b.Errorf("done %v, want the messages to leave: %v", s.Done, c.leaves)
				}
			})
		})
	}
}

// A message leaves only if all remaining messages of the flight leave.
func TestAMessageWithAnotherEventStays(t *testing.T) {
	stage{}.play(t, func(b *bench) {
		s := b.holdOn(flight.Live, removed("a@1", "b@1"))
		time.Sleep(3 * time.Second)
		newer := b.holdOn(flight.Live, removed("a@2"))
		b.leased("content#b/b", 10*time.Second)
		s = b.turn(s)
		b.Noted(journal.LeftSuperseded, 0)
		b.fly(newer, 1)
		b.fly(s, 9)
		b.Noted(journal.Committed, 2)
		b.Noted(journal.Superseded, 1)
		b.inQueue(0)
	})
}
