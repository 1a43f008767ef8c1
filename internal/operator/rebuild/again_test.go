// SPDX-License-Identifier: Apache-2.0

package rebuild_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/operator/rebuild"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/memorysink"
)

// The new index lacks a document of the last page. The comparison ends after that page was read,
// and before the document was copied. The next comparison must begin with the index in use again.
func TestAComparisonThatBeginsAgainWalksThroughBothIndices(t *testing.T) {
	for name, killed := range map[string]bool{"after an error": false, "after a kill": true} {
		t.Run(name, func(t *testing.T) {
			play(t, func(g *ground) {
				g.seed()
				copies := 0
				g.hook = func(call string) error {
					switch call {
					case "stop fill":
						if copies > 0 {
							break
						}
						full := memorysink.Answer{Outcome: sink.Outcome{Kind: sink.Throttled, Status: 429}}
						into := g.Row(shard.HealthRow("search")).RebuildInto
						g.sink.Beside(into).Script("content#h", full, full, full) // the write, and two copies
						g.write("h", shard.Put)
					case "transfer":
						if copies++; copies == 3 {
							g.dead = killed
							return errors.New("the engine restarts")
						}
					}
					return nil
				}
				p, err := g.startWith(g.service(), g.order())
				if killed {
					g.dead = false
					g.stop()
					p, err = g.resume(g.service(), "bob", nil)
				}
				if err != nil || p.Phase != rebuild.Done || copies < 3 {
					g.Fatalf("got %+v, %v after %d copies, want it done after at least 3", p, err, copies)
				}
				g.readable("at the end")
				g.settled("at the end")
			})
		})
	}
}

// breaking is a sink whose copies begin and then fail.
type breaking struct {
	sink.Rebuilder
	copies *int
	enough func()
}

func (b breaking) Fill(_ context.Context, f sink.Fill) (sink.Filled, error) {
	if *b.copies++; *b.copies == 20 {
		b.enough()
	}
	if err := f.Started("task"); err != nil {
		return sink.Filled{}, err
	}
	f.Progress(int64(*b.copies))
	return sink.Filled{}, errors.New("the disk is full")
}

func TestACopyThatBeginsAndFailsEachTimeEndsTheRebuild(t *testing.T) {
	play(t, func(g *ground) {
		g.seed()
		ctx, cancel := context.WithCancel(g.Context())
		defer cancel()
		copies, s := 0, g.service()
		s.Sink = breaking{s.Sink, &copies, cancel}
		p, err := started(ctx, s, g.order(), nil)
		if err == nil || ctx.Err() != nil || copies > 4 {
			g.Fatalf("%+v, %v after %d copies; want it to stop after four", p, err, copies)
		}
		if _, err := g.resume(g.service(), "bob", nil); err != nil {
			g.Fatal(err)
		}
		g.settled("after it was resumed")
	})
}

// The call that switches the name gets no answer, and takes effect later. The same program finds
// out that the name was switched.
func TestAProgramKeepsItsSealWhileItsSwitchMayBeCarriedOut(t *testing.T) {
	play(t, func(g *ground) {
		g.seed()
		var sent time.Time
		switched := false
		g.hook = func(call string) error {
			if call == "switch" && sent.IsZero() {
				sent = time.Now()
				return errors.New("no answer")
			}
			if row := g.Row(shard.HealthRow("search")); !sent.IsZero() && !switched && time.Since(sent) >= 15*time.Second {
				switched = true
				into := g.sink.Beside(row.RebuildInto)
				into.Script("content#a", memorysink.Answer{Outcome: sink.Outcome{Kind: sink.Throttled, Status: 429}})
				g.write("a", shard.Put) // this write is not committed, because the seal refuses its MISS
				err := g.sink.Switch(context.WithoutCancel(g.Context()), "content", "content", row.RebuildInto)
				if err != nil {
					return err
				}
				g.readable("after the late switch")
			}
			return nil
		}
		if p, err := g.startWith(g.service(), g.order()); err != nil || !switched || p.Phase != rebuild.Done {
			g.Errorf("%+v, %v; want the late switch found", p, err)
		}
		g.settled("at the end")
	})
}

// scrolling is a sink whose engine remembers the page, as a scroll does. The answer with the second
// page is lost once.
type scrolling struct {
	sink.Rebuilder
	left *[]sink.Versioned
	lost *bool
}

func (s scrolling) Walk(ctx context.Context, index, place string) ([]sink.Versioned, string, error) {
	if place == "" {
		*s.left = nil
		for at := ""; ; {
			docs, next, err := s.Rebuilder.Walk(ctx, index, at)
			if err != nil {
				return nil, "", err
			}
			*s.left = append(*s.left, docs...)
			if at = next; at == "" {
				break
			}
		}
	}
	time.Sleep(6 * time.Second) // virtual time; a step works for 5 s, so it reads only one page
	n := min(3, len(*s.left))
	page := (*s.left)[:n]
	*s.left = (*s.left)[n:]
	switch {
	case place != "" && !*s.lost:
		*s.lost = true
		return nil, "", errors.New("no answer")
	case n == 0:
		return nil, "", nil
	}
	return page, "scroll", nil
}

// A page whose answer was lost is still compared, because the walk begins again.
func TestAPageWhoseAnswerWasLostIsCompared(t *testing.T) {
	play(t, func(g *ground) {
		g.seed()
		began := false
		g.hook = func(call string) error {
			if call == "stop fill" && !began {
				began = true
				full := memorysink.Answer{Outcome: sink.Outcome{Kind: sink.Throttled, Status: 429}}
				g.sink.Beside(g.Row(shard.HealthRow("search")).RebuildInto).Script("content#ee", full)
				g.write("ee", shard.Put) // it is in the second page
			}
			return nil
		}
		lost, s := false, g.service()
		s.Sink = scrolling{s.Sink, new([]sink.Versioned), &lost}
		if p, err := g.startWith(s, g.order()); err != nil || !lost || p.Phase != rebuild.Done {
			g.Fatalf("%+v, %v; lost: %t", p, err, lost)
		}
		g.readable("at the end")
		g.settled("at the end")
	})
}
