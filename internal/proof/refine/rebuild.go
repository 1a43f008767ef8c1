// SPDX-License-Identifier: Apache-2.0

package refine

import (
	"slices"

	"github.com/lullhq/lull/internal/proof/model"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/simulation/sim"
	"github.com/lullhq/lull/sink"
)

// turning is an invocation of index during a rebuild.
type turning struct {
	read, knows, ended bool
	at                 shard.Micros // the start of the rebuild that the invocation knows of
	turn               model.Turning
}

// onWay is a request to the new index that was sent and may still arrive.
type onWay struct {
	by    int64
	turn  bool
	early bool
	key   model.Key
	erase bool
}

// Rebuild follows the one document of a simulated run whose collection is rebuilt: see [Checker].
// Rebuild knows the rebuilding program only by the program's reads and their order. If the program
// reads more often than the model's program, Rebuild treats that as a new start of the comparison.
type Rebuild struct {
	*Checker

	health       shard.Row
	committed    model.Key
	old, fresh   model.Key // the versions in the two indices; None if the version is a delete
	gone, erased model.Key
	named        bool
	fences       map[shard.Fence]model.Key
	turns        map[int64]*turning
	onWay        []onWay
	copying      []model.Key // versions that the engine is copying
	calling      int
	driver       int64 // the invocation that runs the rebuild
	step         uint8 // the last step of the rebuild
	readKey      model.Key
	readFence    shard.Fence
	seen         int64
	why          string // the reason why the comparison cannot start yet
}

// NewRebuild returns a Rebuild for a simulated run with this upstream.
func NewRebuild(s Settings) (*Rebuild, error) {
	c, err := New(s)
	if err != nil {
		return nil, err
	}
	return &Rebuild{Checker: c, fences: map[shard.Fence]model.Key{}, turns: map[int64]*turning{}}, nil
}

func (r *Rebuild) machine() model.Rebuild {
	return model.Rebuild{Deletes: r.deletes, Crashes: 1, Fails: 1}
}

// state returns the part of the simulated run that every step concerns.
func (r *Rebuild) state() model.RebuildState {
	s := model.RebuildState{
		Old: r.old, New: r.fresh, Gone: r.gone, Committed: r.committed, Erased: r.erased,
		Announced: r.health.RebuildAt != 0, Sealed: r.health.RebuildSeal != 0, Named: r.named, Calling: r.calling > 0,
		Step: r.step, Read: r.readKey, Crashes: 1, Fails: 1,
	}
	if r.health.RebuildMissed > r.seen {
		s.Missed = 1
	}
	return s
}

// edgeTo looks for an edge that leads to a wanted state, and returns that state.
func (r *Rebuild) edgeTo(s model.RebuildState, leads func(t *model.RebuildState) bool) (model.RebuildState, bool) {
	for _, e := range r.machine().Next(s, nil) {
		if leads(&e.To) {
			return e.To, true
		}
	}
	return s, false
}

// has judges a step by whether the model has an edge for the step.
func (r *Rebuild) has(what Step, s model.RebuildState, leads func(t *model.RebuildState) bool) bool {
	_, ok := r.edgeTo(s, leads)
	r.judge(what, ok, "the model has no such step from %+v%s", s, r.why)
	return ok
}

// See follows one step of the simulated run.
func (r *Rebuild) See(s sim.Step) {
	r.now, r.said = s.At, false
	switch s.What {
	case sim.Read, sim.Glanced:
		for _, row := range s.Rows {
			if row.Doc == shard.HealthRow("search") {
				r.looks(s, row)
			}
		}
	case sim.Wrote:
		r.wrote(s)
	case sim.Refused:
		r.refused(s)
	case sim.Sent, sim.Landed, sim.Answered:
		switch {
		case s.Op.Doc != r.doc:
		case s.Beside:
			r.beside(s)
		case s.What == sim.Answered && s.Outcome.Kind == sink.Applied:
			r.applied(s)
		}
	case sim.Copies:
		if s.Op.Doc == r.doc {
			r.copying = append(r.copying, r.key(s.Op.Key))
		}
	case sim.Copied:
		r.copying = nil
	case sim.Compared:
		if (s.Op.Doc == r.doc || s.Op.Doc == "") && s.By == r.driver { // or if no document exists
			r.compared(s)
		}
	case sim.Calls:
		r.calls(s)
	case sim.Called:
		r.calling--
	case sim.Switched:
		if r.has(switches, r.state(), func(t *model.RebuildState) bool { return t.Named }) {
			r.named = true
		}
	case sim.Ended:
		r.turnOf(s.By).ended = true
	default:
	}
}

// looks follows a read of the health row.
func (r *Rebuild) looks(s sim.Step, row shard.Row) {
	switch {
	case s.Name == "index":
		if t := r.turnOf(s.By); !t.read {
			t.read, t.knows, t.at = true, row.RebuildAt != 0, row.RebuildAt
		}
	case s.By == r.driver && s.What == sim.Read && row.RebuildAt != 0 && row.RebuildSeal == 0:
		r.counts()
	}
}

func (r *Rebuild) turnOf(by int64) *turning {
	if r.turns[by] == nil {
		r.turns[by] = &turning{}
	}
	return r.turns[by]
}

// counts follows the program's read of the number of missed writes. The comparison of the program
// may start only if no copy is under way and every turn knows of the rebuild.
func (r *Rebuild) counts() {
	l := r.state()
	l.Step, r.why = model.StepFilling, ""
	for _, t := range r.turns {
		if t.read && !t.ended && t.at != r.health.RebuildAt {
			l.Turns[1] = model.Turning{Phase: model.TurnBegun}
			r.why = "; a turn does not know of the rebuild"
		}
	}
	for i, k := range r.copying {
		if i < len(l.Late) {
			l.Late[i] = model.Copying{Key: k}
			r.why = "; the engine copies"
		}
	}
	for _, o := range r.onWay {
		if !o.turn {
			l.Late[len(l.Late)-1] = model.Copying{Key: o.key, Delete: o.erase}
			r.why = "; a copy is on its way"
		}
	}
	r.step = model.StepFilling
	if _, ok := r.edgeTo(l, func(t *model.RebuildState) bool { return t.Step == model.StepPass }); ok {
		r.count(reads)
		r.step, r.seen, r.why = model.StepPass, r.health.RebuildMissed, ""
		for i := range r.onWay {
			r.onWay[i].early = true
		}
	}
}

// compared follows the program's read of the document in one of the indices.
func (r *Rebuild) compared(s sim.Step) {
	if r.step < model.StepPass || r.step >= model.StepClean {
		return
	}
	l := r.state()
	for _, o := range r.onWay {
		if o.turn && o.early {
			l.Late[0] = model.Copying{Key: o.key, Delete: o.erase, Turn: true, Early: true}
		}
	}
	inOld := func(t *model.RebuildState) bool { return t.Step == model.StepOld }
	if !s.Beside {
		if r.step == model.StepNew {
			_, clean := r.edgeTo(l, func(t *model.RebuildState) bool { return t.Step == model.StepClean })
			if clean && s.Op.Fence == r.readFence {
				r.reaches(model.StepClean, r.readKey, s.Op.Fence)
				return
			}
		}
		l.Step, l.Read = model.StepPass, model.None
		if t, ok := r.edgeTo(l, inOld); ok {
			r.reaches(model.StepOld, t.Read, s.Op.Fence)
		} else {
			r.step, r.why = model.StepPass, "; a missed write may still arrive"
		}
		return
	}
	from := l
	if r.step != model.StepOld {
		from.Step, from.Read = model.StepPass, model.None
		from, _ = r.edgeTo(from, inOld)
	}
	inNew := func(t *model.RebuildState) bool { return t.Step == model.StepNew || t.Step == model.StepCopy }
	t, ok := r.edgeTo(from, inNew)
	switch {
	case !ok:
		r.step, r.why = model.StepPass, "; a missed write may still arrive"
	case t.Step == model.StepNew && t.Read == model.None:
		r.reaches(model.StepClean, t.Read, 0)
	default:
		r.reaches(t.Step, t.Read, s.Op.Fence)
	}
}

func (r *Rebuild) reaches(step uint8, read model.Key, fence shard.Fence) {
	r.step, r.readKey, r.readFence, r.why = step, read, fence, ""
	r.count(compares)
}

// calls follows the request that switches the name. Only the program that runs the rebuild may send
// it.
func (r *Rebuild) calls(s sim.Step) {
	l := r.state()
	if s.By != r.driver {
		r.part(calls, "this program does not run the rebuild")
	} else if r.has(calls, l, func(t *model.RebuildState) bool { return t.Step == model.StepSwitch }) {
		r.step = model.StepSwitch
	}
	r.calling++
}

// applied follows a write to the index that the alias points to.
func (r *Rebuild) applied(s sim.Step) {
	k := r.key(s.Op.Key)
	r.fences[s.Op.Fence] = k
	t := r.turnOf(s.By)
	t.turn = model.Turning{Phase: model.TurnApplied, Knows: t.knows, Key: k, IntoNew: r.named}
	if r.deletes.Has(k) {
		r.erased = max(r.erased, k)
	}
	switch {
	case !r.named:
		r.old = k
	case r.deletes.Has(k):
		r.fresh, r.gone = model.None, k
	default:
		r.fresh, r.gone = k, model.None
	}
}

// beside follows a request to the new index.
func (r *Rebuild) beside(s sim.Step) {
	k, turn := r.fences[s.Op.Fence], s.Name == "index"
	if s.Op.Key != "" {
		k = r.key(s.Op.Key)
	}
	switch s.What {
	case sim.Sent:
		if turn {
			l := r.state()
			l.Turns[0] = r.turnOf(s.By).turn
			r.has(mirrors, l, func(t *model.RebuildState) bool { return t.Turns[0].Copied })
		}
		r.onWay = append(r.onWay, onWay{by: s.By, turn: turn, key: k, erase: s.Op.Kind == shard.Delete})
	case sim.Landed:
		i := slices.IndexFunc(r.onWay, func(o onWay) bool { return o.by == s.By && o.turn == turn && o.key == k })
		if i >= 0 {
			r.onWay = slices.Delete(r.onWay, i, i+1)
		}
	default:
		r.taken(s, k, turn)
	}
}

// taken follows the answer of the new index to an item.
func (r *Rebuild) taken(s sim.Step, k model.Key, turn bool) {
	if s.Outcome.Kind != sink.Applied && s.Outcome.Kind != sink.Newer {
		return
	}
	erase := s.Op.Kind == shard.Delete
	l, what := r.state(), arrivesLate
	if s.Outcome.Kind == sink.Applied && k < r.gone {
		forgets := func(t *model.RebuildState) bool { return t.Gone == model.None && t.New == r.fresh }
		var ok bool
		if l, ok = r.edgeTo(l, forgets); !ok {
			r.part(arrivesLate, "the new index has forgotten the delete of version %d", r.gone)
		}
	}
	over := func(t *model.RebuildState) bool { return t.Late[0] == model.Copying{} }
	t := r.turns[s.By]
	switch {
	case turn && t != nil && !t.ended && t.turn.Phase == model.TurnApplied && t.turn.Key == k && !t.turn.Missed:
		what, l.Turns[0] = mirrors, t.turn
		l.Turns[0].Copied = false
		t.turn.Copied = true
		over = func(t *model.RebuildState) bool { return t.Turns[0].Copied }
	case !turn && s.By != 0 && s.By == r.driver && r.step >= model.StepPass && r.step < model.StepClean:
		what, l.Step, l.Read = repairs, model.StepCopy, k
		if erase {
			l.Step = model.StepErase
		}
		r.step = model.StepPass
		over = func(t *model.RebuildState) bool { return t.Step == model.StepPass }
	default:
		l.Late[0] = model.Copying{Key: k, Delete: erase, Turn: turn}
	}
	to, ok := r.edgeTo(l, over)
	if s.Outcome.Kind == sink.Newer { // compared by fences, because a version that is written twice has two fences
		to.New, to.Gone = r.fresh, r.gone
	}
	r.judge(what, ok, "the model has no such step from %+v", l)
	if want := r.contentAfter(k, erase); ok && s.Outcome.Kind == sink.Applied && to.New != want {
		r.part(what, "the model's new index holds version %d, and the real one %d", to.New, want)
	}
	r.fresh, r.gone = to.New, to.Gone
}

// contentAfter returns what an index contains after it has applied an item.
func (r *Rebuild) contentAfter(k model.Key, erase bool) model.Key {
	if erase || r.deletes.Has(k) {
		return model.None
	}
	return k
}
