package index

import (
	"context"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// maxGenerations bounds how many collections a turn asks the sink about, because senders choose
// their names. The documents of other collections are written.
const maxGenerations = 16

// keep is step 3 for documents whose content the sink already has. KEEP commits them without a
// lease and without a request to the sink. keep returns the other documents. A row may come from
// an older read, because the condition of KEEP compares everything that was read.
func (t *turn) keep(ctx context.Context, docs []*document) (others []*document) {
	for _, d := range docs {
		t.recognise(ctx, d)
	}
	// Three rounds bound the tries, as for CLAIM. CLAIM then decides about the rest.
	for range 3 {
		docs = each(t.invocation, docs, func(d *document) *answer { return t.keepOne(ctx, d) }, func(d *document, a *answer) bool {
			if a == nil {
				others = append(others, d)
			}
			return a != nil && t.kept(d, *a)
		})
	}
	return append(others, docs...)
}

// recognise records which generation of the sink a put goes to. It runs before the write: if the
// index is created again in the meantime, the row has the old generation, and the next event is
// written.
func (t *turn) recognise(ctx context.Context, d *document) {
	d.generation = ""
	if d.newest().Op != shard.Put || d.fault != "" || !t.config.Keeps(string(d.id.Collection()), t.sinkName) {
		return
	}
	d.generation = t.generation(ctx, d.id.Collection())
}

// generation asks the sink once in a turn. An answer that is kept longer would be wrong after an
// index is created again under its name.
func (t *turn) generation(ctx context.Context, c shard.Collection) string {
	g, asked := t.generations[c]
	if asked || len(t.generations) >= maxGenerations {
		return g
	}
	if asks, ok := t.h.Sink.(sink.Generator); ok {
		limit := min(t.config.Index.SinkDeadline, (t.remaining()-sinkMargin)/4)
		call, cancel := t.clock.Deadline(ctx, limit)
		defer cancel()
		var err error
		p := t.catch("ask which index it is", "", func() { g, err = asks.Generation(call, c) })
		if t.lost("ask which index it is", "", err) || p != nil {
			g = ""
		}
	}
	if g != "" {
		g = t.config.Generation(string(c), t.sinkName) + "\n" + g
	}
	t.generations[c] = g
	return g
}

// plain returns a document in the form in which every sink stores it, if its content is to be
// recognised. If no sink can hold the document, plain returns it unchanged, and the sink rejects
// it.
func (t *turn) plain(d *document, body []byte) []byte {
	if t.config.Keeps(string(d.id.Collection()), t.sinkName) {
		if plain, fault := sink.Plain(body); fault == nil {
			return plain
		}
	}
	return body
}

// content returns what the row records of the content when it is committed, "" for nothing.
func (d *document) content(k shard.OrderKey) shard.Content {
	if d.generation == "" {
		return ""
	}
	return shard.ContentOf(d.generation, k, d.body)
}

// resync reports whether the event belongs to a resync, which writes whatever the sink holds.
func (e *held) resync() bool {
	parts, err := e.Key.Parts()
	return err != nil || parts.Run != shard.Run{}
}

// keepOne is one KEEP of a document whose content the row recognises. For any other it returns
// nil. A payload by reference is not loaded yet: see unchanged.
func (t *turn) keepOne(ctx context.Context, d *document) *answer {
	e := d.newest()
	if d.generation == "" || d.reference != nil || e.resync() || d.row.Claimed != "" || d.row.Owner != "" {
		return nil
	}
	w, same := shard.Keep(shard.Kept{
		Doc: d.id, Key: e.Key, Now: t.now(), Cap: d.step.Cap, Expires: t.config.Expires(t.clock.Now()),
		Generation: d.generation, Document: d.body,
	}, d.row)
	if !same {
		return nil
	}
	a := t.ask(ctx, w)
	return &a
}

// kept handles the answer of one KEEP. It reports whether the row's new image is worth another
// try, by KEEP or CLAIM.
func (t *turn) kept(d *document, a answer) (again bool) {
	e := d.newest()
	if a.unknown() {
		// KEEP may have been applied: the version is then committed, and the next turn reads
		// that.
		t.wait(d, t.now().Add(t.delay(t.state.Turn)), "KEEP got no answer")
		return false
	}
	// If our own KEEP was applied and its answer lost, the refusal shows the version committed
	// with our content.
	if a.err == nil || a.row.Committed == e.Key && a.row.Content == d.content(e.Key) {
		t.unwritten(d, e, d.row) // no older version remains either
		return false
	}
	return t.refused(d, a.row)
}

// unchanged commits documents that were loaded under the lease and that the sink already has. It
// returns the others, with the content that COMMIT will record. CLAIM removed `content` from the
// row but returned the row before. The sink has that content if no version was claimed then.
func (t *turn) unchanged(ctx context.Context, docs []*document) (others []*document) {
	same, others := split(docs, func(d *document) bool {
		e := d.newest()
		if d.fault != "" || e.Op != shard.Put {
			return false
		}
		d.lease.Content = d.content(e.Key)
		return d.reference != nil && !e.resync() && d.showed(d.body)
	})
	t.finishAll(len(same), func(i int) func() { return t.commit(ctx, same[i], same[i].newest(), false) })
	return others
}

// showed reports whether the sink has these bytes, by the row before CLAIM.
func (d *document) showed(plain []byte) bool {
	was := d.before
	return d.generation != "" && was.Claimed == "" && was.CommittedOp == shard.Put &&
		was.Content == shard.ContentOf(d.generation, was.Committed, plain)
}
