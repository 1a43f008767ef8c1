// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"time"

	"github.com/lullhq/lull/internal/local/ledger"
	"github.com/lullhq/lull/internal/operator/feed"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
)

// Used contains the numbers of requests that a deployed stack would have sent to AWS so far. The
// type Used does not count polls of empty queues.
type Used struct {
	RowWrites, RowReads, QueueCalls, ObjectWrites, ObjectReads, Starts, Invocations int64

	Flown time.Duration // total duration of all executions that have ended
}

// Used returns the numbers of calls of all functions so far.
func (e *Engine) Used() Used {
	m := &e.ledger.Meter
	return Used{
		RowWrites: m.RowWrites.Load(), RowReads: m.RowReads.Load(), QueueCalls: m.QueueCalls.Load(),
		ObjectWrites: m.ObjectWrites.Load(), ObjectReads: m.ObjectReads.Load(), Starts: m.Starts.Load(),
		Invocations: e.invoked.Load(), Flown: e.ledger.Flown(),
	}
}

// Counts returns the counters so far, without the list of dead letters.
func (e *Engine) Counts() ledger.Report { return e.ledger.Report() }

// Recent returns a point for each of the latest 600 steps with events; see [Options.Step].
func (e *Engine) Recent() []ledger.Point { return e.ledger.Recent() }

// Long returns a point for each of the latest long steps with events. A long step is 60 steps, and
// the points cover 1,440 long steps.
func (e *Engine) Long() []ledger.Point { return e.ledger.Long() }

// Parts returns the counts of each sink, collection and source.
func (e *Engine) Parts() []ledger.Part { return e.ledger.Parts() }

// sent counts a message that was sent to the queue of a sink.
func (e *Engine) sent(now time.Time, sink string, out queue.Outgoing, to feed.Route) {
	e.ledger.Sent(now, len(out.Body), len(to.Events))
	source := e.sources.At(sink).SourceOf(queue.Message{Body: out.Body, Attributes: out.Attributes})
	came := []ledger.Arrival{
		{Kind: ledger.BySink, Name: sink, Events: len(to.Events)},
		{Kind: ledger.BySource, Name: source, Events: len(to.Events)},
	}
	for _, r := range to.Events {
		came = append(came, ledger.Arrival{
			Kind: ledger.ByCollection, Name: string(r.Event.Doc.Collection()), Events: 1,
		})
	}
	e.ledger.Came(came...)
}

// Oldest returns when the oldest message in a live queue arrived, or the zero time if the live
// queues are empty.
func (e *Engine) Oldest() (oldest time.Time) {
	for _, name := range e.order {
		came, any := e.pipes[name].lane(flight.Live).queue.Oldest()
		if any && (oldest.IsZero() || came.Before(oldest)) {
			oldest = came
		}
	}
	return oldest
}

// Outages returns the latest outages: times in which lull claimed no document for a sink.
func (e *Engine) Outages() []ledger.Outage { return e.ledger.Outages() }
