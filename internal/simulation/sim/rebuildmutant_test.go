// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/operator/rebuild"
	"github.com/lullhq/lull/internal/pipeline/index"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// rebuildMutant is a rule of design section 15 that a developer might simplify.
type rebuildMutant struct {
	name, change string
	edits        rebuildEdits
}

// serving makes a mutant of the rebuilding program.
func serving(change func(b *Rebuilding, s *rebuild.Service)) rebuildEdits {
	return rebuildEdits{service: func(b *Rebuilding, _ *invocation, s *rebuild.Service) { change(b, s) }}
}

var rebuildMutants = []rebuildMutant{
	{
		"miss under the seal", "a turn commits although its MISS was refused",
		rebuildEdits{turn: func(h *index.Handler) { h.Shards = unheeded{h.Shards} }},
	},
	{
		"miss forgotten", "a turn commits what the new index did not take without MISS",
		rebuildEdits{turn: func(h *index.Handler) { h.Shards = ignoring{h.Shards, only(shard.MISS)} }},
	},
	{
		"no wait for turns", "indices are compared before the turns have ended that do not know of the rebuild",
		serving(func(_ *Rebuilding, s *rebuild.Service) { hurry(s, untilFillStops) }),
	},
	{
		"no wait for missed writes", "indices are compared when the number of missed writes was read",
		serving(func(_ *Rebuilding, s *rebuild.Service) { hurry(s, untilWalk) }),
	},
	{
		"no wait for a late switch", "UNSEAL while the call that switches the name may be on its way",
		serving(func(b *Rebuilding, s *rebuild.Service) { hurry(s, whileSealed(b)) }),
	},
	{
		"copy not stopped", "the engine's copy goes on while indices are compared",
		serving(func(_ *Rebuilding, s *rebuild.Service) { s.Sink = unstopped{s.Sink} }),
	},
	{
		"seal although a write was missed", "SEAL does not ask for rebuild_missed",
		serving(func(_ *Rebuilding, s *rebuild.Service) {
			s.Shards = editedStore{s.Shards, only(shard.SEAL), func(w *shard.Write) {
				without(w, shard.AttrRebuildMissed)
			}}
		}),
	},
	{
		"switch after a sleep", "the program does not look at its seal and the time before it switches",
		serving(func(_ *Rebuilding, s *rebuild.Service) {
			n := &unlooking{Store: s.Shards, Clock: s.Clock}
			s.Shards, s.Clock = n, unlookingClock{s.Clock, n}
		}),
	},
	{
		"one way", "nobody looks for what only the new index has",
		serving(func(_ *Rebuilding, s *rebuild.Service) { s.Sink = oneWay{s.Sink} }),
	},
	{
		"newer than the export", "what a row knows to be newer than the export is left out",
		serving(func(_ *Rebuilding, s *rebuild.Service) {
			s.Shards = seenStore{s.Shards, func(r *shard.Row) { r.Committed = "" }}
		}),
	},
}

// unheeded treats every refused MISS as applied.
type unheeded struct{ shard.Store }

func (s unheeded) Write(ctx context.Context, w shard.Write) (shard.Row, error) {
	row, err := s.Store.Write(ctx, w)
	if _, refused := shard.AsRefused(err); refused && w.Transition == shard.MISS {
		return row, nil
	}
	return row, err
}

// unstopped does not stop the engine's copy.
type unstopped struct{ sink.Rebuilder }

func (unstopped) StopFill(context.Context, string) error { return nil }

// oneWay is a sink whose new index shows no documents to a walk.
type oneWay struct{ sink.Rebuilder }

func (o oneWay) Walk(ctx context.Context, index, place string) ([]sink.Versioned, string, error) {
	if strings.Contains(index, ".r") { // rebuilds name indices like this; the index in use has its first name
		return nil, "", nil
	}
	return o.Rebuilder.Walk(ctx, index, place)
}

// hurried is the state of a program that skips waits.
type hurried struct {
	now     func(*hurried) bool // reports whether the program skips the current wait
	skipped time.Duration
	stopped bool // the copy was stopped
	counted bool // the number of missed writes was read after the copy was stopped
}

// hurry makes a program skip waits.
func hurry(s *rebuild.Service, now func(*hurried) bool) {
	h := &hurried{now: now}
	s.Shards, s.Sink, s.Clock = hurriedStore{s.Shards, h}, hurriedSink{s.Sink, h}, hurriedClock{s.Clock, h}
}

func untilFillStops(h *hurried) bool { return !h.stopped }
func untilWalk(h *hurried) bool      { return h.counted }

func whileSealed(b *Rebuilding) func(*hurried) bool {
	return func(*hurried) bool { return b.w.table.row(shard.HealthRow("search")).RebuildSeal != 0 }
}

type hurriedStore struct {
	shard.Store
	h *hurried
}

func (s hurriedStore) Read(ctx context.Context, docs []shard.DocID, c shard.Consistency) ([]shard.Row, error) {
	s.h.counted = s.h.stopped && slices.Contains(docs, shard.HealthRow("search"))
	return s.Store.Read(ctx, docs, c)
}

type hurriedSink struct {
	sink.Rebuilder
	h *hurried
}

func (s hurriedSink) StopFill(ctx context.Context, into string) error {
	s.h.stopped = true
	return s.Rebuilder.StopFill(ctx, into)
}

func (s hurriedSink) Walk(ctx context.Context, index, place string) ([]sink.Versioned, string, error) {
	s.h.counted = false
	return s.Rebuilder.Walk(ctx, index, place)
}

type hurriedClock struct {
	clock.Clock
	h *hurried
}

func (c hurriedClock) Now() time.Time { return c.Clock.Now().Add(c.h.skipped) }

func (c hurriedClock) Sleep(ctx context.Context, d time.Duration) error {
	if c.h.now(c.h) {
		c.h.skipped += d
		return ctx.Err()
	}
	return c.Clock.Sleep(ctx, d)
}

// unlooking is the table of a program that does not check its SEAL. Until the program has sent the
// switch, it sees its own SEAL and the time of its SEAL.
type unlooking struct {
	shard.Store
	clock.Clock
	sealed shard.Micros
	at     time.Time
}

func (s *unlooking) Write(ctx context.Context, w shard.Write) (shard.Row, error) {
	at := s.Clock.Now()
	row, err := s.Store.Write(ctx, w)
	if w.Transition == shard.SEAL && err == nil {
		s.sealed, s.at = w.Apply(row).RebuildSeal, at
	} else {
		s.sealed = 0
	}
	return row, err
}

func (s *unlooking) Read(ctx context.Context, docs []shard.DocID, c shard.Consistency) ([]shard.Row, error) {
	rows, err := s.Store.Read(ctx, docs, c)
	for i := range rows {
		if s.sealed != 0 && rows[i].RebuildAt != 0 {
			rows[i].RebuildSeal = s.sealed
		}
	}
	return rows, err
}

type unlookingClock struct {
	clock.Clock
	s *unlooking
}

func (c unlookingClock) Now() time.Time {
	if c.s.sealed != 0 {
		return c.s.at
	}
	return c.Clock.Now()
}
