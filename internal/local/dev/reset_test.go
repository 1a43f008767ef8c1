// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"crypto/rand"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
)

// An operator withdrew a version by a reset. The archive, a lost flight, a dead letter and late
// messages hold copies of the version. So does a replay that began before the reset. The sink must
// never get that version again.
func TestAVersionThatWasTakenBackReachesTheSinkByNoWay(t *testing.T) {
	stage{cfg: archiving}.play(t, func(s *scene) {
		api := s.e.Operator(nil).API()
		var first atomic.Pointer[flight.Manifest]
		var held atomic.Bool
		s.inject.follow(func(op fault.Op) (fault.Verdict, bool) {
			if op.Call == "StartExecution" && first.Load() == nil {
				m, err := s.e.Flights.Get(s.ctx, flight.ID(op.Flight))
				if err != nil {
					t.Error(err)
				}
				first.CompareAndSwap(nil, m)
			}
			return fault.FailBefore, held.Load() && op.Call == "ADMIT"
		})
		absurd := put(0, "a", 900)
		s.send(absurd)
		s.settle()
		s.holds("a", "900")
		e, lost := s.key(absurd), first.Load()

		held.Store(true) // receive must wait before it handles the messages of the replay
		if sent := s.replay(s.start, 500); sent != 1 {
			t.Fatalf("%d messages replayed, want the absurd version", sent)
		}
		if _, err := api.Reset(s.ctx, operate.ResetOrder{Key: doc("a"), To: "5", By: "ann"}); err != nil {
			t.Fatal(err)
		}
		held.Store(false)
		s.settle()
		s.send(put(0, "a", 6))
		s.settle()
		s.holds("a", "6")

		ways := map[string]func(){
			"another replay": func() {
				if sent := s.replay(s.start, 500); sent != 1 { // version 6
					t.Errorf("%d messages replayed, want 1", sent)
				}
			},
			"rescue": func() {
				if err := s.e.Flights.Put(s.ctx, lost); err != nil {
					t.Fatal(err)
				}
				if _, err := api.Rescue(s.ctx, lost.Flight); !errors.Is(err, operate.ErrNotFound) {
					t.Errorf("rescued: %v, want nothing left to write", err)
				}
				s.startAgain(lost.Flight) // as if a rescue had begun before the reset
			},
			"redrive": func() {
				l := deadletter.Letter{Body: absurd.Body, Facts: deadletter.Facts{
					Reason: deadletter.Refusals, Doc: doc("a"), Key: e, Sink: "search", Died: time.Now(),
				}}
				l.ID = deadletter.ID(l.Doc, l.Key, "")
				if _, err := s.e.Letters.Park(s.ctx, l); err != nil {
					t.Fatal(err)
				}
				order := operate.LetterOrder{Force: true, By: "ann"}
				order.ID = l.ID
				if _, err := api.Redrive(s.ctx, order); err != nil {
					t.Fatal(err)
				}
			},
			"late copies": func() {
				again := absurd
				run := ulid.MustNew(ulid.Now(), rand.Reader).String()
				again.Body = strings.Replace(again.Body, `"data"`, `"mode":"resync","resyncrun":"`+run+`","data"`, 1)
				s.send(absurd, again)
			},
		}
		for _, way := range []string{"another replay", "rescue", "redrive", "late copies", "another replay"} {
			ways[way]()
			s.settle()
			s.holds("a", "6")
		}
		for _, op := range s.sink.History(doc("a"))[1:] {
			if op.Version == "900" {
				t.Errorf("the sink got version 900 again: %+v", op)
			}
		}
		refused := 0
		for _, n := range s.notes.Of(journal.Stale) {
			if n.Key.Event() == e && n.Detail == "an operator took the version back" {
				refused++
			}
		}
		// receive refuses the replayed message and both copies, and index refuses the message in
		// the flight
		if refused != 4 {
			t.Errorf("refused %d times, want 4", refused)
		}
	})
}
