// SPDX-License-Identifier: Apache-2.0

package index

import (
	"context"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// maxGenerations bounds how many collections a turn asks the sink about. Without a bound there
// could be very many, because senders choose the names of collections. Documents of further
// collections are written without a comparison.
const maxGenerations = 16

// keeper commits documents if the sink already has their content.
type keeper struct {
	*holding
	sink        sink.Sink
	generations map[shard.Collection]string // generations of the collections with the setting keep
}

// keep commits documents whose content the sink already has (step 3). KEEP commits them without a
// lease and without a request to the sink. keep returns the other documents. A row may come from an
// older read, because the condition of KEEP compares everything that was read.
func (s *keeper) keep(ctx context.Context, docs []*document) (others []*document) {
	for _, d := range docs {
		s.recognise(ctx, d)
	}
	// At most three rounds are tried, as for CLAIM. CLAIM then decides about the remaining
	// documents.
	for range 3 {
		ask := func(d *document) *answer { return s.keepOne(ctx, d) }
		docs = each(s.invocation, docs, ask, func(d *document, a *answer) bool {
			if a == nil {
				others = append(others, d)
			}
			return a != nil && s.handleKeep(d, *a)
		})
	}
	return append(others, docs...)
}

// recognise records which generation of the sink's index a put goes to. It runs before the write:
// if the index is created again in the meantime, the row has the old generation, and the next event
// is written.
func (s *keeper) recognise(ctx context.Context, d *document) {
	d.generation = ""
	if d.newest().Op != shard.Put || d.fault != "" || !s.config.Keeps(string(d.id.Collection()), s.sinkName) {
		return
	}
	d.generation = s.generation(ctx, d.id.Collection())
}

// generation asks the sink for the generation of an index, once in a turn. An answer that is kept
// longer would be wrong after an index is created again under its name. A sink that cannot answer
// is not asked: then only the operator's text names the index, if there is one.
func (s *keeper) generation(ctx context.Context, c shard.Collection) string {
	g, asked := s.generations[c]
	if asked || len(s.generations) >= maxGenerations {
		return g
	}
	if s.config.OperatorNamesIndex(s.sinkName) {
		return s.config.Generation(string(c), s.sinkName)
	}
	if asks, ok := s.sink.(sink.Generator); ok {
		limit := min(s.config.Index.SinkDeadline, (s.remaining()-sinkMargin)/4)
		call, cancel := s.clock.Deadline(ctx, limit)
		defer cancel()
		var err error
		p := s.catch("ask which index it is", "", func() { g, err = asks.Generation(call, c) })
		if s.noteFailed("ask which index it is", "", err) || p != nil {
			g = ""
		}
	}
	if g != "" {
		g = s.config.Generation(string(c), s.sinkName) + "\n" + g
	}
	s.generations[c] = g
	return g
}

// content returns what the row records of the document's content at COMMIT, or "" for nothing.
func (d *document) content(k shard.OrderKey) shard.Content {
	if d.generation == "" {
		return ""
	}
	return shard.ContentOf(d.generation, k, d.body)
}

// isResync reports whether the event belongs to a resync. A resync writes a document whatever the
// sink holds.
func (e *heldEntry) isResync() bool {
	parts, err := e.Key.Parts()
	return err != nil || parts.Run != shard.Run{}
}

// keepOne sends one KEEP of a document whose content the row recognises. For any other document it
// returns nil. A payload by reference is not loaded yet: the function unchanged compares it later.
func (s *keeper) keepOne(ctx context.Context, d *document) *answer {
	e := d.newest()
	if d.generation == "" || d.reference != nil || e.isResync() || d.row.Claimed != "" || d.row.Owner != "" {
		return nil
	}
	w, same := shard.Keep(shard.Kept{
		Doc: d.id, Key: e.Key, Now: s.now(), Cap: d.step.Cap, Expires: s.config.Lifecycle.Expires(s.clock.Now()),
		Generation: d.generation, Document: d.body,
	}, d.row)
	if !same {
		return nil
	}
	a := s.ask(ctx, w)
	return &a
}

// handleKeep handles the answer of one KEEP. It reports whether another try by KEEP or CLAIM is
// worthwhile with the newest image of the row.
func (s *keeper) handleKeep(d *document, a answer) (again bool) {
	e := d.newest()
	if a.unknown() {
		// KEEP may have been applied. The version is then committed, and the next turn reads that
		// in the row.
		s.wait(d, s.now().Add(s.delay(s.state.Turn)), "KEEP got no answer")
		return false
	}
	// If our own KEEP was applied and its answer lost, the refusal shows that the version is
	// committed with our content.
	if a.err == nil || a.row.Committed == e.Key && a.row.Content == d.content(e.Key) {
		s.dropUnwritten(d, e, d.row) // no older version remains in the flight either
		return false
	}
	return s.decideAfterRefusal(d, a.row)
}

// unchanged commits documents that were loaded under the lease and whose content the sink already
// has. It returns the other documents, with the content that COMMIT will record. CLAIM removed
// `content` from the row but returned the row before CLAIM. The sink has that content if the row
// then had no claimed version.
func unchanged(ctx context.Context, c *closer, docs []*document) (others []*document) {
	same, others := split(docs, func(d *document) bool {
		e := d.newest()
		if d.fault != "" || e.Op != shard.Put {
			return false
		}
		d.lease.Content = d.content(e.Key)
		return d.reference != nil && !e.isResync() && d.sinkHas(d.body)
	})
	c.finishAll(len(same), func(i int) func() { return c.commit(ctx, same[i], same[i].newest(), false) })
	return others
}

// sinkHas reports, by the row before CLAIM, whether the sink has these bytes.
func (d *document) sinkHas(plain []byte) bool {
	was := d.before
	return d.generation != "" && was.Claimed == "" && was.CommittedOp == shard.Put &&
		was.Content == shard.ContentOf(d.generation, was.Committed, plain)
}
