// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"fmt"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/operator/feed"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/memorysink"
)

// The tests of this file play the flows of docs/faults.md about which version is new.

func TestSameVersionOtherPayloadHasOneWinnerInEitherOrder(t *testing.T) {
	x, y := put(0, "a", 5, `{"title":"x"}`), put(0, "a", 5, `{"title":"y"}`)
	for name, order := range map[string][]feed.Timed{"x first": {x, y}, "y first": {y, x}} {
		for _, apart := range []time.Duration{0, 20 * time.Second} {
			t.Run(fmt.Sprintf("%s, %s apart", name, apart), func(t *testing.T) {
				stage{}.play(t, func(s *scene) {
					want := `{"title":"x"}`
					if s.key(y) > s.key(x) {
						want = `{"title":"y"}`
					}
					s.send(order[0])
					s.wait(apart)
					s.send(order[1])
					s.settle()
					got, _, err := s.sink.Get(s.ctx, doc("a"))
					if err != nil || string(got.Document) != want {
						t.Errorf("document %s, want %s, the greater digest in either order (%v)", got.Document, want,
							err)
					}
					if len(s.notes.Of(journal.Conflict)) == 0 {
						t.Error("no version conflict was counted")
					}
				})
			})
		}
	}
}

func TestCounterThatWentBackIsStaleUntilTheEpochIsRaised(t *testing.T) {
	for epoch, want := range map[uint32]string{0: "1000", 1: "3"} {
		t.Run(fmt.Sprintf("epoch %d", epoch), func(t *testing.T) {
			stage{}.play(t, func(s *scene) {
				s.send(put(0, "a", 1000))
				s.settle()
				raised := s.e.withEpoch(t, epoch)
				s.e.sources = raised
				s.send(put(0, "a", 3)) // the upstream was restored from a backup, so its counter began again
				s.settle()
				s.holds("a", want)
			})
		})
	}
}

func poison(reason string) memorysink.Answer {
	return memorysink.Answer{Outcome: sink.Outcome{Kind: sink.Rejected, Status: 400, Reason: reason}}
}

func TestRejectClearsPending(t *testing.T) {
	stage{}.play(t, func(s *scene) {
		s.sink.Script(doc("a"), poison("mapper_parsing_exception: field title"))
		m := put(0, "a", 2)
		s.send(m)
		s.settle()
		row := s.row("a")
		if row.Pending != "" || row.BurstStart != 0 || row.Owner != "" || row.Claimed != "" || row.ClaimedWas != "" {
			t.Errorf("row after REJECT: %+v, want nothing pending, claimed or owned", row)
		}
		if row.Dead != s.key(m) || row.LastError == "" || row.ExpiresAt == 0 {
			t.Errorf("row after REJECT: dead %s, last error %q, expires %d", row.Dead, row.LastError, row.ExpiresAt)
		}
	})
}

func TestCollectionOptionsHoldOnBothPaths(t *testing.T) {
	long := 9 * time.Second
	cfg := func(c *config.Config) {
		c.Collections["slow"] = config.Collection{Quiet: &long}
		c.DefaultCollection = "content"
	}
	slow := func(id string) feed.Timed {
		m := put(0, id, 1)
		m.Body = m.Body[:len(m.Body)-1] + `,"collection":"slow"}`
		return m
	}
	for name, messages := range map[string][]feed.Timed{
		"alone":      {slow("a")},
		"in a batch": {put(0, "x", 1), slow("a"), put(0, "y", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			stage{cfg: cfg}.play(t, func(s *scene) {
				s.send(messages...)
				s.settle()
				for _, n := range s.notes.Of(journal.Committed) {
					wait, want := n.At.Sub(n.Sent), 5*time.Second
					if n.Doc.Collection() == "slow" {
						want = long
					}
					if wait < want || wait > want+1500*time.Millisecond {
						t.Errorf("%s written after %s, want its collection's quiet of %s", n.Doc, wait, want)
					}
				}
			})
		})
	}
}
