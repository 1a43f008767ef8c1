// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"context"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/setting"
	"github.com/lullhq/lull/sink"
)

// ceiling sets maxDocumentsPerSecond of the sink.
func ceiling(perSecond setting.Rate) func(*config.Config) {
	return func(c *config.Config) {
		s := c.Sinks["search"]
		rate := perSecond * setting.OncePerSecond
		s.MaxDocumentsPerSecond = &rate
		c.Sinks["search"] = s
	}
}

// paced is a sink that records when documents were sent, and how many.
type paced struct {
	sink.Sink
	at   []time.Time
	went []int
}

func (p *paced) Write(ctx context.Context, ops []sink.Op) []sink.Outcome {
	p.at, p.went = append(p.at, time.Now()), append(p.went, len(ops))
	return p.Sink.Write(ctx, ops)
}

// pace puts a paced sink in front of the sink.
func (b *bench) pace() *paced {
	p := &paced{Sink: b.sink}
	b.through = func(sink.Sink) sink.Sink { return p }
	return p
}

// within checks every span of time: no more documents were sent in the span than the ceiling allows
// in that time plus one second.
func (p *paced) within(b *bench, perSecond float64) {
	b.Helper()
	for i := range p.at {
		for j, n := i, 0; j < len(p.at); j++ {
			n += p.went[j]
			if most := perSecond * (p.at[j].Sub(p.at[i]).Seconds() + 1); float64(n) > most+0.001 {
				b.Fatalf("%d documents were sent in %s, want %.1f at most", n, p.at[j].Sub(p.at[i]), most)
			}
		}
	}
}

var letters = []string{"a", "b", "c", "d", "e", "f", "g", "h"}

// eight makes a flight that holds version 1 of eight documents.
func (b *bench) eight() flight.State {
	var bodies []string
	for _, id := range letters {
		bodies = append(bodies, put(id, 1))
	}
	return b.hold(bodies...)
}

func TestBelowACeilingNoMoreDocumentsGoThanItLets(t *testing.T) {
	stage{cfg: ceiling(2)}.play(t, func(b *bench) {
		p := b.pace()
		began := time.Now()
		b.fly(b.eight(), 8)
		for _, id := range letters {
			b.holds(id, "1")
		}
		p.within(b, 2)
		if took := time.Since(began); took > 12*time.Second {
			b.Errorf("eight documents took %s, want 5 s of quiet, 4 s at the ceiling, and little more", took)
		}
		b.inQueue(0)
	})
}

func TestTwoFlightsShareACeiling(t *testing.T) {
	stage{cfg: ceiling(2)}.play(t, func(b *bench) {
		p := b.pace()
		one, two := b.hold(put("a", 1), put("b", 1), put("c", 1)), b.hold(put("d", 1), put("e", 1), put("f", 1))
		for !one.Done || !two.Done {
			if !one.Done && (two.Done || !two.Wake().Before(one.Wake())) {
				one = b.turn(one)
			} else {
				two = b.turn(two)
			}
		}
		p.within(b, 2)
		b.inQueue(0)
	})
}

func TestASinkWithoutACeilingIsNotCounted(t *testing.T) {
	stage{}.play(t, func(b *bench) {
		b.fly(b.eight(), 1)
		if r := b.Row(shard.HealthRow("search")); r.Exists() {
			b.Errorf("the health row is written: %+v", r)
		}
	})
}

// Documents whose time other flights used are released, and are sent later.
func TestDocumentsThatHaveToWaitForTheCeilingAreReleased(t *testing.T) {
	stage{cfg: ceiling(2)}.play(t, func(b *bench) {
		p := b.pace()
		s := b.hold(put("a", 1))
		b.inject = at("SEND first", func() {
			b.Change(shard.HealthRow("search"), func(r *shard.Row) { r.SentUntil = now().Add(20 * time.Second) })
		})
		s = b.turn(s)
		if b.Noted(journal.Released, 1); len(p.at) > 0 {
			b.Errorf("%d requests, want none", len(p.at))
		}
		if r := b.Row(doc("a")); r.Owner != "" || r.Refusals != 0 {
			b.Errorf("after the release the row is %+v", r)
		}
		b.inject = well
		b.delivers(s, 20, "a", "1")
	})
}

// If a permission to send is too old when the request starts, index asks for it again. Other
// flights may have sent documents since.
func TestWhatWasCountedTooLongAgoIsCountedAgain(t *testing.T) {
	for after, want := range map[time.Duration]int{500 * time.Millisecond: 1, 501 * time.Millisecond: 2} {
		t.Run(after.String(), func(t *testing.T) {
			stage{cfg: ceiling(2)}.play(t, func(b *bench) {
				s, slow := b.hold(put("a", 1)), 0
				b.inject = decide(func(op fault.Op) fault.Verdict {
					if op.Transition.Base() == shard.SEND {
						if slow++; slow == 1 {
							time.Sleep(after)
						}
					}
					return fault.OK
				})
				if b.fly(s, 2); slow != want {
					b.Errorf("the answer took %s: asked %d times for permission, want %d", after, slow, want)
				}
				b.holds("a", "1")
			})
		})
	}
}

// During a rebuild each document is written twice, so half as many documents are sent.
func TestBesideARebuildHalfAsManyDocumentsGo(t *testing.T) {
	stage{cfg: ceiling(4)}.play(t, func(b *bench) {
		b.rebuilding()
		p := b.pace()
		b.fly(b.eight(), 8)
		p.within(b, 2)
		b.inQueue(0)
	})
}
