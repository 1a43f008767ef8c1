// SPDX-License-Identifier: Apache-2.0

package refine

import (
	"slices"

	"github.com/lullhq/lull/internal/proof/model"
	"github.com/lullhq/lull/internal/shard"
)

// local is the part of a simulated run that a step concerns, as a state of the model.
type local struct {
	*Checker
	model.Model
	s      model.State
	times  []shard.Micros
	tokens []shard.Token
}

// plenty is a budget that no single step uses up.
const plenty = 3

// local returns the simulated run as a state of the model. times are added to the times of the row
// and of the sink.
func (c *Checker) local(times ...shard.Micros) *local {
	l := &local{Checker: c}
	l.Bounds = model.Bounds{
		Execs: 2, Receivers: 1, Batch: 1, Sink: c.sink, Deletes: c.deletes, Clocks: true, MaxRefusals: c.maxRefusals,
		Fickle: model.Keys(1, 2, 3),
	}
	for _, kind := range []int{
		model.Crashes, model.Duplicates, model.Throttles, model.Refusals, model.Moves, model.Deadlines, model.Redrives,
		model.Prunes,
	} {
		l.s.Left[kind] = plenty
	}
	l.Bounds.Budget = l.s.Left
	// The model's clock may show only the times of the state, and the time after the latest of
	// them.
	l.times = append(times, c.lastWrite)
	switch cl := c.claims[c.row.Owner]; {
	case c.row.Owner == "":
		l.times = append(l.times, c.row.LeaseUntil)
	case cl != nil && !cl.ahead:
		l.times = append(l.times, cl.at)
	}
	if c.sink != model.Plain {
		l.times = append(l.times, c.fence)
	}
	l.times = slices.DeleteFunc(l.times, func(m shard.Micros) bool { return m == 0 })
	slices.Sort(l.times)
	l.times = slices.Compact(l.times)
	l.s.Row = l.abstract(c.row)
	l.s.Sink.Content = c.content
	if c.sink != model.Plain {
		l.s.Sink.Fence = l.clock(c.fence)
	}
	l.s.DeadLetters = c.letters
	return l
}

// clock returns the rank of a time among the times of this step.
func (l *local) clock(m shard.Micros) model.Clock {
	if m == 0 {
		return 0
	}
	i, _ := slices.BinarySearch(l.times, m)
	return model.Clock(i + 1)
}

// token returns the model's token for a token of this step.
func (l *local) token(t shard.Token) model.Token {
	if t == "" {
		return 0
	}
	if !slices.Contains(l.tokens, t) {
		l.tokens = append(l.tokens, t)
	}
	return model.Token(slices.Index(l.tokens, t) + 1)
}

// abstract returns the model's row for a row of the code.
func (l *local) abstract(r shard.Row) model.Row {
	out := model.Row{
		Exists: r.Exists(), Pending: l.key(r.Pending), Committed: l.key(r.Committed), Claimed: l.key(r.Claimed),
		ClaimedWas: l.key(r.ClaimedWas), Dead: l.key(r.Dead), Owner: l.token(r.Owner),
		Lease: r.Owner != "" && !l.leaseOver, LeaseUntil: l.clock(r.LeaseUntil), LastWrite: l.clock(l.lastWrite),
		Refusals: uint8(r.Refusals), Expires: r.ExpiresAt != 0,
	}
	if cl := l.claims[r.Owner]; cl != nil {
		if out.LeaseUntil = l.clock(cl.at); cl.ahead {
			out.LeaseUntil = 0
		}
	}
	return out
}

// put adds a message to the state, and returns its index.
func (l *local) put(m *message, at model.Place) int {
	l.Bounds.Messages = append(l.Bounds.Messages, model.Message{Keys: m.keys, Spare: at == model.Gone})
	n := len(l.Bounds.Messages) - 1
	l.s.Messages[n] = at
	return n
}

// carry adds the versions that other messages in the queues carry, because those versions are not
// lost.
func (l *local) carry(not *message) {
	for k := range l.waiting(not).All() {
		l.put(&message{keys: model.Keys(k)}, model.HeldPlace)
	}
}

// exec returns the model's execution for a claim.
func (l *local) exec(cl *claim) model.Exec {
	e := model.Exec{
		Phase: cl.phase, Key: cl.key, Token: l.token(cl.token), Fence: l.clock(cl.at), Refusals: cl.refusals,
	}
	if cl.message != nil {
		e.Messages = 1 << l.put(cl.message, model.HeldPlace)
	}
	return e
}

// step looks for an edge that leads to the next state of the simulated run, and takes the edge.
// step prefers an edge that breaks nothing.
func (l *local) step(leads func(t *model.State) bool) bool {
	var broken model.Broken
	found := false
	for _, e := range l.Next(l.s, nil) {
		if !leads(&e.To) {
			continue
		}
		if b := e.Broken & model.All; b == 0 || l.refusedAfterApplied(b) {
			l.s = e.To
			return true
		}
		broken, found = e.Broken, true
	}
	if found {
		l.part("an edge of the model", "%s", broken&model.All)
	}
	return false
}

// refusedAfterApplied reports whether the broken promise is the first exception of docs/model.md.
// There, the sink applied an uncommitted version without an answer, and then refused it for good.
// An older version may therefore replace it.
func (l *local) refusedAfterApplied(b model.Broken) bool {
	k := l.s.Sink.Content
	return b&^(model.WentBack|model.Resurrected) == 0 && k > l.s.Row.Committed &&
		(l.s.Row.Dead == k || l.s.DeadLetters[k] != model.NoDeadLetter)
}
