package sim

import (
	"math"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/flight"
)

// This file puts other builds of lull beside this one, as in a deploy and in one that is rolled
// back. An older one leaves out of a state what it does not know. A newer one leaves manifests,
// states and rows whose schema this one does not know.

// byOlder is a state as an older build hands it on: without the fields that were added later.
func byOlder(s flight.State) flight.State {
	s.Kind, s.Panicked, s.Sample = "", flight.Remaining{}, nil
	s.Slot, s.SlotEnd, s.Probes = 0, 0, 0
	return s
}

// handed is the state as this turn gets it.
func (w *World) handed(s flight.State) flight.State {
	if w.strikes("state of an older build", w.rates.Older) {
		s = byOlder(s)
	}
	if w.strikes("state of a newer build", w.rates.Newer) {
		s.Schema = flight.SchemaVersion + 1
	}
	return s
}

// keep stores the manifest, which a newer build may have written, or somebody may delete: a rule of
// the bucket that is too eager, or a hand.
func (f flights) keep(m *flight.Manifest) {
	w := f.w
	open := slices.ContainsFunc(m.Records, func(r flight.Record) bool {
		return slices.ContainsFunc(r.Events, flight.Entry.Open)
	})
	if open {
		return // what it wrote nobody could list for a resync
	}
	if w.strikes("manifest of a newer build", w.rates.Newer) {
		w.foreign[m.Flight] = true
	}
	if w.strikes("manifest gone", w.rates.ManifestGone) {
		w.after(w.dice.upTo(time.Minute), func() {
			_ = f.Flights.Delete(background, m.Flight) // fails only with its context
		})
	}
}

// unfinished lists the manifests that this build may read.
func (w *World) unfinished() (list []*flight.Manifest) {
	stored, _, _ := w.flights.List(background, "", math.MaxInt32) // fails only with its context
	for _, s := range stored {
		if m, err := w.flights.Flights.Get(background, s.ID); err == nil && !w.foreign[s.ID] {
			list = append(list, m)
		}
	}
	return list
}
