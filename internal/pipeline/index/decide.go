package index

import (
	"cmp"
	"context"
	"slices"

	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/shard"
)

// decide is step 1: read the rows of what is due and let shard.Decide say what to do with the
// newest version of each. It returns the documents to claim.
func (t *turn) decide(ctx context.Context) []*document {
	due := t.due()
	if len(due) == 0 {
		return nil
	}
	var claims, behind []*document
	docs := due
	// The cheap read comes first. A row that it cannot decide is read again, consistently (design
	// section 5).
	for _, c := range []shard.Consistency{shard.Eventual, shard.Consistent} {
		// The claims of the first read remain good, because the condition of CLAIM protects them.
		if err := t.read(ctx, docs, c); err != nil {
			t.again(t.now().Add(t.delay(0)))
			return t.unlessOpen(claims)
		}
		var doubtful []*document
		for _, d := range docs {
			switch t.settle(d, bool(c)) {
			case shard.ActClaim:
				claims = append(claims, d)
			case shard.ActReadAgain:
				doubtful = append(doubtful, d)
			case shard.ActAdmit:
				behind = append(behind, d)
			}
		}
		if docs = doubtful; len(docs) == 0 {
			break
		}
	}
	return t.unlessOpen(append(claims, t.admit(ctx, behind)...))
}

// due picks the documents whose newest held version is due, at most maxItemsPerTurn. The others set
// the next wake. Where they are more, each turn begins where the one before ended: documents that
// wait for long must not be all that a flight ever looks at.
func (t *turn) due() []*document {
	now, limit := t.now(), t.h.Config.Index.MaxItemsPerTurn
	first := 0
	if n := len(t.docs); n > limit {
		first = t.state.Turn % n * limit % n
	}
	var due []*document
	for _, d := range slices.Concat(t.docs[first:], t.docs[:first]) {
		switch e := d.newest(); {
		case e == nil:
		case e.Due > now:
			t.again(e.Due)
		case len(due) >= limit:
			// The next turn takes the rest, as soon as it can start.
			t.again(now)
		default:
			due = append(due, d)
		}
	}
	return due
}

// read fills in the rows of the documents. `known` says that the whole image can be believed
// (design section 5).
func (t *turn) read(ctx context.Context, docs []*document, c shard.Consistency) error {
	ids := make([]shard.DocID, len(docs))
	for i, d := range docs {
		ids[i] = d.id
	}
	rows, err := t.rows().Read(ctx, ids, c)
	if t.lost("read rows", "", err) {
		return err
	}
	for i, d := range docs {
		d.row, d.known = rows[i], bool(c)
	}
	return nil
}

// settle decides for the newest version, then for the next one where the newest is out of the way.
// It stops when one must be claimed or waits, or when nothing remains.
func (t *turn) settle(d *document, consistent bool) shard.Act {
	for e := d.newest(); e != nil; e = d.newest() {
		timing := t.h.Config.Timing(d.id.Collection())
		now := t.now()
		turns := 0
		if timing.Quiet > 0 {
			// each wait for quiet takes quiet; an older version may be due later
			turns = max(int(now.Sub(e.Due)/timing.Quiet), 0)
		}
		d.step = shard.Decide(d.row, shard.Hold{Key: e.Key, Admitted: e.Admitted}, shard.View{
			Now: now, Consistent: consistent || d.known, Turn: turns, Backoff: now.Add(t.delay(turns)),
		}, timing)
		switch d.step.Act {
		case shard.ActDone:
			// committed >= k: the older versions that the flight holds are done too.
			t.doneUpTo(d, d.row.Committed)
		case shard.ActStored:
			// The dead letter of this version decides nothing about older ones. The loop goes on
			// with them.
			t.doneStored(d, e.Key)
		case shard.ActLeave:
			if d.row.Foreign() {
				t.note(t.about(d, e, journal.Schema, "row"))
			}
			// The message leaves undeleted and visible at once (ADR 0005).
			t.giveUp(d, e, d.step.Why)
		case shard.ActWait:
			t.wait(d, d.step.Until, d.step.Why)
			return shard.ActWait
		default:
			return d.step.Act
		}
	}
	return shard.ActDone
}

// wait keeps the document in the flight until the given time.
func (t *turn) wait(d *document, until shard.Micros, why string) {
	t.again(until)
	n := t.about(d, d.newest(), journal.Waiting, why)
	n.Until = until.Time()
	t.note(n)
}

// waitAll keeps documents for one reason.
func (t *turn) waitAll(docs []*document, until shard.Micros, why string) {
	for _, d := range docs {
		t.wait(d, until, why)
	}
}

// waitForOlder keeps a document whose newest version is out of the way, if the flight holds an
// older one: the next turn looks at it.
func (t *turn) waitForOlder(d *document) {
	if d.newest() != nil {
		t.wait(d, t.now(), "an older version has its turn next")
	}
}

// shut is why nothing is claimed.
func (t *turn) shut() string {
	switch {
	case t.unread:
		return "the sink's health could not be read"
	case t.sink.row.PausedAt != 0:
		return "an operator has paused the sink"
	}
	return "the sink is unhealthy"
}

// unlessOpen keeps the claims back while the sink is unhealthy. While the circuit breaker is open,
// nothing is claimed (design section 8).
func (t *turn) unlessOpen(claims []*document) []*document {
	if t.sink.circuit == shard.CircuitClosed {
		return claims
	}
	t.waitAll(claims, t.sink.next, t.shut())
	return nil
}

// postpone keeps documents for the next turn. None of them is claimed, so another flight may write
// them meanwhile.
func (t *turn) postpone(ctx context.Context, docs []*document) {
	if len(docs) == 0 {
		return
	}
	if !t.tripped && t.pace() > 0 {
		t.reserve(ctx, len(docs))
		t.awaitBudget(docs)
		return
	}
	until, why := t.now(), "no time left in this invocation"
	if t.tripped {
		until, why = t.sink.next, t.shut()
	}
	t.waitAll(docs, until, why)
}

// rounds groups the claims by how often they went unanswered: healthy ones first and together, then
// quarters, then each alone, so that a document that kills requests or invocations is found alone.
func (t *turn) rounds(claims []*document) [][]*document {
	var healthy, some, alone []*document
	for _, d := range claims {
		switch {
		case d.row.Attempts >= 3, t.state.Panicked.Has(d.newest().item):
			alone = append(alone, d)
		case d.row.Attempts == 2:
			some = append(some, d)
		default:
			healthy = append(healthy, d)
		}
	}
	var out [][]*document
	if n := len(healthy); n > 0 {
		// From another one in each turn: payloads that take all the time must not starve those
		// behind them.
		first := t.state.Turn * maxParallel % n
		if t.cautious {
			first = t.state.Turn % n // of an origin that failed, one document alone is asked for first
		}
		if t.slot != 0 {
			first = 0 // what a slot is for goes oldest first
		}
		out = append(out, slices.Concat(healthy[first:], healthy[:first]))
	}
	out = slices.AppendSeq(out, slices.Chunk(some, shard.GroupSize(2, len(claims))))
	// The least suspect first: one that kills invocations must not starve those behind it.
	slices.SortStableFunc(alone, func(a, b *document) int { return cmp.Compare(a.row.Attempts, b.row.Attempts) })
	return slices.AppendSeq(out, slices.Chunk(alone, 1))
}
