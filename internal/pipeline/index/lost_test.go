// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"testing"
	"time"

	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
)

// If a call fails, the class of the error is noted, and SQS delivers the messages again that the
// flight has not done.
func TestNoErrorOfACallIsLost(t *testing.T) {
	t.Parallel()
	for name, story := range map[string]func(b *bench) flight.State{
		"a rejected version with an older version behind it, and a sink that throttles": func(b *bench) flight.State {
			b.rejects("a", 1)
			b.sink.Script(doc("b"), throttled())
			return b.hold(put("a", 2), put("a", 1), put("b", 1), put("c", 1))
		},
		"a flight that continues in a second execution": func(b *bench) flight.State {
			s := b.hold(put("a", 1), put("b", 1), put("c", 1))
			b.Change(doc("a"), func(r *shard.Row) { r.Owner, r.LeaseUntil = "somebody", now().Add(20*time.Second) })
			s.Started = now().Add(10*time.Second - b.Config.Flight.ContinueAfter)
			return s
		},
		"an outage that has begun": func(b *bench) flight.State {
			return b.open(put("a", 1), put("b", 1), put("c", 1))
		},
		"an outage that has ended": func(b *bench) flight.State {
			s := b.open(put("a", 1), put("b", 1), put("c", 1))
			b.Change(doc("a"), deleted(b.key("a", 3)))
			s.Turn, s.ReassertAfter = 1, now()
			return s
		},
		"twelve hours": func(b *bench) flight.State {
			s := b.hold(put("a", 1), put("b", 1), put("c", 1))
			time.Sleep(11*time.Hour + 50*time.Minute)
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			usecasetest.NoErrorIsLost(t, func(t *testing.T, f *usecasetest.FailingCall) ([]journal.Note, error) {
				b := stage{}.setup(t)
				s := story(b)
				b.inject, b.failure = f, usecasetest.Denied
				flights := len(b.launched.list)
				var failed error
				for range 40 {
					next, _, err := b.invoke(s)
					if s = next; err != nil {
						failed = err
					}
					if time.Sleep(max(time.Until(s.Wake()), time.Second)); !s.Done {
						continue
					}
					switch {
					case len(b.launched.list) > flights:
						s = b.launched.list[flights]
					case b.live.Counts().Total() == 0:
						b.holds("b", "1")
						b.holds("c", "1")
						return b.Notes.All(), failed
					default:
						time.Sleep(time.Minute)
						s = b.receive(flight.Live)
					}
					flights = len(b.launched.list)
				}
				t.Errorf("%d messages in the queue after 40 turns", b.live.Counts().Total())
				return b.Notes.All(), failed
			})
		})
	}
}
