// SPDX-License-Identifier: Apache-2.0

package refine

import (
	"fmt"
	"strings"

	"github.com/lullhq/lull/internal/proof/model"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/simulation/sim"
)

// wrote follows a row write that was applied.
func (r *Rebuild) wrote(s sim.Step) {
	switch s.Write.Doc {
	case r.doc:
		if s.Write.Transition.Base() == shard.COMMIT {
			r.commits(s)
		}
		r.committed = r.key(s.New.Committed)
	case shard.HealthRow("search"):
		r.ofHealth(s)
		r.health = s.New
	case shard.RunRow("job-rebuild-search"):
		r.ofRun(s)
	}
}

func (r *Rebuild) commits(s sim.Step) {
	k, t := r.key(s.New.Committed), r.turns[s.By]
	if t == nil || t.turn.Key != k {
		return // the model of a document judges such a write
	}
	l := r.state()
	l.Turns[0], l.Owner = t.turn, 1
	ends := func(to *model.RebuildState) bool { return to.Turns[0] == model.Turning{} && to.Committed >= k }
	if r.has(commits, l, ends) {
		t.turn = model.Turning{}
	}
}

func (r *Rebuild) ofHealth(s sim.Step) {
	l := r.state()
	switch s.Write.Transition {
	case shard.REBUILD:
		if r.named {
			r.old = max(r.fresh, r.gone)
		}
		r.named, r.fresh, r.gone, r.copying, r.step = false, model.None, model.None, nil, model.StepAnnounced
		l = r.state()
		l.Step = model.StepNone
		r.has(announces, l, func(t *model.RebuildState) bool { return t.Announced })
	case shard.MISS:
		r.missed(s)
	case shard.SEAL:
		sealed := func(t *model.RebuildState) bool { return t.Sealed && t.Step == model.StepSeal }
		if r.has(seals, l, sealed) && r.drives(seals, s) {
			r.step = model.StepSeal
		}
	case shard.UNSEAL:
		l.Step = model.StepAnnounced
		r.has(unseals, l, func(t *model.RebuildState) bool { return !t.Sealed && t.Announced })
		r.step = model.StepAnnounced
	case shard.REBUILT:
		what := givenUp
		if l.Step = model.StepAnnounced; r.named {
			what, l.Step = rebuilt, model.StepSwitched
		}
		r.has(what, l, func(t *model.RebuildState) bool { return !t.Announced && t.Step == model.StepDone })
		r.step = model.StepDone
	default:
		r.unchanged(s)
	}
}

// unchanged checks a write of the health row that is not a step of a rebuild. The check fails if
// the write changes the attributes of the rebuild in the row.
func (r *Rebuild) unchanged(s sim.Step) {
	a, b := s.Old, s.New
	if a.RebuildAt != b.RebuildAt || a.RebuildMissed != b.RebuildMissed || a.RebuildSeal != b.RebuildSeal ||
		a.RebuildInto != b.RebuildInto {
		r.part(Step(fmt.Sprintf("health: %s", s.Write.Transition)), "the write changes the row's attributes of a rebuild")
	}
}

// drives fails if the program that writes does not run the rebuild.
func (r *Rebuild) drives(what Step, s sim.Step) bool {
	return s.By == r.driver || r.part(what, "this program does not run the rebuild")
}

// missed follows a turn's note that the new index may lack a version.
func (r *Rebuild) missed(s sim.Step) {
	t, l := r.turns[s.By], r.state()
	if s.New.RebuildMissed != s.Old.RebuildMissed+1 {
		r.part(misses, "%d missed writes become %d", s.Old.RebuildMissed, s.New.RebuildMissed)
		return
	}
	if t == nil || t.ended || t.turn.Marked {
		r.count(missesLate)
		return
	}
	t.turn.Missed, t.turn.Copied = true, false
	l.Turns[0], l.Missed = t.turn, 0
	if r.has(misses, l, func(to *model.RebuildState) bool { return to.Turns[0].Marked && to.Missed == 1 }) {
		t.turn.Marked = true
	}
}

// refused follows a row write that was refused.
func (r *Rebuild) refused(s sim.Step) {
	l := r.state()
	switch s.Write.Transition {
	case shard.MISS:
		t := r.turns[s.By]
		if t == nil || t.ended {
			return
		}
		t.turn.Missed, t.turn.Copied = true, false
		l.Turns[0] = t.turn
		if t.at != r.health.RebuildAt {
			l.Announced = false
		}
		r.has(missRefused, l, func(to *model.RebuildState) bool { return to.Turns[0] == model.Turning{} })
	case shard.SEAL:
		if l.Step == model.StepClean && !l.Sealed &&
			r.has(sealRefused, l, func(t *model.RebuildState) bool { return t.Step == model.StepPass }) {
			r.step = model.StepFilling
		}
	default:
	}
}

// ofRun follows a write of the row that says which program runs the rebuild.
func (r *Rebuild) ofRun(s sim.Step) {
	switch s.Write.Transition.Base() {
	case shard.STARTRUN:
		l := r.state()
		if l.Step > model.StepAnnounced && l.Step < model.StepSwitched {
			killed := func(t *model.RebuildState) bool { return t.Step == model.StepAnnounced && t.Crashes == 0 }
			r.has(takesOver, l, killed)
			r.step = model.StepAnnounced
		} else {
			r.count(takesOver)
		}
		r.driver = s.By
	case shard.SAVERUN:
		if r.drives(saves, s) {
			r.count(saves)
		}
	case shard.ENDRUN:
		if s.By != r.driver && strings.Contains(s.New.Cursor, `"phase":"stopped"`) {
			r.count(stops) // the program may still do its last step
			return
		}
		if r.drives(givesBack, s) {
			r.count(givesBack)
		}
		r.driver = 0
	default:
		r.part(Step("run: "+s.Write.Transition.String()), "the row of a rebuild has no such write")
	}
}
