// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/sink"
)

// operate returns the operator for a command, with a test's change.
func (w *World) operate(v *invocation, change func(*operate.Operator)) operate.Operator {
	o := operate.Operator{
		Shards: w.shards(v), Scanner: v.Scanner(tableClient{w.table, v}), Dead: v.DeadLetters(w.letters),
		Schedule: v.Schedule(w.schedule), Flights: v.Flights(w.flights),
		Sinks: map[string]sink.Sink{}, Readers: map[string]sink.Reader{},
		Sources: w.sources, Config: w.cfg, Clock: v.clock, Journal: v, Parallel: v.parallel(),
	}
	for _, p := range w.pipes {
		o.Sinks[p.name], o.Readers[p.name] = w.sink(v, p), engineReader{v, p.engine}
	}
	hooked(change, &o)
	return o
}
