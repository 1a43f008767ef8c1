// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"fmt"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/operator/feed"
)

// traffic sends a new version of some document each second, for the given number of seconds.
func (s *scene) traffic(seconds int) (want map[string]string) {
	s.t.Helper()
	want = map[string]string{}
	var all []feed.Timed
	for i := range seconds {
		id, version := fmt.Sprintf("d%d", i%7), i/7+1
		all = append(all, put(time.Duration(i)*time.Second, id, version))
		want["content#"+id] = fmt.Sprint(version)
	}
	go func() { _ = s.e.Play(s.ctx, &slice{all}) }() // ends when the scene ends
	return want
}

// One part is broken for two minutes. The stack must show that, recover by itself after the part is
// repaired, and lose no event.
func TestWhatIsBrokenRecoversAndLosesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		broken fault.Broken
		kill   string
		shows  func(before, after fault.Recovery) bool // checks that the stack shows the failure
	}{
		"sink down":       {broken: fault.Broken{SinkDown: true}, shows: stands},
		"sink slow":       {broken: fault.Broken{SinkSlowMS: 8000}, shows: stands}, // index waits for 6 s
		"sink a bit slow": {broken: fault.Broken{SinkSlowMS: 1000}, shows: nil},
		"table away":      {broken: fault.Broken{TableAway: true}, shows: stands},
		"receive killed":  {kill: "receive"},
		"index killed":    {kill: "index"},
	} {
		t.Run(name, func(t *testing.T) {
			stage{}.play(t, func(s *scene) {
				want := s.traffic(300)
				s.wait(60 * time.Second)
				before := s.e.Recovery()
				if before.Recovered != (time.Time{}) || before.Done == 0 || before.Lost > 0 {
					s.t.Errorf("before: %+v", before)
				}
				panel := s.e.Panel()
				if c.kill != "" {
					if err := panel.Kill(c.kill); err != nil {
						s.t.Fatal(err)
					}
				} else if err := panel.Break(c.broken); err != nil {
					s.t.Fatal(err)
				}
				s.wait(40 * time.Second) // events that were on their way are done
				begun := s.e.Recovery()
				s.wait(80 * time.Second)
				during := s.e.Recovery()
				if c.shows != nil &&
					(!c.shows(begun, during) || !during.Recovered.IsZero() || !during.Righted.IsZero()) {
					s.t.Errorf("broken: %+v, then %+v", begun, during)
				}
				if c.kill != "" && (during.Killed[c.kill] != 1 || during.Righted.IsZero()) {
					s.t.Errorf("killed: %+v", during)
				}
				if err := panel.Break(fault.Broken{}); err != nil {
					s.t.Fatal(err)
				}
				var recovered time.Duration
				for range 600 {
					if r := s.e.Recovery(); !r.Recovered.IsZero() {
						recovered = r.Recovered.Sub(r.Righted)
						break
					}
					s.wait(time.Second)
				}
				if recovered == 0 || recovered > 5*time.Minute {
					s.t.Errorf("recovered after %s", recovered)
				}
				s.settle()
				r := s.e.Recovery()
				if r.Lost > 0 || r.Dead > 0 || r.Waiting > 0 || r.Done != r.Events || r.Events != 300 {
					s.t.Errorf("in the end: %+v", r)
				}
				s.holdsAll(want)
			})
		})
	}
}

// stands checks that no more documents are written, and that new events wait.
func stands(before, after fault.Recovery) bool {
	return after.Waiting >= before.Waiting+70 && after.Events > before.Events
}

// A document that the sink rejects becomes a dead letter. An operator can send the dead letter
// again when the sink accepts the document.
func TestASinkThatRejectsAShareLosesNothing(t *testing.T) {
	stage{}.play(t, func(s *scene) {
		want := s.traffic(120)
		panel := s.e.Panel()
		if err := panel.Break(fault.Broken{SinkRejects: 0.3}); err != nil {
			s.t.Fatal(err)
		}
		s.wait(125 * time.Second)
		s.settle()
		r := s.e.Recovery()
		if r.Dead < 3 || r.Lost > 0 || r.Done+r.Dead != r.Events {
			s.t.Errorf("%+v", r)
		}
		if err := panel.Break(fault.Broken{}); err != nil {
			s.t.Fatal(err)
		}
		redriven(s.t, s.e, 1)
		s.settle()
		s.holdsAll(want)
	})
}

// The panel works together with the standard fault mix.
func TestTheStandardMixAndThePanelTogether(t *testing.T) {
	stage{faults: fault.NewMix(fault.Standard(), 3)}.play(t, func(s *scene) {
		want := s.traffic(200)
		s.wait(30 * time.Second)
		for _, b := range []fault.Broken{{SinkDown: true}, {}, {TableAway: true, SinkSlowMS: 500}, {}} {
			if err := s.e.Panel().Break(b); err != nil {
				s.t.Fatal(err)
			}
			s.wait(30 * time.Second)
		}
		s.wait(2 * time.Minute)
		s.settle()
		if r := s.e.Recovery(); r.Lost > 0 {
			s.t.Errorf("%+v", r)
		}
		redriven(s.t, s.e, 1)
		s.settle()
		s.holdsAll(want)
	})
}
