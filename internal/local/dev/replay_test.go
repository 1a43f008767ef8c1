// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/operator/feed"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

func archiving(c *config.Config) { c.Archive.Keep = 14 * 24 * time.Hour }

// replay sends the archived messages from a time until now again, perSecond messages a second.
func (s *scene) replay(from time.Time, perSecond int) (sent int) {
	s.t.Helper()
	order := operate.ReplayOrder{
		ArchiveRange: operate.ArchiveRange{From: from, To: time.Now()},
		Run:          ulid.MustNew(ulid.Now(), rand.Reader).String(), Limit: perSecond, By: "test",
	}
	api := s.e.Operator(nil).API()
	for first := true; first || order.Cursor != ""; first = false {
		step, err := api.Replay(s.ctx, order)
		if err != nil || len(step.Faults) > 0 {
			s.t.Fatalf("replay: %v, %+v", err, step.Faults)
		}
		sent += step.Sent
		order.Cursor = step.Next
		s.wait(time.Second)
	}
	return sent
}

// Documents change, are deleted and are created again while the archive is replayed several times.
// In the meantime, functions are killed, calls fail and messages arrive twice.
func TestAReplayBesideLiveTrafficTakesNoDocumentBack(t *testing.T) {
	for seed := range 3 {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			mix := fault.NewMix(fault.Standard(), uint64(seed))
			stage{cfg: archiving, faults: mix, pollers: 2}.play(t, func(s *scene) {
				want, all := map[string]string{}, []feed.Timed{}
				for i := range 140 {
					id, version, after := fmt.Sprintf("d%d", i%7), i/7+1, time.Duration(i)*5*time.Second
					if version%5 == i%7%5 {
						all = append(all, del(after, id, version))
						delete(want, "content#"+id)
						continue
					}
					all = append(all, put(after, id, version))
					want["content#"+id] = fmt.Sprint(version)
				}
				go func() { _ = s.e.Play(s.ctx, &slice{all}) }() // ends when the scene ends
				s.wait(30 * time.Second)
				sent := 0
				for time.Since(s.start) < 750*time.Second {
					sent += s.replay(time.Now().Add(-time.Minute), 15)
				}
				s.settle()
				s.holdsAll(want)
				for i := range 7 {
					s.neverBack(doc(fmt.Sprintf("d%d", i)))
				}
				if sent < 20 {
					t.Errorf("%d messages were replayed: too few to show anything", sent)
				}
			})
		})
	}
}

// Another program deletes all documents of the index.
func TestAReplayBringsBackWhatTheSinkHasLost(t *testing.T) {
	stage{cfg: archiving}.play(t, func(s *scene) {
		want := s.traffic(100)
		s.wait(100 * time.Second)
		s.settle()
		s.send(del(0, "d6", 1000))
		s.settle()
		delete(want, "content#d6")
		s.holdsAll(want)
		for i := range 7 {
			op := sink.Op{Kind: shard.Delete, Doc: doc(fmt.Sprintf("d%d", i))}
			op.Fence = shard.Fence(time.Now().UnixMicro())
			s.sink.Write(s.ctx, []sink.Op{op})
		}
		s.holdsAll(map[string]string{})
		archived := len(s.notes.Of(journal.Archived))
		if sent := s.replay(s.start, 500); sent != 7 {
			t.Errorf("%d messages sent, want one for each document", sent)
		}
		s.settle()
		s.holdsAll(want)
		if got := len(s.notes.Of(journal.Archived)); got != archived {
			t.Errorf("%d batches archived, want %d: what is replayed is there already", got, archived)
		}
		s.noted(journal.Replayed, 1)
		if sent := s.replay(s.start, 500); sent != 7 {
			t.Errorf("%d messages sent by a second replay, want 7", sent)
		}
		s.settle()
		s.holdsAll(want)
	})
}
