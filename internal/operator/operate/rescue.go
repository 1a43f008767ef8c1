// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"errors"
	"fmt"

	"github.com/lullhq/lull/internal/pipeline/prune"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/seam/schedule"
	"github.com/lullhq/lull/internal/shard"
)

// Rescued names the flight that a rescue has started.
type Rescued struct {
	ID flight.ID `json:"id"`
}

// rescuer starts flights from the manifests of stuck flights.
type rescuer struct {
	layout

	Shards   shard.Store
	Flights  flight.Store
	Dead     deadletter.Store
	Schedule schedule.Store
	Launcher func(sink string) flight.Launcher
	Queues   func(sink string, lane flight.Lane) queue.Queue
	Clock    clock.Clock
	Journal  journal.Journal
}

// Rescue starts a flight from the manifest of a stuck flight.
func (o *rescuer) Rescue(ctx context.Context, id flight.ID) (r Rescued, err error) {
	m, err := o.Flights.Get(ctx, id)
	if errors.Is(err, flight.ErrNotFound) {
		return r, fmt.Errorf("flight %s: %w", id, ErrNotFound)
	}
	if err != nil {
		return r, fmt.Errorf("rescue flight %s: %w", id, err)
	}
	if _, ours := o.Config.Sinks[m.Sink]; !ours {
		return r,
			inputf(
				"rescue flight %s: its sink %q is not in these settings: does the flight belong to another stack?",
				id,
				m.Sink,
			)
	}
	p := prune.Pruner{
		Shards: o.Shards, Flights: o.Flights, Letters: o.Dead, Schedule: o.Schedule,
		Live: o.Queues(m.Sink, flight.Live),
		Bulk: o.Queues(m.Sink, flight.Bulk), Launcher: o.Launcher(m.Sink), Config: o.Config, Sink: m.Sink,
		Clock: o.Clock, Journal: o.Journal, NewID: flight.NewID,
	}
	r.ID, err = p.Rescue(ctx, id)
	return r, kind(err)
}
