// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"strings"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/memorysink"
)

// heldReader reads the documents of an engine.
type heldReader struct {
	*memorysink.Sink
	e *engine
}

func (r heldReader) Get(ctx context.Context, doc shard.DocID) (sink.Stored, bool, error) {
	return r.Sink.Get(ctx, r.e.row(doc))
}

func (r heldReader) Documents(ctx context.Context, docs []shard.DocID) ([]sink.Stored, error) {
	rows := make([]shard.DocID, len(docs))
	for i, doc := range docs {
		rows[i] = r.e.row(doc)
	}
	return r.Sink.Documents(ctx, rows)
}

// checkExplained compares the output of `lull explain` for a document with the oracle's record.
func (w *World) checkExplained(doc shard.DocID, l *ledger) {
	p := w.pipeOf(doc)
	o := operate.Operator{
		Shards: w.table.rows, Dead: w.letters, Schedule: w.schedule, Flights: w.flights, Config: w.cfg,
		Clock: trueClock{&w.scheduler}, Readers: map[string]sink.Reader{p.name: heldReader{p.engine.docs, p.engine}},
		Counts: func(context.Context) ([]operate.QueueStatus, error) { return nil, nil },
	}
	x, err := o.API().Explain(background, doc)
	wrong := func(want string) {
		w.oracle.violate("explain agrees with the oracle", fmt.Sprintf(
			"%s: %s, want %s: %q, error %v (%s in the sink, %s committed)", doc, x.State, want, x.Sentence, err, l.inSink,
			l.committed))
	}
	row := w.table.row(doc)
	differs := row.Exists() && l.shown() != row.Committed
	switch x.State {
	case operate.StateFresh:
		if differs {
			wrong("it to say that row and sink differ")
		}
		for _, k := range l.keys {
			// If an operator has withdrawn the version by a reset, the explanation need not name
			// the dead letter of the version.
			if k > l.committed && w.oracle.isDead(doc, k) && !row.Took(k) {
				wrong("it to name the dead letter of " + k.VersionText())
			}
		}
	case operate.StateSinkLost, operate.StateSinkOlder, operate.StateSinkNewer, operate.StateSinkKept:
		if !differs && !l.older { // versions with the same content count as equal: see docs/deploy.md
			wrong("it to be fresh")
		}
	case operate.StateNobody: // no event of the document was accepted, or its dead letter was dropped
		if row.Exists() || l.inSinkOp == shard.Put && l.inSink != "" {
			wrong("what is known of it")
		}
	case operate.StateDropped:
		if l.inSinkOp == shard.Put && l.inSink != "" && !strings.Contains(x.Sentence, "The sink holds") {
			wrong("it to say that the sink holds it all the same")
		}
	case operate.StateDead, operate.StateRedriven, operate.StateCollected, operate.StateScheduled,
		operate.StateAway, operate.StateFarAhead, operate.StateReset, operate.StateForgotten:
	default:
		wrong("a row without a pending version, of a document that was sent")
	}
	if err != nil {
		wrong("an answer")
	}
}
