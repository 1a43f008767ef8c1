// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/seam/flight"
)

// This file runs other builds of lull together with this build, as during a deployment or a
// rollback. An older build drops the fields of a state that it does not know. A newer build writes
// manifests, states and rows whose schema this build does not know.

// byOlder returns a state as an older build writes it, without fields that were added later.
func byOlder(s flight.State) flight.State {
	s.Kind, s.Panicked, s.Sample = "", flight.Remaining{}, nil
	s.Slot, s.SlotEnd, s.Probes = 0, 0, 0
	return s
}

// handed returns the state that this turn receives.
func (w *World) handed(s flight.State) flight.State {
	if w.strikes("state of an older build", w.rates.Older) {
		s = byOlder(s)
	}
	if w.strikes("state of a newer build", w.rates.Newer) {
		s.Schema = flight.SchemaVersion + 1
	}
	return s
}

// keep decides what happens to a stored manifest. A newer build may have written it. A lifecycle
// rule or a person may delete it too early.
func (f flights) keep(m *flight.Manifest) {
	w := f.w
	open := slices.ContainsFunc(m.Records, func(r flight.Record) bool {
		return slices.ContainsFunc(r.Events, flight.Entry.Open)
	})
	if open {
		return // without the manifest, prune could not list its documents for a resync
	}
	if w.strikes("manifest of a newer build", w.rates.Newer) {
		w.foreign[m.Flight] = true
	}
	if w.strikes("manifest gone", w.rates.ManifestGone) {
		w.after(w.dice.upTo(time.Minute), func() {
			_ = f.Flights.Delete(background, m.Flight) // fails only if its context ends
		})
	}
}

// unfinished returns the manifests that this build can read.
func (w *World) unfinished() (list []*flight.Manifest) {
	stored, _, _ := w.flights.List(background, "", math.MaxInt32) // fails only if its context ends
	for _, s := range stored {
		if m, err := w.flights.Flights.Get(background, s.ID); err == nil && !w.foreign[s.ID] {
			list = append(list, m)
		}
	}
	return list
}
