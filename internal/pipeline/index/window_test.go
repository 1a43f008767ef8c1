// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

// beside adds the collection "slow" to the settings. The collection has a long window.
func beside(c *config.Config) {
	quiet, most := 5*time.Minute, 20*time.Minute
	c.Collections["slow"] = config.Collection{Quiet: &quiet, MaxWait: &most}
	c.DefaultCollection = "content"
}

func slowly(body string) string { return body[:len(body)-1] + `,"collection":"slow"}` }

// visibility counts the messages whose visibility is changed after this call.
func (b *bench) visibility() *int {
	n := new(int)
	b.inject = usecasetest.On("ChangeMessageVisibilityBatch", func(op fault.Op) {
		*n += op.Count
	})
	return n
}

// One batch has a message with a short window and one with a long window. An Express execution
// writes the short one in time. The other message waits in a Standard execution, and receive
// extended it only once.
func TestALongWindowBesideAShortOne(t *testing.T) {
	stage{cfg: beside}.play(t, func(b *bench) {
		asked := b.visibility()
		begin := time.Now()
		s := b.hold(put("a", 1), slowly(put("a", 1)))
		if s = b.turn(s); !s.Done || len(b.launched.list) != 2 {
			b.Fatalf("%+v after the short window, want the flight to continue in a second execution", s)
		}
		b.holds("a", "1")
		if n := b.Notes.Of(journal.Committed); n[0].At.Sub(begin) > 6*time.Second {
			b.Errorf("the document with the short window was written after %s, which is wrong", n[0].At.Sub(begin))
		}
		s = b.launched.list[1]
		if b.launched.list[0].Kind != flight.Express || s.Kind != flight.Standard {
			b.Errorf("executions of kind %s and %s, want express and standard", b.launched.list[0].Kind, s.Kind)
		}
		if turns := b.fly(s, 1); turns != 1 {
			b.Errorf("%d turns for the long window, want one", turns)
		}
		n := b.Notes.Of(journal.Committed)
		if at := n[1].At.Sub(begin); at < 5*time.Minute || at > 5*time.Minute+time.Second {
			b.Errorf("the document with the long window was written after %s, which is wrong", at)
		}
		if *asked != 0 {
			b.Errorf("index extended %d messages, although receive had extended them", *asked)
		}
		b.inQueue(0)
	})
}

// A flight that waits long continues in a Standard execution if one can be started. Otherwise the
// flight waits in several Express executions, one after the other.
func TestALongWaitStaysWhereTheOtherKindCannotBeStarted(t *testing.T) {
	usecasetest.Table(t, stage{cfg: beside}.play, map[string]string{
		"start": "StartExecution", "checkpoint": "PutNext",
	}, func(b *bench, calls string) {
		begin := time.Now()
		s := b.hold(put("a", 1), slowly(put("a", 1)))
		b.inject = usecasetest.Where(fault.FailBefore, func(op fault.Op) bool {
			return op.Call == calls && time.Since(begin) < time.Minute
		})
		for legs := 1; ; {
			if s = b.turn(s); !s.Done {
				if s.Kind != flight.Express ||
					s.Wake().Sub(s.Started.Time()) > 5*time.Minute-b.Config.Index.Timeout {
					b.Fatalf("a %s execution wakes %s after it began, which is too late", s.Kind, s.Wake().Sub(s.Started.Time()))
				}
				continue
			}
			if len(b.launched.list) == legs {
				break
			}
			legs++
			s = b.launched.list[legs-1]
		}
		n := b.Notes.Of(journal.Committed)
		if at := n[1].At.Sub(begin); len(n) != 2 || at < 5*time.Minute || at > 5*time.Minute+time.Second {
			b.Errorf("%d commits, the long window's after %s", len(n), at)
		}
		b.Noted(journal.LaunchLost, 0)
		b.Noted(journal.Received, 1)
		b.inQueue(0)
	})
}

// A burst in a long window is one write. An older message leaves its flight in the first turn, and
// stays invisible until the last version of the burst is written. It is acknowledged when it
// returns.
func TestABurstInALongWindowIsOneWrite(t *testing.T) {
	cfg := func(c *config.Config) { c.Debounce.Quiet, c.Debounce.MaxWait = 5*time.Minute, 20*time.Minute }
	stage{cfg: cfg}.play(t, func(b *bench) {
		var flights []flight.State
		begin := time.Now()
		for v := range 5 {
			flights = append(flights, b.hold(put("a", v+1)))
			time.Sleep(time.Minute)
		}
		for _, s := range flights {
			b.fly(s, 1)
		}
		n := b.Notes.Of(journal.Committed)
		if at := n[0].At.Sub(begin); len(n) != 1 || at < 9*time.Minute || at > 9*time.Minute+time.Second {
			b.Errorf("%d writes, the first after %s, want one write 5m after the last event", len(n), at)
		}
		b.holds("a", "5")
		b.Noted(journal.LeftSuperseded, 4)
		for back := 0; back < 4; {
			for b.live.Counts().Visible == 0 {
				time.Sleep(time.Second)
			}
			back += b.live.Counts().Visible
			if s := b.receive(flight.Live); !s.Done {
				b.Errorf("the message is held again after %s, want it acknowledged", time.Since(begin))
			}
		}
		b.inQueue(0)
		b.Noted(journal.Stale, 4)
	})
}

// If the newer version of a long window is poison, the older version is written when its message
// returns.
func TestAVersionThatLeftALongWindowIsWrittenWhereTheNewerOneDies(t *testing.T) {
	cfg := func(c *config.Config) { c.Debounce.Quiet, c.Debounce.MaxWait = 5*time.Minute, 20*time.Minute }
	stage{cfg: cfg}.play(t, func(b *bench) {
		begin := time.Now()
		older := b.hold(put("a", 1))
		time.Sleep(time.Minute)
		newer := b.hold(put("a", 2))
		b.fly(older, 1)
		b.rejects("a", 1)
		b.delivers(newer, 2, "a", "")
		b.delivers(b.comeBack(1), 2, "a", "1")
		b.inQueue(0)
		if at := time.Since(begin); at > 11*time.Minute {
			b.Errorf("the older version was written after %s, which is wrong", at)
		}
	})
}

// A document may be written once in ten minutes. Its next version waits in a flight without a
// lease, invisible, and then only the newest waiting version is written.
func TestAPaceThatIsLongerThanTheLease(t *testing.T) {
	cfg := func(c *config.Config) { c.Debounce.MinInterval = 10 * time.Minute }
	stage{cfg: cfg}.play(t, func(b *bench) {
		b.fly(b.hold(put("a", 1)), 1)
		wrote := b.Row(doc("a")).LastWrite.Time()
		older := b.hold(put("a", 2))
		time.Sleep(2 * time.Minute)
		newer := b.hold(put("a", 3))
		for _, s := range []flight.State{older, newer} {
			late := s.Wake().Sub(wrote) - 10*time.Minute
			if s.Kind != flight.Standard || late < 0 || late > 2*time.Second {
				b.Errorf("a %s execution wakes %s after the document may be written", s.Kind, late)
			}
		}
		time.Sleep(time.Until(older.Wake()) - time.Second)
		if c := b.live.Counts(); c.Visible != 0 {
			b.Errorf("queue %+v: a message is visible before its turn", c)
		}
		if b.Row(doc("a")).Leased(now()) {
			b.Error("a lease is held during the wait")
		}
		b.fly(older, 1) // the older version has its turn first, and leaves the write to the newer version
		b.holds("a", "1")
		b.delivers(newer, 1, "a", "3")
		b.comeBack(1)
		b.inQueue(0)
		b.Noted(journal.Committed, 2)
	})
}

// A sink is away during a long window. The message returns several times, and is written when its
// window ends, not earlier.
func TestAnOutageDoesNotCutALongWindowShort(t *testing.T) {
	stage{cfg: func(c *config.Config) {
		c.Debounce.Quiet, c.Debounce.MaxWait = 15*time.Minute, time.Hour
	}}.play(t, func(b *bench) {
		begin := time.Now()
		trip := func(open time.Duration) {
			b.Change(shard.HealthRow("search"), func(r *shard.Row) { r.Level, r.OpenUntil = 7, now().Add(open) })
		}
		trip(4 * time.Minute)
		if s := b.hold(put("a", 1)); !s.Done {
			b.Fatal("the message is held in a flight while the sink is away")
		}
		time.Sleep(5 * time.Minute)
		b.Change(shard.HealthRow("search"), func(r *shard.Row) { r.Level, r.OpenUntil = 0, 0 })
		s := b.receive(flight.Live)
		if in := s.Wake().Sub(begin); in < 15*time.Minute || in > 15*time.Minute+time.Second {
			b.Errorf("the flight wakes after %s, want 15m, the window", in)
		}
		b.delivers(s, 1, "a", "1")
	})
}

// SQS's limit of twelve hours applies to many short waits as well as to one long wait.
func TestTwelveHoursHoldForLongWindows(t *testing.T) {
	stage{cfg: func(c *config.Config) {
		c.Debounce.Quiet, c.Debounce.MaxWait = 15*time.Minute, time.Hour
	}}.play(t, func(b *bench) {
		s := b.hold(put("a", 1))
		begin := time.Now()
		for i := 0; !s.Done || len(b.launched.list) > i+1; {
			if s.Done {
				i = len(b.launched.list) - 1
				s = b.launched.list[i]
			}
			b.leased(doc("a"), 50*time.Minute)
			s = b.turn(s)
		}
		b.Noted(journal.TwelveHours, 1)
		if at := b.Notes.Of(journal.TwelveHours)[0].At.Sub(begin); at > queue.MaxHold {
			b.Errorf("the message is given back after %s, which is wrong", at)
		}
		s = b.comeBack(1)
		b.Change(doc("a"), func(r *shard.Row) { r.Owner, r.LeaseUntil, r.Claimed = "", 0, "" })
		b.delivers(s, 1, "a", "1")
		b.inQueue(0)
	})
}
