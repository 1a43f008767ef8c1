// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"math"
	"time"

	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/pipeline/archive"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/schedule"
	"github.com/lullhq/lull/internal/shard"
)

// These types wrap the in-memory stores of the bucket and the tables. The wrappers count the billed
// requests and report each change to the oracles.
type (
	flights struct {
		*memory.Flights
		w *World
	}
	archived struct {
		*memory.Archive
		w *World
	}
	letters struct {
		*memory.DeadLetters
		w *World
	}
	planned struct {
		*memory.Schedule
		w *World
	}
)

// background is the context for work of the services themselves. background is never cancelled.
var background = context.Background()

func (f flights) Put(ctx context.Context, m *flight.Manifest) error {
	f.w.counts.Puts++
	f.w.watch(nil, Step{What: Held, Flight: m.Flight, Manifest: m})
	err := f.Flights.Put(ctx, m)
	if err == nil {
		f.keep(m)
	}
	return err
}

func (f flights) Get(ctx context.Context, id flight.ID) (*flight.Manifest, error) {
	f.w.counts.Gets++
	if f.w.foreign[id] {
		return nil, flight.ErrSchema
	}
	return f.Flights.Get(ctx, id)
}

func (f flights) Continue(ctx context.Context, id flight.ID, n int, s flight.State) (bool, error) {
	f.w.counts.Puts++
	return f.Flights.Continue(ctx, id, n, s)
}

func (a *archived) Put(ctx context.Context, n archive.Name, object []byte) error {
	a.w.counts.Puts++
	return a.Archive.Put(ctx, n, object)
}

func (s letters) Park(ctx context.Context, l deadletter.Letter) (deadletter.Parking, error) {
	parking, err := s.DeadLetters.Park(ctx, l)
	if err == nil {
		s.w.oracle.parked(l.Facts)
		s.w.watch(nil, Step{What: Parked, Keys: []shard.OrderKey{l.Key}})
	}
	return parking, err
}

// facts returns the facts of every stored dead letter.
func (s letters) facts() []deadletter.Facts {
	all, _, _ := s.List(background, deadletter.Filter{}, "", math.MaxInt32) // fails only if its context ends
	return all
}

func (s letters) MarkRedriven(ctx context.Context, id string, at time.Time, auto bool) error {
	err := s.DeadLetters.MarkRedriven(ctx, id, at, auto)
	if l, there, _ := s.Get(ctx, id); err == nil && there {
		s.w.watch(nil, Step{What: Redriven, Keys: []shard.OrderKey{l.Key}})
	}
	return err
}

func (s letters) Drop(ctx context.Context, id string) error {
	l, there, err := s.Get(ctx, id)
	if err != nil || !there {
		return err
	}
	err = s.DeadLetters.Drop(ctx, id)
	s.w.oracle.dropped(l.Facts)
	s.w.watch(nil, Step{What: Dropped, Keys: []shard.OrderKey{l.Key}})
	return err
}

func (s planned) Put(ctx context.Context, it schedule.Item) error {
	err := s.Schedule.Put(ctx, it)
	s.w.oracle.scheduled(it)
	return err
}

func (s planned) Delete(ctx context.Context, id string) error {
	err := s.Schedule.Delete(ctx, id)
	s.w.oracle.unscheduled(id)
	return err
}
