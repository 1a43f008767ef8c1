package dev

import (
	"time"

	"github.com/lullhq/lull/internal/local/ledger"
	"github.com/lullhq/lull/internal/seam/flight"
)

// Used counts the requests that AWS would have got so far, without the polls of empty queues.
type Used struct {
	RowWrites, RowReads, QueueCalls, ObjectWrites, ObjectReads, Starts, Invocations int64

	Flown time.Duration // of all executions that have ended
}

// Used counts the calls of all functions.
func (e *Engine) Used() Used {
	m := &e.ledger.Meter
	return Used{
		RowWrites: m.RowWrites.Load(), RowReads: m.RowReads.Load(), QueueCalls: m.QueueCalls.Load(),
		ObjectWrites: m.ObjectWrites.Load(), ObjectReads: m.ObjectReads.Load(), Starts: m.Starts.Load(),
		Invocations: e.invoked.Load(), Flown: e.ledger.Flown(),
	}
}

// Counts are the counters so far, without the dead letters.
func (e *Engine) Counts() ledger.Report { return e.ledger.Report() }

// Recent returns the latest ten minutes step by step; see [Options.Step].
func (e *Engine) Recent() []ledger.Point { return e.ledger.Recent() }

// Oldest is when the oldest message in a live queue arrived, or the zero time if there is none.
func (e *Engine) Oldest() (oldest time.Time) {
	for _, name := range e.order {
		came, any := e.pipes[name].lane(flight.Live).queue.Oldest()
		if any && (oldest.IsZero() || came.Before(oldest)) {
			oldest = came
		}
	}
	return oldest
}

// Outages returns the latest times in which nothing was claimed for a sink.
func (e *Engine) Outages() []ledger.Outage { return e.ledger.Outages() }
