// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/flight"
)

// Flights stores manifests and checkpoints, as the same bytes that S3 would contain.
type Flights struct {
	shelf
	clk     clock.Clock
	flights map[flight.ID]*stored
}

type stored struct {
	manifest    []byte // nil if the flight has only checkpoints
	checkpoints map[int][]byte
	newest      time.Time
}

var _ flight.Store = (*Flights)(nil)

// NewFlights returns an empty store.
func NewFlights(clk clock.Clock) *Flights {
	return &Flights{clk: clk, shelf: shelf{keep: forgetful{}}, flights: map[flight.ID]*stored{}}
}

// The rooms of a Keeper for manifests and for checkpoints, by flight.
const (
	roomManifests   = "manifest"
	roomCheckpoints = "checkpoints"
)

type keptCheckpoints struct {
	Checkpoints map[int][]byte
	Newest      time.Time
}

// Keep restores the flights that the Keeper has stored. From then on, the store stores all changes
// in the Keeper. Call Keep before any other method.
func (f *Flights) Keep(k Keeper) error {
	f.keep = k
	err := restore(k, roomManifests, func(id string, manifest []byte) error {
		f.at(flight.ID(id)).manifest = manifest
		return nil
	})
	if err != nil {
		return err
	}
	return restore(k, roomCheckpoints, func(id string, c keptCheckpoints) error {
		s := f.at(flight.ID(id))
		s.newest = c.Newest
		maps.Copy(s.checkpoints, c.Checkpoints)
		return nil
	})
}

// keepCheckpoints stores the checkpoints of a flight in the Keeper. The caller holds the lock.
func (f *Flights) keepCheckpoints(id flight.ID, s *stored) {
	if stores(f.keep) {
		f.keep.Put(roomCheckpoints, string(id), keptCheckpoints{maps.Clone(s.checkpoints), s.newest})
	}
}

// Put encodes and stores the manifest.
func (f *Flights) Put(ctx context.Context, m *flight.Manifest) error {
	b, err := flight.Encode(m)
	if err != nil {
		return fmt.Errorf("put manifest: %w", err)
	}
	return f.change(ctx, "put manifest", func() error {
		s := f.at(m.Flight)
		s.manifest, s.newest = b, f.clk.Now()
		f.keep.Put(roomManifests, string(m.Flight), b)
		f.keepCheckpoints(m.Flight, s)
		return nil
	})
}

// at returns the objects of a flight, and creates an empty entry if the flight is unknown. The
// caller holds the lock.
func (f *Flights) at(id flight.ID) *stored {
	s := f.flights[id]
	if s == nil {
		s = &stored{checkpoints: map[int][]byte{}}
		f.flights[id] = s
	}
	return s
}

// Get decodes the manifest again for every caller, so that callers do not share memory.
func (f *Flights) Get(ctx context.Context, id flight.ID) (*flight.Manifest, error) {
	var b []byte // these bytes never change: Put replaces the slice
	err := f.look(ctx, "get manifest "+string(id), func() error {
		if s := f.flights[id]; s != nil {
			b = s.manifest
		}
		if b == nil {
			return flight.ErrNotFound
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return flight.Decode(b)
}

// Continue creates a checkpoint, unless it exists. created says whether Continue created the
// checkpoint.
func (f *Flights) Continue(ctx context.Context, id flight.ID, n int, st flight.State) (created bool, err error) {
	b, err := json.Marshal(st)
	if err != nil {
		return false, fmt.Errorf("create checkpoint: %w", err)
	}
	err = f.change(ctx, "create checkpoint", func() error {
		s := f.at(id)
		if created = s.checkpoints[n] == nil; created {
			s.checkpoints[n], s.newest = b, f.clk.Now()
			f.keepCheckpoints(id, s)
		}
		return nil
	})
	return created, err
}

// Delete deletes the manifest and the checkpoints of a flight.
func (f *Flights) Delete(ctx context.Context, id flight.ID) error {
	return f.change(ctx, "delete flight", func() error {
		delete(f.flights, id)
		f.keep.Delete(roomManifests, string(id))
		f.keep.Delete(roomCheckpoints, string(id))
		return nil
	})
}

// List returns flights sorted by id. Ids are ULIDs, so the oldest flight comes first. The cursor is
// the last id of a page.
func (f *Flights) List(ctx context.Context, cursor string, limit int) (out []flight.Stored, next string, err error) {
	if limit < 1 {
		return nil, "", fmt.Errorf("list flights: limit %d is not positive", limit)
	}
	err = f.look(ctx, "list flights", func() error {
		for _, id := range slices.Sorted(maps.Keys(f.flights)) {
			if string(id) <= cursor {
				continue
			}
			if len(out) == limit {
				next = string(out[limit-1].ID)
				break
			}
			out = append(out, flight.Stored{ID: id, Newest: f.flights[id].newest, Legs: len(f.flights[id].checkpoints)})
		}
		return nil
	})
	return out, next, err
}
