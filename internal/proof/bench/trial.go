// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"
)

// Trial is a fault that every indexer meets at some time. A trial is added to bursts of 5 for at
// least some hundred documents.
type Trial struct {
	Name   string
	About  string // one sentence about the trial, for the report
	faults bool   // whether faults of the standard mix are injected
	short  bool   // whether the trial has fewer documents, because each document is retried for an hour
	// change adds the fault to a trace of bursts.
	change func(t *Trace, r *rand.Rand)
}

// Trials returns all trials.
func Trials() []Trial {
	return []Trial{
		{
			Name: "disorder", change: func(*Trace, *rand.Rand) {},
			About: "2 % of the events come twice, 5 % late by up to 5 s.",
		},
		{
			Name: "late puts", change: latePuts,
			About: "each second document is deleted at the end of its burst; the put before comes up to 20 s after it.",
		},
		{
			Name: "old copies", change: oldCopies,
			About: "each second document is deleted; a copy of its last put comes again, two minutes or two hours " +
				"later.",
		},
		{
			Name: "equal versions", change: equalVersions,
			About: "two edits get one version; a quarter of these pairs come in the wrong order, up to 15 s apart.",
		},
		{
			Name: "resync", change: resync,
			About: "the source sends every document again as of an export, with changed content under its old version. " +
				"Each second document has a newer version by then.",
		},
		{
			Name: "source restored", change: sourceRestored,
			About: "the source goes back to a backup and counts on from lower versions. With lull, the operator raises " +
				"the epoch.",
		},
		{
			Name: "sink restored", change: sinkRestored,
			About: "the engine goes back to a snapshot from before the last changes and deletes; the source sends all " +
				"that exists again. With lull, the operator runs `lull index repair` first.",
		},
		{
			Name: "table restored", change: tableRestored,
			About: "the contender's tables go back likewise; an hour later old copies come, and then the source sends " +
				"every change since the backup again. With lull, the operator runs `lull index repair` first.",
		},
		{
			Name: "an hour without the sink", short: true, change: outage,
			About: "the engine answers nothing for an hour, while changes and deletes continue.",
		},
		{
			Name: "faults", faults: true, change: func(*Trace, *rand.Rand) {},
			About: "the [standard fault mix](faults.md#standard-fault-mix).",
		},
	}
}

// trial returns the trial with this name.
func trial(name string) Trial {
	all := Trials()
	return all[slices.IndexFunc(all, func(t Trial) bool { return t.Name == name })]
}

// Scenario returns the scenario that runs the trial.
func (t Trial) Scenario() Scenario {
	return vary(t.key(), func(s *Scenario) {
		s.Shape.Rate, s.Shape.For, s.Shape.Trial = 100, time.Minute, t.Name
		if t.short {
			s.Shape.For = 20 * time.Second
		}
		s.Shape.Disorder = t.Name == "disorder"
		if s.Faults = t.faults; s.Faults {
			s.Shape.For = 4 * time.Minute
		}
	})
}

func (t Trial) key() string { return "trial: " + t.Name }

// Times of the trials. The fault happens after the bursts were written.
const (
	calm  = 3 * time.Minute
	later = 5 * time.Minute
)

// last returns the newest event so far of every document.
func (t *Trace) last() []Event {
	last := make([]Event, t.Docs)
	for _, e := range t.Events {
		if last[e.Doc].Version == 0 || older(last[e.Doc], e) < 0 {
			last[e.Doc] = e
		}
	}
	return last
}

// add adds an event at a time. The freshness of the added event does not count.
func (t *Trace) add(e Event, at time.Duration, change func(e *Event)) Event {
	e.At, e.Waited = at, false
	if change != nil {
		change(&e)
	}
	t.Events = append(t.Events, e)
	return e
}

// between returns a random time.
func between(r *rand.Rand, from, to time.Duration) time.Duration {
	return from + time.Duration(r.Int64N(int64(to-from)))
}

// edited and removed change an event to the next version of its document.
func edited(e *Event)  { e.Version, e.Delete, e.Run, e.Edit = e.Version+1, false, 0, 0 }
func removed(e *Event) { e.Version, e.Delete, e.Run, e.Edit = e.Version+1, true, 0, 0 }

func latePuts(t *Trace, r *rand.Rand) {
	for doc, e := range t.last() {
		if doc%2 == 0 {
			t.add(e, e.At, removed)
			i := slices.Index(t.Events, e)
			t.Events[i].At, t.Events[i].Waited = between(r, e.At, e.At+20*time.Second), false
		}
	}
}

func oldCopies(t *Trace, _ *rand.Rand) {
	for doc, e := range t.last() {
		if doc%2 == 0 {
			t.add(e, e.At+time.Second, removed)
			after := 2 * time.Minute
			if doc%4 == 0 {
				after = 2 * time.Hour
			}
			t.add(e, e.At+after, nil)
		}
	}
}

func equalVersions(t *Trace, r *rand.Rand) {
	for doc, e := range t.last() {
		one, two := between(r, e.At, e.At+15*time.Second), between(r, e.At, e.At+15*time.Second)
		if (one > two) != (doc%4 == 0) {
			one, two = two, one
		}
		edited(&e)
		t.add(e, one, func(e *Event) { e.Edit = 1 })
		t.add(e, two, func(e *Event) { e.Edit = 2 })
	}
}

func resync(t *Trace, r *rand.Rand) {
	for doc, e := range t.last() {
		if doc%2 == 0 {
			t.add(e, between(r, calm, later), edited)
		}
		t.add(e, between(r, later, later+time.Minute), func(e *Event) { e.Run = 1 })
	}
}

func sourceRestored(t *Trace, r *rand.Rand) {
	t.Acts = append(t.Acts, Act{calm, func(_ context.Context, w *World) { w.newEpoch() }})
	for _, e := range t.last() {
		t.add(e, between(r, calm+time.Second, later), func(e *Event) { e.Epoch, e.Version = 1, 2 })
	}
}

// changes adds the events between a backup and its restore. Of four documents one is changed, one
// deleted, one created, and one left alone.
func changes(t *Trace, r *rand.Rand) {
	for doc, e := range t.last() {
		switch doc % 4 {
		case 0:
			t.add(e, between(r, calm+time.Second, later), edited)
		case 1:
			t.add(e, between(r, calm+time.Second, later), removed)
		case 2:
			e.Doc, e.Version = t.Docs, 0
			t.add(e, between(r, calm+time.Second, later), edited)
			t.Docs++
		}
	}
}

// restored takes a backup at the time calm, and restores it at the time at.
func restored(t *Trace, at time.Duration, image func(w *World) (restore func())) {
	var restore func()
	t.Acts = append(t.Acts,
		Act{calm, func(_ context.Context, w *World) { restore = image(w) }},
		Act{at, func(ctx context.Context, w *World) {
			restore()
			if err := w.reconcile(ctx); err != nil {
				w.t.Error(err)
			}
		}})
}

func sinkRestored(t *Trace, r *rand.Rand) {
	changes(t, r)
	restored(t, later+2*time.Minute, func(w *World) func() { return w.watch.image() })
	again := later + 10*time.Minute
	for _, e := range t.last() {
		if !e.Delete {
			t.add(e, between(r, again, again+time.Minute), func(e *Event) { e.Run = 1 })
		}
	}
}

func tableRestored(t *Trace, r *rand.Rand) {
	before := t.last()
	changes(t, r)
	restored(t, later+2*time.Minute, func(w *World) func() { return w.image() })
	old, again := later+62*time.Minute, later+70*time.Minute
	for _, e := range before {
		t.add(e, between(r, old, old+time.Minute), nil)
	}
	for _, e := range slices.Clone(t.Events) {
		if e.At > calm && e.At < old {
			t.add(e, again, nil)
		}
	}
}

var errAway = errors.New("the engine is away")

func outage(t *Trace, r *rand.Rand) {
	down := func(at time.Duration, err error) {
		t.Acts = append(t.Acts, Act{at, func(_ context.Context, w *World) { w.watch.now().SetDown(err) }})
	}
	down(calm, errAway)
	down(calm+time.Hour, nil)
	for doc, e := range t.last() {
		at := between(r, calm, calm+50*time.Minute)
		e = t.add(e, at, edited)
		switch doc % 3 {
		case 0:
			t.add(e, between(r, at, at+5*time.Minute), removed)
		case 1:
			t.add(e, between(r, at, at+5*time.Minute), edited)
		}
	}
	t.add(t.last()[0], calm+time.Hour, nil) // the engine is reachable again when this event arrives
}
