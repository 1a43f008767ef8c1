// SPDX-License-Identifier: Apache-2.0

package receive_test

import (
	"fmt"
	"slices"
	"strconv"
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

func millis(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }

func in(collection, body string) string {
	return body[:len(body)-1] + `,"collection":"` + collection + `"}`
}

// Every transition of a Standard execution costs money. So a Standard execution waits for all
// documents that are due within a window after the first, and not for later ones. An Express
// execution wakes for the first document.
func TestAStandardFlightWakesOnceForAWindow(t *testing.T) {
	soon, slow := 7*time.Second, 20*time.Second
	for kind, want := range map[config.FlightKind]time.Duration{
		config.FlightExpress:  5 * time.Second,
		config.FlightStandard: soon,
	} {
		t.Run(string(kind), func(t *testing.T) {
			play(t, func(c *config.Config) {
				c.Flight.Kind = kind
				c.Collections["soon"], c.Collections["slow"] = config.Collection{Quiet: &soon}, config.Collection{Quiet: &slow}
				c.DefaultCollection = "content"
			}, func(b *bench) {
				begin := time.Now()
				b.send(put("a", 1), in("soon", put("a", 1)), in("slow", put("a", 1)))
				b.poll()
				time.Sleep(time.Minute)
				b.mu.Lock()
				defer b.mu.Unlock()
				if len(b.woken) != 1 || !b.woken[0].Wake().Equal(begin.Add(want)) {
					b.Fatalf("executions woke %+v, want one %s after the batch", b.woken, want)
				}
				if n := len(slices.Collect(left(b.woken[0], 4))); n != 3 {
					b.Errorf("%d items are left, want all", n)
				}
			})
		})
	}
}

// If the setting names no kind, the first sleep of a flight decides its kind. An Express execution
// wakes before its time limit.
func TestTheKindOfAFlightFollowsFromItsWait(t *testing.T) {
	for name, c := range map[string]struct {
		set, want config.FlightKind
		quiet     time.Duration
		wakes     time.Duration
	}{
		"a short wait":                     {config.FlightAuto, config.FlightExpress, 5 * time.Second, 5 * time.Second},
		"just below the price of Standard": {config.FlightAuto, config.FlightExpress, 94 * time.Second, 94 * time.Second},
		"the price of Standard":            {config.FlightAuto, config.FlightStandard, 95 * time.Second, 95 * time.Second},
		"ten minutes":                      {config.FlightAuto, config.FlightStandard, 10 * time.Minute, 10 * time.Minute},
		"ten minutes, and Express is set":  {config.FlightExpress, config.FlightExpress, 10 * time.Minute, 4 * time.Minute},
		"a short wait and Standard is set": {config.FlightStandard, config.FlightStandard, 5 * time.Second, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(cfg *config.Config) {
				cfg.Flight.Kind, cfg.Debounce.Quiet, cfg.Debounce.MaxWait = c.set, c.quiet, time.Hour
			}, func(b *bench) {
				begin := time.Now()
				b.send(put("a", 1))
				b.poll()
				time.Sleep(time.Hour)
				b.mu.Lock()
				defer b.mu.Unlock()
				if s := b.woken[0]; s.Kind != c.want || !s.Wake().Equal(begin.Add(c.wakes)) {
					b.Errorf("a %s execution woke after %s, want %s after %s", s.Kind, s.Wake().Sub(begin), c.want, c.wakes)
				}
			})
		})
	}
}

// The queue's visibility stays short. A message that waits longer is extended to its own turn. The
// other messages are not extended, so they return soon if their flight is lost.
func TestOnlyWhatWaitsLongIsExtended(t *testing.T) {
	slow, slower := 5*time.Minute, 15*time.Minute
	play(t, func(c *config.Config) {
		c.Debounce.MaxWait = time.Hour
		c.Collections["slow"], c.Collections["slower"] = config.Collection{Quiet: &slow}, config.Collection{Quiet: &slower}
		c.DefaultCollection = "content"
	}, func(b *bench) {
		begin := time.Now()
		b.send(put("a", 1), in("slow", put("a", 1)), in("slower", put("a", 1)))
		b.poll() // the flight's only turn does nothing, as if the flight were lost
		for i, want := range []time.Duration{b.Config.Queues.Visibility, slow, slower} {
			for b.live.Counts().Visible == 0 {
				time.Sleep(time.Second)
			}
			late := time.Since(begin) - want
			reach := b.Config.Index.Extended(b.Config.Queues.Live.Window)
			if i > 0 && (late < reach || late > reach+2*time.Second) || i == 0 && late > time.Second {
				b.Errorf("message %d is visible again %s after its time", i, late)
			}
			back, err := b.live.Receive(b.Context(), 10, 0)
			if err != nil || len(back) != 1 {
				b.Fatalf("%d messages are visible again (%v), want one at a time", len(back), err)
			}
			b.live.Delete(b.Context(), []string{back[0].Receipt})
		}
	})
}

// In a backlog each message has a different turn. All messages are extended within the function's
// time.
func TestABacklogOfALongWindowIsExtendedInTime(t *testing.T) {
	play(t, func(c *config.Config) {
		c.Debounce.Quiet, c.Debounce.MaxWait = 15*time.Minute, time.Hour
	}, func(b *bench) {
		const messages = 600
		for n := range messages {
			b.send(put(fmt.Sprint("doc-", n), 1))
			time.Sleep(time.Second)
		}
		b.inject = usecasetest.On("ChangeMessageVisibilityBatch", func(fault.Op) {
			time.Sleep(100 * time.Millisecond)
		})
		batch, err := b.live.Receive(b.Context(), messages, 0)
		if err != nil || len(batch) != messages {
			b.Fatalf("%d messages received: %v", len(batch), err)
		}
		begin := time.Now()
		h, _ := b.handler()
		h.Handle(b.Context(), batch)
		if took := time.Since(begin); took > b.Config.Receive.Timeout {
			b.Errorf("the batch took %s, but the function has only %s", took, b.Config.Receive.Timeout)
		}
		time.Sleep(b.Config.Queues.Visibility + time.Second)
		if c := b.live.Counts(); c.Visible != 0 || c.InFlight != messages {
			b.Errorf("queue %+v, want all messages invisible until their turns", c)
		}
	})
}

// A message that returns before its window is over is not written earlier. It returns early if its
// flight could not extend its visibility, or if its sink was away.
func TestARedeliveredMessageKeepsItsWindow(t *testing.T) {
	play(t, func(c *config.Config) {
		c.Debounce.Quiet, c.Debounce.MaxWait = 5*time.Minute, 20*time.Minute
	}, func(b *bench) {
		begin := time.Now()
		b.inject = usecasetest.Fails("ChangeMessageVisibilityBatch", fault.FailBefore, 9)
		b.send(put("a", 1))
		b.poll()
		b.inject = usecasetest.Healthy
		time.Sleep(b.Config.Queues.Visibility + time.Second)
		b.poll()
		time.Sleep(time.Hour)
		b.mu.Lock()
		defer b.mu.Unlock()
		if len(b.woken) != 2 {
			b.Fatalf("%d executions, want the second one to hold the message, too", len(b.woken))
		}
		for _, s := range b.woken {
			if !s.Wake().Equal(begin.Add(5 * time.Minute)) {
				b.Errorf("an execution woke after %s, want 5m", s.Wake().Sub(begin))
			}
		}
	})
}

// A version may arrive or return after the cap, when a newer version is already pending. It then
// waits for the cap grace, so that the newest version is written.
func TestAnOvertakenVersionIsNotLate(t *testing.T) {
	play(t, nil, func(b *bench) {
		b.send(put("a", 5))
		b.poll()
		cap := b.Row(doc("a")).BurstStart.Add(b.Config.Debounce.MaxWait)
		time.Sleep(time.Until(cap.Time()) + time.Second)
		b.send(put("a", 4), put("a", 6))
		b.poll()
		m := b.manifests()
		for _, r := range m[len(m)-1].Records {
			if e := r.Events[0]; (e.Admitted >= cap) != (e.Key == b.EventOf(put("a", 6)).Key) || e.Admitted == 0 {
				b.Errorf("%s was admitted at %s, but the cap is %s: only the newest version counts as after the cap", e.Key, e.Admitted.Time(),
					cap.Time())
			}
		}
	})
}

func left(s flight.State, n int) func(func(int) bool) {
	return func(yield func(int) bool) {
		for i := range n {
			if s.Remaining.Has(i) && !yield(i) {
				return
			}
		}
	}
}

// A flight must never believe that its messages become visible later than they do in SQS. The
// visibility of the first message of the batch started before the batch window.
func TestAFlightKnowsWhenItsMessagesBecomeVisible(t *testing.T) {
	for _, lane := range []flight.Lane{flight.Live, flight.Bulk} {
		t.Run(string(lane), func(t *testing.T) {
			play(t, nil, func(b *bench) {
				window := b.Config.Queues.Live.Window
				if lane == flight.Bulk {
					window = b.Config.Queues.Bulk.Window
				}
				polled := time.Now()
				b.send(put("a", 1))
				batch, err := b.live.Receive(b.Context(), 10, 0)
				if err != nil {
					b.Fatal(err)
				}
				time.Sleep(window + 5*time.Second) // a full batch window and the slowest start of the function
				h, _ := b.handler()
				h.Lane = lane
				h.Handle(b.Context(), batch)
				time.Sleep(10 * time.Second)
				b.mu.Lock()
				defer b.mu.Unlock()
				visible := polled.Add(b.Config.Queues.Visibility)
				if got := b.woken[0].VisibleUntil.Time(); got.After(visible) ||
					got.Before(visible.Add(-2*time.Second)) {
					b.Errorf("the flight expects visibility at %s, but it is %s", got, visible)
				}
				if m := b.manifests()[0]; m.Received.After(polled.Add(window)) || m.Lane != lane {
					b.Errorf("twelve hours of the %s lane counted from %s, polled at %s", m.Lane, m.Received, polled)
				}
			})
		})
	}
}

func TestAManifestHoldsWhatIsNotDone(t *testing.T) {
	play(t, several, func(b *bench) {
		body := removed("done@01", "open@02", "new@03")
		events := b.Sources.Decode(queue.Message{
			Body:       body,
			Attributes: map[string]queue.Attribute{queue.AttrSource: queue.Text("s3")},
		})
		b.Change(doc("b/done"), func(r *shard.Row) { r.Committed = events[0].Event.Key })
		b.Change(doc("b/open"), func(r *shard.Row) { r.Committed = "\x00" })
		out := queue.Outgoing{Body: body, Attributes: map[string]queue.Attribute{queue.AttrSource: queue.Text("s3")}}
		if errs := b.live.Send(b.Context(), []queue.Outgoing{out}); errs != nil {
			b.Fatal(errs)
		}
		b.keeps(1, "the notification is kept until its last event is done")
		m := b.manifests()
		if len(m) != 1 || len(m[0].Records) != 1 {
			b.Fatalf("flights %+v, want one of one message", m)
		}
		var at []int
		for _, e := range m[0].Records[0].Events {
			at = append(at, e.Index)
			if e.Op != shard.Delete || e.Class != shard.ClassSeq || e.Admitted != now() {
				b.Errorf("entry %+v, want a delete with a sequencer, admitted at this time", e)
			}
		}
		if !slices.Equal(at, []int{1, 2}) {
			b.Errorf("events %v of the message are held, want 1 and 2", at)
		}
		if r := m[0].Records[0].Message; r.Body != body || r.Receipt == "" ||
			r.Attributes[queue.AttrSource].String != "s3" {
			b.Errorf("message %+v, want it as it was received", r)
		}
	})
}

// If one event of a message could not be judged, the message stays out of the flight. Nothing in
// the flight may count the message as done.
func TestAFailedEventTakesItsMessageOutOfTheFlight(t *testing.T) {
	play(t, several, func(b *bench) {
		b.inject = usecasetest.Where(fault.FailBefore, func(op fault.Op) bool {
			return op.Call == "ADMIT" && op.Doc == doc("b/two")
		})
		out := queue.Outgoing{
			Body:       removed("one@01", "two@01"),
			Attributes: map[string]queue.Attribute{queue.AttrSource: queue.Text("s3")},
		}
		if errs := b.live.Send(b.Context(), []queue.Outgoing{out}); errs != nil {
			b.Fatal(errs)
		}
		b.send(put("c", 1))
		b.keeps(2, "both")
		if m := b.manifests(); len(m) != 1 || len(m[0].Records) != 1 || m[0].Records[0].Events[0].Doc != doc("c") {
			b.Errorf("flights %+v, want one with the other message", m)
		}
	})
}

func TestAFlightThatCannotBeStartedKeepsItsMessages(t *testing.T) {
	for _, call := range []string{"PutManifest", "StartExecution"} {
		t.Run(call, func(t *testing.T) {
			play(t, nil, func(b *bench) {
				tries := 0
				b.inject = decide(func(op fault.Op) fault.Verdict {
					if op.Call == call {
						tries++
						return fault.FailBefore
					}
					return fault.OK
				})
				b.send(put("a", 1))
				b.keeps(1, "the message")
				b.Noted(journal.LaunchLost, 1)
				b.Noted(journal.Launched, 0)
				if tries < 2 {
					b.Errorf("%d tries, want the call repeated in this invocation", tries)
				}
				b.inject = decide(func(fault.Op) fault.Verdict { return fault.OK })
				time.Sleep(41 * time.Second)
				b.poll()
				b.Noted(journal.Launched, 1)
			})
		})
	}
}

func TestAnEventOfTheFutureHidesNothing(t *testing.T) {
	type row struct {
		ahead                       time.Duration
		held, delayed, stored, dead int
	}
	usecasetest.Table(t, stage(nil).play, map[string]row{
		"within quiet":                    {5 * time.Second, 2, 0, 0, 0},
		"within SQS's longest delay":      {10 * time.Minute, 1, 1, 0, 0},
		"just beyond SQS's longest delay": {15 * time.Minute, 1, 0, 1, 0},
		"later":                           {2 * time.Hour, 1, 0, 1, 0},
		"too far":                         {28*24*time.Hour + time.Minute, 1, 0, 0, 1},
	}, func(b *bench, c row) {
		when := time.Now().Add(c.ahead)
		later := notBefore(put("a", 2), when)
		b.send(put("a", 1), later)
		if kept := b.poll(); len(kept) != c.held {
			b.Errorf("kept %v, want %d messages", kept, c.held)
		}
		pending := b.EventOf(put("a", 1)).Key
		if c.held == 2 {
			pending = b.EventOf(later).Key
		}
		if r := b.Row(doc("a")); r.Pending != pending {
			b.Errorf("row %+v, want nothing pending that is not due soon", r)
		}
		items, _, err := b.schedule.Due(b.Context(), when, "", 10)
		if err != nil || len(items) != c.stored {
			b.Errorf("%d items are stored (%v), want %d", len(items), err, c.stored)
		}
		if n := b.live.Counts().Delayed; n != c.delayed {
			b.Errorf("%d copies wait in the queue, want %d", n, c.delayed)
		}
		b.WantLetters(b.dead, c.dead)
		if c.delayed == 1 {
			b.wantCopy(when)
		}
	})
}

// wantCopy waits for the copy of a scheduled event. It checks that the copy arrives exactly to the
// second and is not newer than its original.
func (b *bench) wantCopy(when time.Time) {
	b.Helper()
	sent := time.Now()
	time.Sleep(time.Until(when) - time.Second)
	if n := b.live.Counts().Delayed; n != 1 {
		b.Error("the copy arrived more than a second early")
	}
	time.Sleep(2 * time.Second)
	got, err := b.live.Receive(b.Context(), 10, 0)
	if err != nil {
		b.Fatal(err)
	}
	i := slices.IndexFunc(got, func(m queue.Message) bool { return m.ReceiveCount == 1 })
	if i < 0 || !got[i].FirstSent().Equal(sent) || got[i].Attributes[queue.AttrFirstSent].String != millis(sent) {
		b.Errorf("received %+v, want a copy that says when its original was sent", got)
	}
}

func TestAScheduledEventThatCannotBeStoredKeepsItsMessage(t *testing.T) {
	for name, ahead := range map[string]time.Duration{
		"PutScheduled":     2 * time.Hour,
		"SendMessageBatch": 5 * time.Minute,
	} {
		t.Run(name, func(t *testing.T) {
			play(t, nil, func(b *bench) {
				b.inject = usecasetest.Always(name, fault.FailBefore)
				b.send(notBefore(put("a", 1), time.Now().Add(ahead)))
				b.keeps(1, "the message")
				b.Noted(journal.Scheduled, 0)
				b.Noted(journal.Failed, 1)
			})
		})
	}
}

// A copy needs an additional attribute of a few bytes. If the queue has no room for it, the event
// is stored as an item.
func TestAScheduledEventTooLargeToBeMarkedIsStored(t *testing.T) {
	play(t, nil, func(b *bench) {
		when := time.Now().Add(5 * time.Minute)
		body := notBefore(put("a", 1), when)
		body += string(slices.Repeat([]byte{' '}, queue.MaxBytes-len(body)))
		b.send(body)
		b.keeps(0, "the event is stored")
		items, _, err := b.schedule.Due(b.Context(), when, "", 10)
		if err != nil || len(items) != 1 || items[0].Body != body {
			b.Errorf("%d items are stored (%v), want the message as it was", len(items), err)
		}
	})
}

// The table is unreachable, or no flight can be stored or started. The messages wait longer each
// time, up to a quarter of an hour, so that they do not use up receives.
func TestWhatCannotBeHeldWaitsLongerEachTime(t *testing.T) {
	type row struct {
		fails func(op fault.Op) bool
		step  journal.Step
	}
	usecasetest.Table(t, stage(nil).play, map[string]row{
		"table":     {func(op fault.Op) bool { return op.Service == fault.Table }, journal.Unreachable},
		"manifest":  {func(op fault.Op) bool { return op.Call == "PutManifest" }, journal.LaunchLost},
		"execution": {func(op fault.Op) bool { return op.Call == "StartExecution" }, journal.LaunchLost},
	}, func(b *bench, tt row) {
		b.inject = usecasetest.Where(fault.FailBefore, func(op fault.Op) bool { return tt.fails(op) })
		b.send(put("a", 1))
		for i := range 70 { // more often than the wait can be doubled
			want := 15 * time.Minute
			if i < 5 {
				want = 40 * time.Second << i
			}
			if kept := b.poll(); len(kept) != 1 {
				b.Fatalf("receive %d: kept %v, want the message", i+1, kept)
			}
			time.Sleep(want - 2*time.Second) // the tries of this invocation took less than a second
			if b.live.Counts().Visible != 0 {
				b.Errorf("receive %d: the message is visible before %s have passed", i+1, want)
			}
			time.Sleep(3 * time.Second)
			if b.live.Counts().Visible != 1 {
				b.Fatalf("receive %d: the message is not visible after %s", i+1, want)
			}
		}
		b.Noted(tt.step, 70)
		b.Noted(journal.Launched, 0)
	})
}
