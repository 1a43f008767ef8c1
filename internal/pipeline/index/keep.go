package index

import (
	"context"

	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// maxGenerations bounds how many collections a turn asks about: senders name them. The documents of
// the others are written.
const maxGenerations = 16

// keep is step 3 for documents that the sink shows already: KEEP commits them without a lease and
// without a request to the sink. It returns the others. The rows may have been read from an older
// image, because the condition of KEEP compares all that was read.
func (t *turn) keep(ctx context.Context, docs []*document) (others []*document) {
	for _, d := range docs {
		t.recognise(ctx, d)
	}
	// Three rounds bound the tries, as those of CLAIM, which judges what is left.
	for range 3 {
		docs = each(t, docs, func(d *document) *answer { return t.keepOne(ctx, d) }, func(d *document, a *answer) bool {
			if a == nil {
				others = append(others, d)
			}
			return a != nil && t.kept(d, *a)
		})
	}
	return append(others, docs...)
}

// recognise says of a put which generation of the sink it goes to. That is known before anything is
// written: where the index is made anew meanwhile, the row names the old one, and the next event is
// written.
func (t *turn) recognise(ctx context.Context, d *document) {
	d.generation = ""
	if d.newest().Op != shard.Put || d.fault != "" || !t.h.Config.Keeps(string(d.id.Collection()), t.h.SinkName) {
		return
	}
	d.generation = t.generation(ctx, d.id.Collection())
}

// generation is asked for once in a turn. What is remembered longer would outlive an index that is
// made anew under its name.
func (t *turn) generation(ctx context.Context, c shard.Collection) string {
	g, asked := t.generations[c]
	if asked || len(t.generations) >= maxGenerations {
		return g
	}
	if asks, ok := t.h.Sink.(sink.Generator); ok {
		limit := min(t.h.Config.Index.SinkDeadline, (t.remaining()-sinkMargin)/4)
		call, cancel := t.h.Clock.Deadline(ctx, limit)
		defer cancel()
		var err error
		p := t.catch("ask which index it is", "", func() { g, err = asks.Generation(call, c) })
		if t.lost("ask which index it is", "", err) || p != nil {
			g = ""
		}
	}
	if g != "" {
		g = t.h.Config.Generation(string(c), t.h.SinkName) + "\n" + g
	}
	t.generations[c] = g
	return g
}

// plain is a document in the form in which every sink stores it, where it is to be recognised. What
// no sink can hold is left for the sink to reject.
func (t *turn) plain(d *document, body []byte) []byte {
	if t.h.Config.Keeps(string(d.id.Collection()), t.h.SinkName) {
		if plain, fault := sink.Plain(body); fault == nil {
			return plain
		}
	}
	return body
}

// content is what the row says of the document once it is committed, "" for nothing.
func (d *document) content(k shard.OrderKey) shard.Content {
	if d.generation == "" {
		return ""
	}
	return shard.ContentOf(d.generation, k, d.body)
}

// resync reports whether the event is of a resync, which writes whatever the sink shows.
func (e *held) resync() bool {
	parts, err := e.Key.Parts()
	return err != nil || parts.Run != shard.Run{}
}

// keepOne is one KEEP of a document that the row recognises, nil of any other. What is loaded under
// the lease is not there yet, see unchanged.
func (t *turn) keepOne(ctx context.Context, d *document) *answer {
	e := d.newest()
	if d.generation == "" || d.reference != nil || e.resync() || d.row.Claimed != "" || d.row.Owner != "" {
		return nil
	}
	w, same := shard.Keep(shard.Kept{
		Doc: d.id, Key: e.Key, Now: t.now(), Cap: d.step.Cap, Expires: t.h.Config.Expires(t.h.Clock.Now()),
		Generation: d.generation, Document: d.body,
	}, d.row)
	if !same {
		return nil
	}
	a := t.ask(ctx, w)
	return &a
}

// kept takes in the answer of one KEEP. It reports whether the row's new image is worth another
// look: KEEP once more, or CLAIM.
func (t *turn) kept(d *document, a answer) (again bool) {
	e := d.newest()
	if a.unknown() {
		// It may still be applied: the version is committed then, and the next turn reads that.
		t.wait(d, t.now().Add(t.delay(t.state.Turn)), "KEEP got no answer")
		return false
	}
	// A refusal by our own KEEP, whose answer was lost, shows the version committed with our content.
	if a.err == nil || a.row.Committed == e.Key && a.row.Content == d.content(e.Key) {
		t.unwritten(d, e, d.row) // nothing of the document is left
		return false
	}
	return t.refused(d, a.row)
}

// unwritten takes a version out of the flight that was committed without a write.
func (t *turn) unwritten(d *document, e *held, old shard.Row) {
	n := t.about(d, e, journal.Kept, "the same content as version "+old.Committed.VersionText())
	n.Old = old
	t.drop(e)
	t.note(n)
	t.doneUpTo(d, e.Key)
}

// unchanged commits what was loaded under the lease and what the sink shows already. It returns the
// others, with what COMMIT will say of their bytes. CLAIM took `content` out of the row, but it
// returned the row as it was before: the sink shows those bytes where nothing was claimed then.
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

// showed reports whether the sink shows these bytes by the row as it was before CLAIM.
func (d *document) showed(plain []byte) bool {
	was := d.before
	return d.generation != "" && was.Claimed == "" && was.CommittedOp == shard.Put &&
		was.Content == shard.ContentOf(d.generation, was.Committed, plain)
}
