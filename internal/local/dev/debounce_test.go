// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/operator/feed"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink/memorysink"
)

// The tests of this file play the flows of docs/faults.md about bursts, flights and the queue.

func TestNeverQuietDocumentIsWrittenEveryMaxWait(t *testing.T) {
	quiet2 := func(c *config.Config) {
		c.Debounce.Quiet = 2 * time.Second
		c.Queues.Live.Window, c.Queues.Bulk.Window = time.Second, time.Second
		c.Queues.BurstSpread = time.Second
	}
	for _, pollers := range []int{1, 5} {
		t.Run(fmt.Sprintf("%d pollers", pollers), func(t *testing.T) {
			stage{cfg: quiet2, pollers: pollers}.play(t, func(s *scene) {
				const changes = 600 // five minutes
				begin := time.Now()
				sent := map[string]time.Time{}
				for v := 1; v <= changes; v++ {
					sent[fmt.Sprint(v)] = time.Now()
					s.send(put(0, "a", v))
					s.wait(500 * time.Millisecond)
				}
				end := time.Now()
				var writes []journal.Note
				for _, n := range s.notes.Of(journal.Committed) {
					if n.At.Before(end) {
						writes = append(writes, n)
					}
				}
				maxWait, grace := s.e.cfg.Debounce.MaxWait, s.e.cfg.Debounce.CapGrace
				last := begin
				for _, n := range writes {
					if gap := n.At.Sub(last); gap > maxWait+grace {
						t.Errorf("%s without a write, want one every %s", gap, maxWait)
					}
					last = n.At
					version := n.Key.VersionText()
					age := n.At.Sub(sent[version])
					if limit := grace + 5*time.Second; age > limit {
						t.Errorf("v%s written when it was %s old, want at most %s", version, age, limit)
					}
				}
				if least := int(end.Sub(begin) / (maxWait + grace)); len(writes) < least {
					t.Errorf("%d writes in %s, want at least %d", len(writes), end.Sub(begin), least)
				}
				if most := int(end.Sub(begin)/maxWait) + 2; len(writes) > most {
					t.Errorf("%d writes in %s, want at most %d", len(writes), end.Sub(begin), most)
				}
				s.settle()
				s.holds("a", fmt.Sprint(changes))
			})
		})
	}
}

func TestEventBeforeMaxWaitDoesNotPushPastIt(t *testing.T) {
	stage{}.play(t, func(s *scene) {
		begin := time.Now()
		for v := 1; time.Since(begin) < 29*time.Second; v++ {
			s.send(put(0, "a", v))
			s.wait(2 * time.Second)
		}
		s.wait(29500*time.Millisecond - time.Since(begin))
		s.send(put(0, "a", 99)) // in the last second before max wait
		s.settle()
		first := s.notes.Of(journal.Committed)[0]
		cfg := s.e.cfg.Debounce
		if limit := cfg.MaxWait + s.e.cfg.Queues.Live.Window + cfg.CapGrace +
			2*time.Second; first.At.Sub(begin) > limit {
			t.Errorf("first write %s after the first event, want at most %s", first.At.Sub(begin), limit)
		}
		s.holds("a", "99")
	})
}

func TestOldFlightThatWakesLateDoesNothing(t *testing.T) {
	stage{}.play(t, func(s *scene) {
		// the turn of the old flight fails and is retried after a lease
		s.inject.next("GetManifest", fault.FailBefore, 4)
		s.send(put(0, "a", 1))
		s.wait(4 * time.Second)
		s.send(put(0, "a", 2))
		s.wait(9 * time.Second)
		s.noted(journal.Committed, 1)
		s.settle()
		s.writes("a", 1)
		s.holds("a", "2")
		s.noted(journal.LeaseLost, 0)
	})
}

func TestLostFlightIsRecoveredByRedelivery(t *testing.T) {
	for name, lose := range map[string]func(s *scene){
		"start lost":         func(s *scene) { s.inject.next("StartExecution", fault.FailBefore, 4) },
		"manifest not saved": func(s *scene) { s.inject.next("PutManifest", fault.FailBefore, 4) },
		"stopped by an operator": func(s *scene) {
			s.wait(3 * time.Second)
			list, _, err := s.e.Flights.List(s.ctx, "", 10)
			if err != nil || len(list) != 1 || s.p.lane(flight.Live).machine.Stop(list[0].ID) != 1 {
				t.Errorf("could not stop the flight of %v (%v)", list, err)
			}
		},
		// each of four turns makes four calls
		"retries exhausted":   func(s *scene) { s.inject.next("GetManifest", fault.FailBefore, 4*4) },
		"invocation killed":   func(s *scene) { s.inject.next("StartExecution", fault.CrashBefore, 1) },
		"killed after start":  func(s *scene) { s.inject.next("StartExecution", fault.CrashAfter, 1) },
		"killed before admit": func(s *scene) { s.inject.next("ADMIT", fault.CrashBefore, 1) },
		"killed after admit":  func(s *scene) { s.inject.next("ADMIT", fault.CrashAfter, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			stage{}.play(t, func(s *scene) {
				s.send(put(0, "a", 1), put(0, "a", 2))
				lose(s)
				r := s.settle()
				s.holds("a", "2")
				s.writes("a", 1)
				if late := r.Freshness.Max > 60_000; late && name != "retries exhausted" {
					t.Errorf("recovered after %d ms, want within a minute", r.Freshness.Max)
				}
				if n := len(s.notes.Of(journal.Launched)); name == "retries exhausted" && n != 2 {
					t.Errorf("%d flights, want one that dies and one that redelivery starts", n)
				}
			})
		})
	}
}

func TestQuietZeroAndLeadingWriteEachVersionOnce(t *testing.T) {
	for name, cfg := range map[string]func(*config.Config){
		"quiet 0": func(c *config.Config) {
			c.Debounce.Quiet = 0
			c.Queues.Live = config.Lane{Batch: 10, MaxConcurrency: 20}
			c.Queues.Bulk = config.Lane{Batch: 10, MaxConcurrency: 4}
			c.Queues.BurstSpread = 0
		},
		"leading": func(c *config.Config) { c.Debounce.Leading = true },
	} {
		t.Run(name, func(t *testing.T) {
			stage{cfg: cfg}.play(t, func(s *scene) {
				for v := 1; v <= 5; v++ {
					s.send(put(0, "a", v), put(0, "a", v))
					s.wait(300 * time.Millisecond)
				}
				s.settle()
				s.holds("a", "5")
				seen := map[string]int{}
				for _, op := range s.sink.History(doc("a")) {
					if seen[op.Version]++; seen[op.Version] > 1 {
						t.Errorf("v%s written twice", op.Version)
					}
				}
				first := s.notes.Of(journal.Committed)[0]
				if wait := first.At.Sub(first.Sent); wait > 4*time.Second {
					t.Errorf("first write %s after its event, want at once (window and a second)", wait)
				}
			})
		})
	}
}

func TestHotDocumentIsCollapsed(t *testing.T) {
	stage{}.play(t, func(s *scene) {
		const events = 10_000 // a thousand a second
		for v := 1; v <= events; v++ {
			s.send(put(0, "hot", v))
			if v%10 == 0 {
				s.wait(10 * time.Millisecond)
			}
		}
		r := s.settle()
		s.holds("hot", fmt.Sprint(events))
		if r.SinkItems > 3 {
			t.Errorf("%d sink writes for one burst of ten seconds", r.SinkItems)
		}
		if perEvent := float64(r.RowWrites) / events; perEvent > 0.05 {
			t.Errorf("%.3f row writes an event, want them bounded by batches", perEvent)
		}
	})
}

func TestHotDocumentKeepsMinInterval(t *testing.T) {
	stage{cfg: func(c *config.Config) {
		c.Debounce.Quiet, c.Debounce.MinInterval = 0, 5*time.Second
		c.Queues.Live = config.Lane{Batch: 10, MaxConcurrency: 20}
		c.Queues.Bulk = config.Lane{Batch: 10, MaxConcurrency: 4}
		c.Queues.BurstSpread = 0
	}}.play(t, func(s *scene) {
		for v := 1; v <= 200; v++ {
			s.send(put(0, "hot", v))
			s.wait(100 * time.Millisecond)
		}
		s.settle()
		s.holds("hot", "200")
		var last shard.Fence
		for _, op := range s.sink.History(doc("hot")) {
			if last != 0 && op.Fence-last < 5_000_000 {
				t.Errorf("two writes %d ms apart, want minInterval of 5 s", (op.Fence-last)/1000)
			}
			last = op.Fence
		}
	})
}

func TestRefusedExtensionLeavesTheFlightRunning(t *testing.T) {
	stage{}.play(t, func(s *scene) {
		s.sink.SetDown(errDown)
		s.send(put(0, "a", 1), put(0, "b", 1))
		s.wait(3 * time.Second)
		s.deleteBehindTheFlight("a") // the receipt handle of the flight is invalid now
		s.wait(2 * time.Minute)
		s.sink.SetDown(nil)
		s.settle()
		s.holds("b", "1")
		s.holds("a", "1") // the manifest of the flight contains the body
		if n := len(s.notes.Of(journal.Received)); n != 1 {
			t.Errorf("%d receives, want the rest of the flight extended all the time", n)
		}
	})
}

func TestFailedExtensionIsRetried(t *testing.T) {
	stage{}.play(t, func(s *scene) {
		s.sink.SetDown(errDown)
		s.inject.next("ChangeMessageVisibilityBatch", fault.FailBefore, 1)
		s.send(put(0, "a", 1))
		s.wait(3 * time.Minute)
		s.sink.SetDown(nil)
		s.settle()
		s.writes("a", 1)
		if n := len(s.notes.Of(journal.Received)); n > 2 {
			t.Errorf("%d receives, want a failed extension tried again", n)
		}
	})
}

func TestLateMessagesOfABatchAreExtendedInTime(t *testing.T) {
	stage{sink: memorysink.Settings{Latency: 5 * time.Second, MaxDocuments: 500}, cfg: func(c *config.Config) {
		c.Index.MaxItemsPerTurn = 10
	}}.play(t, func(s *scene) {
		for i := range 100 {
			s.send(put(0, fmt.Sprintf("doc-%d", i), 1))
		}
		s.settle() // this takes ten turns of more than five seconds each
		for i := range 100 {
			s.writes(fmt.Sprintf("doc-%d", i), 1)
		}
		if n := len(s.notes.Of(journal.Received)); n != 1 {
			t.Errorf("%d receives, want one: late messages extended in time", n)
		}
	})
}

func TestFlightEndsBeforeTwelveHours(t *testing.T) {
	stage{}.play(t, func(s *scene) {
		s.sink.SetDown(errDown)
		s.send(put(0, "a", 1))
		s.wait(13 * time.Hour)
		s.noted(journal.TwelveHours, 1)
		// The flight that sends the probe ends. The message of the probe is invisible for some
		// minutes, and then the next flight sends the probe.
		n := s.notes.Of(journal.Received)
		if len(n) != 3 || n[1].At.Sub(n[0].At) > queue.MaxHold || n[2].At.Sub(n[1].At) > 4*time.Minute {
			t.Errorf("%d receives in thirteen hours, want three", len(n))
		}
		s.sink.SetDown(nil)
		s.settle()
		s.writes("a", 1)
	})
}

func TestFailedDeadLetterKeepsTheMessage(t *testing.T) {
	stage{}.play(t, func(s *scene) {
		s.inject.next("SendMessageBatch", fault.FailBefore, 1)
		s.send(put(0, "a", 1, `"no object"`))
		s.wait(4 * time.Second)
		if n := s.p.lane(flight.Live).queue.Counts().Total(); n != 1 {
			t.Errorf("%d messages in the queue, want the one whose dead letter could not be sent", n)
		}
		r := s.settle()
		if len(r.DeadLetters) != 1 {
			t.Errorf("%d dead letters in the end, want one", len(r.DeadLetters))
		}
	})
}

func TestS3NotificationWithTwoRecordsStaysUntilBothAreDone(t *testing.T) {
	body := `{"Records":[` + strings.Join([]string{
		s3Record("one", "0055AED6DCD90281E5"),
		s3Record("two", "0055AED6DCD90281E6"),
	}, ",") + `]}`
	stage{cfg: func(c *config.Config) {
		c.Sources = map[string]config.Source{"s3": {Kind: "s3", Collection: "content"}}
		c.DefaultSource = "s3"
	}}.play(t, func(s *scene) {
		s.sink.Script("content#bucket/two", poison("busy"))
		s.inject.when("COMMIT", func() {
			if n := s.p.lane(flight.Live).queue.Counts().Total(); n != 1 {
				t.Errorf("%d messages before both are done, want the notification to stay", n)
			}
		})
		s.send(message(body))
		r := s.settle()
		if r.Events != 2 || r.Deleted != 1 || r.Dead != 1 {
			t.Errorf("events %d, deleted %d, dead %d, want 2, 1 and 1", r.Events, r.Deleted, r.Dead)
		}
	})
}

func s3Record(key, sequencer string) string {
	return fmt.Sprintf(
		`{"eventVersion":"2.1","eventSource":"aws:s3","eventName":"ObjectRemoved:Delete","eventTime":"2026-11-20T12:00:00Z",`+
			`"s3":{"bucket":{"name":"bucket"},"object":{"key":%q,"sequencer":%q}}}`, key, sequencer)
}

// deleteBehindTheFlight deletes the message of a document from the queue while a flight holds it.
func (s *scene) deleteBehindTheFlight(id string) {
	s.t.Helper()
	list, _, err := s.e.Flights.List(s.ctx, "", 10)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, f := range list {
		m, err := s.e.Flights.Get(s.ctx, f.ID)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, r := range m.Records {
			if r.Events[0].Doc == doc(id) {
				if errs := s.p.lane(flight.Live).queue.Delete(s.ctx, []string{r.Message.Receipt}); errs != nil {
					s.t.Fatal(errs)
				}
				return
			}
		}
	}
	s.t.Fatalf("no flight holds %s", id)
}

func notBefore(when time.Time, m feed.Timed) feed.Timed {
	m.Body = m.Body[:len(m.Body)-1] + fmt.Sprintf(`,"notbefore":%q}`, when.UTC().Format(time.RFC3339Nano))
	return m
}

func TestScheduledEventIsWrittenToTheSecondAndHidesNothing(t *testing.T) {
	for _, ahead := range []time.Duration{
		3 * time.Second, time.Minute, 14*time.Minute + 59*time.Second, 2 * time.Hour,
		20 * 24 * time.Hour,
	} {
		t.Run(ahead.String(), func(t *testing.T) {
			stage{}.play(t, func(s *scene) {
				when := time.Now().Add(ahead)
				s.send(put(0, "a", 1), notBefore(when, put(0, "a", 2)))
				s.wait(min(ahead-time.Second, 20*time.Second))
				if ahead > 20*time.Second {
					s.holds("a", "1") // the scheduled event does not hide the event that is due before it
				}
				s.wait(time.Until(when) + 12*time.Second)
				s.holds("a", "2")
				var at time.Time
				for _, n := range s.notes.Of(journal.Committed) {
					if n.Key.VersionText() == "2" {
						at = n.At
					}
				}
				if at.Before(when) || at.Sub(when) > 8*time.Second {
					t.Errorf("written %s after its time, want between 0 and window, a second of rounding and the wake",
						at.Sub(when))
				}
				s.settle()
			})
		})
	}
}

// If an operator cancels a scheduled event at the moment at which prune sends it, the operator gets
// a correct answer.
func TestACancelledEventIsNotWrittenWhateverPruneDoesMeanwhile(t *testing.T) {
	for call, cancelled := range map[string]bool{
		"ListScheduled": true, "SendMessageBatch": true, "DeleteScheduled": true, "": false, // "": the event is already in the queue
	} {
		t.Run(cmp.Or(call, "after it was sent"), func(t *testing.T) {
			stage{}.play(t, func(s *scene) {
				when := time.Now().Add(2 * time.Hour)
				s.send(put(0, "a", 1), notBefore(when, put(0, "a", 2)))
				s.settle()
				s.wait(time.Until(when) - 16*time.Minute)
				cancel := func() error {
					c := operate.Cancellation{Key: doc("a"), Scheduled: true, By: "ann"}
					_, err := s.e.Operator(nil).API().Cancel(s.ctx, c)
					return err
				}
				answers := make(chan error, 1)
				if call != "" {
					s.inject.when(call, func() { answers <- cancel() })
				}
				s.wait(10 * time.Minute)
				if call == "" {
					answers <- cancel()
				}
				select {
				case err := <-answers:
					if (err == nil) != cancelled {
						t.Errorf("cancel: %v", err)
					}
				default:
					t.Fatalf("prune never came to %s", call)
				}
				s.wait(time.Until(when) + time.Minute)
				want := map[bool]string{true: "1", false: "2"}[cancelled]
				s.holds("a", want)
				if r := s.settle(); len(r.DeadLetters) == 1 != cancelled {
					t.Errorf("dead letters %+v", r.DeadLetters)
				}
				if n := s.e.Schedule.Len(); n != 0 {
					t.Errorf("%d events are scheduled still", n)
				}
			})
		})
	}
}

func TestWithoutDeadLettersNothingIsParkedAndWhatReceiveRefusesIsRejected(t *testing.T) {
	stage{cfg: func(c *config.Config) { c.DeadLetters = config.DeadLettersNone }}.play(t, func(s *scene) {
		var empty feed.Timed
		s.send(empty, put(0, "a", 1, "[]"), put(0, "b", 1))
		if r := s.settle(); len(r.DeadLetters) != 0 || r.Dead != 2 || r.Rejected != 2 || r.Written != 1 {
			t.Errorf("%d dead letters parked, %d dead, %d rejected, %d written; want 0, 2, 2 and 1", len(r.DeadLetters),
				r.Dead, r.Rejected, r.Written)
		}
	})
}

func TestEventTooFarAheadIsADeadLetter(t *testing.T) {
	stage{}.play(t, func(s *scene) {
		s.send(notBefore(time.Now().Add(29*24*time.Hour), put(0, "a", 1)))
		r := s.settle()
		if len(r.DeadLetters) != 1 || r.DeadLetters[0].Reason != "too_far_ahead" {
			t.Errorf("dead letters %+v, want one that is too far ahead", r.DeadLetters)
		}
	})
}

func TestMessageThatComesLateKeepsTheStackFromBeingIdleWhateverIsScheduled(t *testing.T) {
	stage{}.play(t, func(s *scene) {
		s.send(notBefore(time.Now().Add(10*time.Hour), put(0, "a", 1)),
			notBefore(time.Now().Add(10*time.Hour), put(0, "b", 1)))
		s.settle()
		late := put(0, "c", 1)
		late.Delay = 20 * time.Second
		s.send(late)
		if s.e.Idle() || s.e.Left() != 1 {
			t.Errorf("idle %t, %d left while a message comes late, want 1 left", s.e.Idle(), s.e.Left())
		}
		if r := s.settle(); r.Written != 1 || r.Scheduled != 2 {
			t.Errorf("written %d, scheduled %d, want 1 and 2", r.Written, r.Scheduled)
		}
	})
}

func TestScheduledEventsDoNotKeepTheStackFromBeingIdle(t *testing.T) {
	for _, ahead := range []time.Duration{10 * time.Minute, 10 * time.Hour} {
		t.Run(ahead.String(), func(t *testing.T) {
			stage{}.play(t, func(s *scene) {
				begin := time.Now()
				s.send(notBefore(begin.Add(ahead), put(0, "a", 1)), put(0, "b", 1))
				r := s.settle()
				if r.Scheduled != 1 || r.Written != 1 || time.Since(begin) > time.Minute {
					t.Errorf("scheduled %d, written %d after %s, want 1 and 1 at once", r.Scheduled, r.Written,
						time.Since(begin))
				}
			})
		})
	}
}
