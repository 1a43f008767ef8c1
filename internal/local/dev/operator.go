// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"iter"
	"maps"

	"github.com/lullhq/lull/internal/local/story"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/pipeline/payload"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// Operator returns an operator, which runs commands on this engine. rec records the decisions for
// explain; it may be nil.
func (e *Engine) Operator(rec *story.Recorder) *operate.Operator {
	o := &operate.Operator{
		Shards: e.Shards, Scanner: e.Shards, Dead: e.Letters, Schedule: e.Schedule, Flights: e.Flights,
		Launcher: func(name string) flight.Launcher { return e.launcher(e.pipes[name].lane(flight.Live)) },
		Queues: func(name string, lane flight.Lane) queue.Queue {
			if p := e.pipes[name]; p != nil {
				return p.lane(lane).queue
			}
			return nil
		},
		Counts: e.queueStatus, Rows: e.Shards.All(), Readers: map[string]sink.Reader{}, Sinks: map[string]sink.Sink{},
		Unread:  map[string]error{},
		Connect: payload.Connect, Fetch: e.payloads.Fetch,
		Sources: e.sources,
		Config:  e.cfg, Clock: e.clk,
		Journal: e.notes,
		Publisher: func(ctx context.Context, sink string, lane flight.Lane, out queue.Outgoing) error {
			return e.publish(ctx, out, lane, sink)
		},
	}
	if e.Archive != nil {
		o.Archive = e.Archive
	}
	maps.Insert(o.Readers, e.readers())
	for name, p := range e.pipes {
		if o.Sinks[name] = p.sink; o.Readers[name] == nil {
			o.Unread[name] = operate.ErrWriteOnly
		}
	}
	if rec != nil {
		o.History = func(_ context.Context, doc shard.DocID) ([]operate.Decision, error) {
			return rec.Decisions(doc), nil
		}
	}
	return o
}

// readers yields the sinks that can be read, with their names.
func (e *Engine) readers() iter.Seq2[string, sink.Reader] {
	return func(yield func(string, sink.Reader) bool) {
		for _, name := range e.order {
			if r, ok := e.pipes[name].sink.(sink.Reader); ok && !yield(name, r) {
				return
			}
		}
	}
}

// reader returns the sink of the pipe if it can be read, otherwise nil.
func (e *Engine) reader(p *pipe) sink.Reader {
	r, _ := p.sink.(sink.Reader)
	return r
}

func (e *Engine) queueStatus(context.Context) ([]operate.QueueStatus, error) {
	var out []operate.QueueStatus
	for _, name := range e.order {
		for _, q := range e.pipes[name].queues() {
			c := q.Counts()
			out = append(out, operate.QueueStatus{
				Queue: q.Name(), Sink: name, Visible: c.Visible, InFlight: c.InFlight, Delayed: c.Delayed,
			})
		}
	}
	return out, nil
}
