// SPDX-License-Identifier: Apache-2.0

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
	unasked     verdict = iota
	takes               // the sink accepted a document of the collection, so a refusal is the document's fault
	refuses             // the sink refuses a document that it already holds, so no document is at fault
	unclear             // the sink could not be asked now
	noKnownGood         // no document of the collection could be written again: lull believes the refusal
)

const (
	// maxDoubted bounds the number of collections that a turn asks the sink about. maxCopies bounds
	// the number of documents that it reads back for each collection.
	maxDoubted = 16
	maxCopies  = 3
)

// copyReader reads documents back from the sink.
type copyReader interface {
	Get(ctx context.Context, doc shard.DocID) (sink.Stored, bool, error)
}

// knownGood is a document that the sink already holds. lull writes it again to test its collection.
type knownGood struct {
	doc  int // index into the sent documents, -1 if the document was not sent
	copy sink.Op
}

// refusals holds the refusals of a turn, and what the turn knows of their cause.
type refusals struct {
	*invocation
	engine   *engine
	budget   *budget
	verdicts map[shard.Collection]verdict // verdicts on the collections written in this turn
	asked    bool                         // the turn has sent its test request
}

// explain finds out whether the documents or the sink caused the refusals, before a document
// becomes a dead letter. If the sink applied a put of the same collection, the refused documents
// are at fault. Otherwise lull writes a document that was committed before once more, exactly as
// the sink holds it. If the sink refuses that document too, the index or its settings are at fault
// (ADR 0023). A document that the sink's client rejects by itself, without a status, is at fault.
//
// The copy changes nothing. Its fence is older than the fence of the document, so a sink with
// versions refuses the content, or refuses the copy as older. For a sink without versions, this
// turn holds the lease of the document, and the sink definitely refused the document's own op. If
// the copy gets no answer, the lease stays, as after any write.
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
			case o.Kind != sink.Refused && o.Kind != sink.Rejected: // the copy of this document got no answer
			case s.verdicts[c] == refuses:
				outcomes[i] = sink.Outcome{
					Kind: sink.Configuration, Status: o.Status, Apart: o.Apart,
					Reason: "a document that was written before gets the same answer: " + o.Reason,
				}
			case s.verdicts[c] == unclear:
				outcomes[i] = sink.Outcome{
					Kind: sink.Throttled, Status: o.Status, Apart: true,
					Reason: "the cause is not known yet: " + o.Reason,
				}
			}
		}
	}
}

// question tests the collections without a verdict, once in a turn and in one request.
func (s *refusals) question(ctx context.Context, docs []*document, outcomes []sink.Outcome,
	suspects map[shard.Collection][]int,
) {
	var ask []shard.Collection
	for c := range suspects {
		// An earlier request of the turn may have had no known good document. This request may have
		// one.
		if s.verdicts[c] == unasked ||
			s.verdicts[c] == noKnownGood && slices.ContainsFunc(docs, func(d *document) bool {
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
	good := s.findKnownGood(ctx, docs, outcomes, ask[:min(len(ask), maxDoubted)])
	ops := make([]sink.Op, len(good))
	for i, w := range good {
		ops[i] = w.copy
		if s.config.Sinks[s.sinkName].Capabilities().Versions {
			// The fence is one below the fence of the document: the sink checks the whole copy and
			// then finds that the copy is older. If a mapping leaves fields out, the sink returns
			// less than it holds, so the sink must not apply the copy.
			ops[i].Fence--
		}
	}
	if len(ops) == 0 || !s.budget.mayGo(ctx, len(ops)) {
		return
	}
	s.asked = true
	answers, _ := s.engine.send(ctx, ops)
	for i, o := range answers {
		w := good[i]
		c := w.copy.Doc.Collection()
		switch {
		case o.Kind == sink.Applied, o.Kind == sink.Newer:
			s.verdicts[c] = takes
		case o.Kind == sink.Unknown && w.doc >= 0:
			outcomes[w.doc] = sink.Outcome{
				Kind: sink.Unknown, Status: o.Status, Reason: "the copy of this document: " + o.Reason,
			}
		case o.Kind == sink.Unknown, o.Kind == sink.Throttled: // unclear: the verdict stays
		// the sink's client rejected the copy, so the sink was not asked
		case o.Status == 0 && o.Kind != sink.Configuration:
			s.verdicts[c] = noKnownGood
		default:
			s.verdicts[c] = refuses
		}
	}
}

// findKnownGood reads back, for each collection, the first committed document of this request that
// the sink holds. A document qualifies only if the sink definitely did not apply its op.
func (s *refusals) findKnownGood(ctx context.Context, docs []*document, outcomes []sink.Outcome,
	ask []shard.Collection,
) (found []knownGood) {
	reader, ok := s.engine.sink.(copyReader)
	if !ok {
		for _, c := range ask {
			s.verdicts[c] = noKnownGood
		}
		return nil
	}
	var candidates []int
	tries := map[shard.Collection]int{}
	for i, d := range docs {
		c, o := d.id.Collection(), outcomes[i].Kind
		if slices.Contains(ask, c) && d.row.CommittedOp == shard.Put && tries[c] < maxCopies &&
			o != sink.Unknown && o != sink.Newer && o != sink.Applied {
			tries[c]++
			candidates = append(candidates, i)
		}
	}
	ctx, cancel := s.clock.Deadline(ctx, (s.remaining()-sinkMargin)/2)
	defer cancel()
	read := fanout.Map(s.parallel, maxParallel, candidates, func(n int) readResult {
		return readBack(ctx, reader, docs[n].id)
	})
	for _, c := range ask {
		s.verdicts[c] = noKnownGood
	}
	for i, n := range candidates {
		if c := docs[n].id.Collection(); tries[c] > 0 {
			if w := s.asKnownGood(c, docs[n].id, n, read[i]); w != nil {
				tries[c] = 0 // the collection has its known good document
				found = append(found, w...)
			}
		}
	}
	for _, c := range ask {
		if s.verdicts[c] == noKnownGood {
			found = append(found, s.sample(ctx, reader, c)...)
		}
	}
	return found
}

// If a document could be read back, asKnownGood returns it as a known good document.
func (s *refusals) asKnownGood(c shard.Collection, row shard.DocID, doc int, r readResult) []knownGood {
	// If a document was kept without a write, its key in the sink is older than the committed key.
	key, bad := shard.ParseOrderKey(r.Key)
	switch {
	case r.err != nil && !errors.Is(r.err, sink.ErrDenied):
		s.noteFailed("read a document back", row, r.err)
		s.verdicts[c] = unclear
	case r.err == nil && bad == nil:
		s.verdicts[c] = unclear // unclear until the sink has answered
		return []knownGood{{doc, r.copy(key)}}
	}
	return nil
}

// sample finds a known good document outside this request: any document of the collection. This
// turn does not hold the lease of that document, so the sink must have versions. The document that
// a search returns may have changed or been deleted in the meantime, so it is read back.
func (s *refusals) sample(ctx context.Context, reader copyReader, c shard.Collection) []knownGood {
	sampler, ok := s.engine.sink.(sink.Sampler)
	if !ok || !s.config.Sinks[s.sinkName].Capabilities().Versions {
		return nil
	}
	var r readResult
	if p := fanout.Catch(func() {
		var named bool
		if r.Doc, named, r.err = sampler.Sample(ctx, c); r.err == nil && named {
			r = readBack(ctx, reader, r.Doc)
		}
	}); p != nil {
		r.err = errPanic
	}
	return s.asKnownGood(c, r.Doc, -1, r)
}

// errPanic is the error of a read or sample in which the sink's client panicked.
var errPanic = errors.New("a panic of the sink's client")

// readResult is a document that was read back, or the reason why it could not be read.
type readResult struct {
	sink.Stored
	err error
}

// copy returns the op that writes the document unchanged.
func (s readResult) copy(k shard.OrderKey) sink.Op {
	return sink.Op{
		Doc: s.Doc, Kind: shard.Put, Fence: s.Fence, Key: k, Version: s.Version, At: s.Indexed, Document: s.Document,
	}
}

// readBack reads a document back from the sink. A deleted document counts as denied, because
// neither can be used as a test.
func readBack(ctx context.Context, reader copyReader, doc shard.DocID) (s readResult) {
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
