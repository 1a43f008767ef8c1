package index

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/seam/fanout"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// verdict says whether the sink accepts documents of a collection, as far as this turn knows.
type verdict byte

const (
	unasked   verdict = iota
	takes             // it accepted a document, so a refusal is the document's fault
	refuses           // it refuses a document that it already holds: no document is at fault
	unclear           // the sink could not be asked now
	noWitness         // no document to ask with exists: the refusal is believed
)

const (
	// maxDoubted bounds the collections that a turn asks about, and maxCopies the reads for
	// each.
	maxDoubted = 16
	maxCopies  = 3
)

// copies reads documents back from the sink.
type copies interface {
	Get(ctx context.Context, doc shard.DocID) (sink.Stored, bool, error)
}

// witness is a document that is written again to test its collection.
type witness struct {
	doc  int // index into the sent documents, -1 if it was not sent
	copy sink.Op
}

// refusals are the refusals of a turn, and what it knows of their cause.
type refusals struct {
	*invocation
	engine   *engine
	budget   *budget
	verdicts map[shard.Collection]verdict // of the collections written in this turn
	asked    bool                         // the turn has sent its question
}

// explain finds out whether the documents or the sink caused the refusals, before a document
// becomes a dead letter. If the sink applied a put of the same collection, the refused documents
// are at fault. Otherwise a document that was committed before is written again, exactly as the
// sink holds it. If the sink refuses that too, the index or its settings are at fault (ADR
// 0023). A document that the sink's client rejects by itself, without a status, is at fault.
//
// The copy changes nothing. Its fence is older than the document's own: a sink with versions
// refuses its content, or refuses it as older. For a sink without versions this turn holds the
// document's lease. The document's own op was definitely refused. If the copy gets no answer the
// lease stays, as after any write.
func (s *refusals) explain(ctx context.Context, r *request) {
	docs, ops, outcomes := r.docs, r.ops, r.outcomes
	suspects := map[shard.Collection][]int{}
	for i, o := range outcomes {
		c := docs[i].id.Collection()
		switch {
		case o.Kind == sink.Applied && ops[i].Kind == shard.Put:
			s.verdicts[c] = takes
		case (o.Kind == sink.Refused || o.Kind == sink.Rejected) && o.Status != 0:
			suspects[c] = append(suspects[c], i)
		}
	}
	s.question(ctx, docs, outcomes, suspects)
	for c, refused := range suspects {
		for _, i := range refused {
			o := outcomes[i]
			switch {
			case o.Kind != sink.Refused && o.Kind != sink.Rejected: // the witness: its copy got no answer
			case s.verdicts[c] == refuses:
				outcomes[i] = sink.Outcome{
					Kind: sink.Configuration, Status: o.Status, Apart: o.Apart,
					Reason: "a document that was written before gets the same answer: " + o.Reason,
				}
			case s.verdicts[c] == unclear:
				outcomes[i] = sink.Outcome{
					Kind: sink.Throttled, Status: o.Status, Apart: true,
					Reason: "whose fault it is is not known yet: " + o.Reason,
				}
			}
		}
	}
}

// question asks about the collections without a verdict, once in a turn and in one request.
func (s *refusals) question(ctx context.Context, docs []*document, outcomes []sink.Outcome,
	suspects map[shard.Collection][]int,
) {
	var ask []shard.Collection
	for c := range suspects {
		// An earlier request of the turn may have had no witness. This one may have one.
		if s.verdicts[c] == unasked || s.verdicts[c] == noWitness && slices.ContainsFunc(docs, func(d *document) bool {
			return d.id.Collection() == c && d.row.CommittedOp == shard.Put
		}) {
			s.verdicts[c] = unclear
			ask = append(ask, c)
		}
	}
	slices.Sort(ask)
	if len(ask) == 0 || s.asked || s.remaining() <= sinkMargin+time.Second {
		return
	}
	witnesses := s.witnesses(ctx, docs, outcomes, ask[:min(len(ask), maxDoubted)])
	ops := make([]sink.Op, len(witnesses))
	for i, w := range witnesses {
		ops[i] = w.copy
		if s.config.Versions(s.sinkName) {
			// One below its own: the sink checks the whole copy and then finds that it is older.
			// If a mapping leaves fields out, the sink returns less than it holds, so the copy
			// must not be applied.
			ops[i].Fence--
		}
	}
	if len(ops) == 0 || !s.budget.mayGo(ctx, len(ops)) {
		return
	}
	s.asked = true
	answers, _ := s.engine.send(ctx, ops)
	for i, o := range answers {
		w := witnesses[i]
		c := w.copy.Doc.Collection()
		switch {
		case o.Kind == sink.Applied, o.Kind == sink.Newer:
			s.verdicts[c] = takes
		case o.Kind == sink.Unknown && w.doc >= 0:
			outcomes[w.doc] = sink.Outcome{Kind: sink.Unknown, Status: o.Status, Reason: "its copy: " + o.Reason}
		case o.Kind == sink.Unknown, o.Kind == sink.Throttled: // unclear
		case o.Status == 0 && o.Kind != sink.Configuration: // rejected by our own check: the sink was not asked
			s.verdicts[c] = noWitness
		default:
			s.verdicts[c] = refuses
		}
	}
}

// witnesses reads back, for each collection, the first committed document of this request that
// the sink holds. A document qualifies only if its own op was definitely not applied.
func (s *refusals) witnesses(ctx context.Context, docs []*document, outcomes []sink.Outcome,
	ask []shard.Collection,
) (found []witness) {
	reader, ok := s.engine.sink.(copies)
	if !ok {
		for _, c := range ask {
			s.verdicts[c] = noWitness
		}
		return nil
	}
	var candidates []int
	of := map[shard.Collection]int{}
	for i, d := range docs {
		c, o := d.id.Collection(), outcomes[i].Kind
		if slices.Contains(ask, c) && d.row.CommittedOp == shard.Put && of[c] < maxCopies &&
			o != sink.Unknown && o != sink.Newer && o != sink.Applied {
			of[c]++
			candidates = append(candidates, i)
		}
	}
	ctx, cancel := s.clock.Deadline(ctx, (s.remaining()-sinkMargin)/2)
	defer cancel()
	read := fanout.Map(s.parallel, maxParallel, candidates, func(n int) stored {
		return readBack(ctx, reader, docs[n].id)
	})
	for _, c := range ask {
		s.verdicts[c] = noWitness
	}
	for i, n := range candidates {
		if c := docs[n].id.Collection(); of[c] > 0 {
			if w := s.testify(c, docs[n].id, n, read[i]); w != nil {
				of[c] = 0 // the collection has its witness
				found = append(found, w...)
			}
		}
	}
	for _, c := range ask {
		if s.verdicts[c] == noWitness {
			found = append(found, s.sample(ctx, reader, c)...)
		}
	}
	return found
}

// testify makes a witness of a document that was read back, if it can.
func (s *refusals) testify(c shard.Collection, row shard.DocID, doc int, r stored) []witness {
	// If a document was kept without a write, this key is older than the committed one.
	key, bad := shard.ParseOrderKey(r.Key)
	switch {
	case r.err != nil && !errors.Is(r.err, sink.ErrDenied):
		s.lost("read a document back", row, r.err)
		s.verdicts[c] = unclear
	case r.err == nil && bad == nil:
		s.verdicts[c] = unclear // until the sink has answered
		return []witness{{doc, r.copy(key)}}
	}
	return nil
}

// sample finds a witness outside this request: any document of the collection. This turn does
// not hold its lease, so the sink must have versions. The document that a search returns may
// have changed or been deleted since, so it is read back.
func (s *refusals) sample(ctx context.Context, reader copies, c shard.Collection) []witness {
	sampler, ok := s.engine.sink.(sink.Sampler)
	if !ok || !s.config.Versions(s.sinkName) {
		return nil
	}
	var r stored
	if p := fanout.Catch(func() {
		var named bool
		if r.Doc, named, r.err = sampler.Sample(ctx, c); r.err == nil && named {
			r = readBack(ctx, reader, r.Doc)
		}
	}); p != nil {
		r.err = errPanic
	}
	return s.testify(c, r.Doc, -1, r)
}

// errPanic replaces the error when the sink's client panics.
var errPanic = errors.New("a panic of the sink's client")

// stored is a document that was read back, or the reason why it was not.
type stored struct {
	sink.Stored
	err error
}

// copy returns the op that writes the document unchanged.
func (s stored) copy(k shard.OrderKey) sink.Op {
	return sink.Op{
		Doc: s.Doc, Kind: shard.Put, Fence: s.Fence, Key: k, Version: s.Version, At: s.Indexed, Document: s.Document,
	}
}

// readBack reads a document. A deleted document counts as denied: neither can be used to ask.
func readBack(ctx context.Context, reader copies, doc shard.DocID) (s stored) {
	var there bool
	doc = doc.Plain()
	if p := fanout.Catch(func() { s.Stored, there, s.err = reader.Get(ctx, doc) }); p != nil {
		s.err = errPanic
	}
	if s.err == nil && !there {
		s.err = sink.ErrDenied
	}
	s.Doc = doc
	return s
}
