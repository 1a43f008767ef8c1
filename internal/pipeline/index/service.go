// SPDX-License-Identifier: Apache-2.0

package index

import (
	"context"
	"time"

	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/shard"
)

// service is the sink, or a collection's enricher, together with its health row. All flights share
// that row.
type service struct {
	*invocation
	kind    string // sink or enricher
	name    string // name of the health row
	row     shard.Row
	circuit shard.Circuit
	next    shard.Micros // when to look at the service again if the circuit is open
	why     string       // why the service did not accept all documents of the last request
}

// readHealth reads the health row. The row only controls the pace; safety does not depend on it.
func (s *service) readHealth(ctx context.Context) bool {
	row, err := s.rows().One(ctx, shard.HealthRow(s.name), shard.Eventual)
	if s.noteFailed("read the "+s.kind+"'s health", "", err) {
		return false
	}
	s.row = row
	s.circuit, s.next = shard.Health(row, s.now())
	return true
}

// isProber tries to make this turn the only prober. The condition of the write admits only one
// flight. The other flights wait until the time of its probe has passed.
func (s *service) isProber(ctx context.Context, until shard.Micros) bool {
	a := s.ask(ctx, shard.Probe(s.name, s.now(), until))
	if a.err != nil {
		s.circuit, s.next = shard.CircuitOpen, until
	}
	return a.err == nil
}

// closeCircuit closes the circuit after a probe that the service has answered.
func (s *service) closeCircuit(ctx context.Context, probe shard.Micros, pace int64) bool {
	a := s.ask(ctx, shard.Close(s.name, probe, s.now(), pace))
	if a.err != nil {
		s.circuit, s.next = shard.CircuitOpen, probe // another flight has opened the circuit again, or probes
		return false
	}
	s.row = a.row
	s.circuit, s.next = shard.Health(a.row, s.now()) // an operator may have paused the sink
	return true
}

// opening returns the next level of an open circuit, and until when the circuit stays open. The
// circuit stays open longer at each level, and at least as long as the service asked for. The time
// of a level counts from the argument asked, when the request to the service began. The service was
// healthy until the argument healthy at the latest.
func (s *service) opening(asked, healthy shard.Micros, retryAfter time.Duration) (level int64, until shard.Micros) {
	retry, now := s.config.Retry, s.now()
	level = shard.NextLevel(s.row, healthy, retry.OpenFor)
	open := max(asked.Add(retry.OpenFor(level)).Sub(now), retry.OpenFor(1), retryAfter)
	return level, now.Add(min(open, shard.MaxOpen))
}

// openCircuit opens the circuit for all flights. It reports whether this turn opened the circuit.
func (s *service) openCircuit(ctx context.Context, level int64, until shard.Micros) bool {
	a := s.ask(ctx, shard.Trip(s.name, s.now(), until, level).Because(s.why))
	if !a.unknown() {
		s.row = a.row
	}
	// the row may show our own write, whose answer was lost
	return a.err == nil || a.refused && a.row.OpenUntil == until
}

// lowerPace lowers the pace for all flights, unless another flight has just lowered it. It also
// reads the health row into s, so that the caller sees what other flights did to the circuit.
func (s *service) lowerPace(ctx context.Context, applied, throttled int, ceiling, least int64) bool {
	// The current row shows how much of the budget the other flights used.
	if !s.readHealth(ctx) || s.circuit != shard.CircuitClosed {
		return false
	}
	w, due := shard.Cut(s.name, s.row, s.now(), applied, throttled, ceiling, least)
	if !due {
		return false
	}
	a := s.ask(ctx, w.Because(s.why))
	s.row = a.row
	return a.err == nil
}

// behindCircuit returns when this flight asks the service again. The waiting flights are spread
// over a time as long as the circuit is open. So a service that returns after hours gets only a
// part of the flights at a time. Flights of the live lane ask before flights of the bulk lane.
func (s *service) behindCircuit(open shard.Micros, level int64) shard.Micros {
	spread := s.config.Retry.OpenFor(level)
	if s.lane == flight.Bulk {
		open = open.Add(spread) // the live lane may take as long as this spread
		spread *= 4
	}
	return open.Add(time.Duration(s.jitter() * float64(spread)))
}

// spend takes the next stretch of a service's budget, unless more than most is already taken. If
// the answer is lost, this flight may have taken a stretch without knowing it. No flight then uses
// that stretch.
func (s *service) spend(ctx context.Context, long, most time.Duration) (end shard.Micros, ok bool) {
	// The table may refuse the first try. The row in the refusal shows which form the second try
	// needs.
	for range 2 {
		now, ahead := s.now(), shard.Ahead(s.row, s.now())
		w := shard.SpendFirst(s.name, now, long)
		switch {
		case ahead > most:
			return 0, false
		case ahead > 0:
			w = shard.Spend(s.name, now, long, most)
		}
		a := s.ask(ctx, w)
		if a.unknown() {
			return 0, false
		}
		if s.row = a.row; a.err == nil {
			return s.row.PaidUntil, true
		}
	}
	return 0, false
}
