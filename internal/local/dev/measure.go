// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"time"

	"github.com/lullhq/lull/internal/local/ledger"
	"github.com/lullhq/lull/internal/seam/flight"
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
