package index

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// service is the sink, or a collection's enricher, by its health row, which all flights share.
type service struct {
	kind    string // sink or enricher
	name    string // of the health row
	row     shard.Row
	circuit shard.Circuit
	next    shard.Micros // when to look again where the circuit is open
}

// look reads the health row. The row steers the pace; safety does not depend on it.
func (t *turn) look(ctx context.Context, s *service) bool {
	row, err := t.rows().One(ctx, shard.HealthRow(s.name), shard.Eventual)
	if t.lost("read the "+s.kind+"'s health", "", err) {
		return false
	}
	s.row = row
	s.circuit, s.next = shard.Health(row, t.now())
	return true
}

// isProber makes this turn the one prober. The condition of the write lets one flight probe. The
// others wait until the time of that probe is over.
func (t *turn) isProber(ctx context.Context, s *service, until shard.Micros) bool {
	a := t.ask(ctx, shard.Probe(s.name, t.now(), until))
	if a.err != nil {
		s.circuit, s.next = shard.CircuitOpen, until
	}
	return a.err == nil
}

// closed ends a probe to which the service has answered.
func (t *turn) closed(ctx context.Context, s *service, probe shard.Micros, pace int64) bool {
	a := t.ask(ctx, shard.Close(s.name, probe, t.now(), pace))
	if a.err != nil {
		s.circuit, s.next = shard.CircuitOpen, probe // somebody else has tripped it, or probes
		return false
	}
	s.row = a.row
	s.circuit, s.next = shard.Health(a.row, t.now()) // somebody may have paused the sink
	return true
}

// opening is the next level of an open circuit, and for how long: longer at each level, or for as
// long as the service asked.
func (t *turn) opening(s *service, retryAfter time.Duration) (level int64, until shard.Micros) {
	retry := t.h.Config.Retry
	level = shard.NextLevel(s.row, t.now(), retry.OpenFor)
	return level, t.now().Add(min(max(retry.OpenFor(level), retryAfter), shard.MaxOpen))
}

// open keeps all flights from asking for a while. It reports whether this turn opened the circuit.
func (t *turn) open(ctx context.Context, s *service, level int64, until shard.Micros) bool {
	a := t.ask(ctx, shard.Trip(s.name, t.now(), until, level))
	if !a.unknown() {
		s.row = a.row
	}
	return a.err == nil || a.refused && a.row.OpenUntil == until // ours, and its answer was lost
}

// slow takes the pace back for all flights, unless somebody has just done so. What others did to
// the circuit is in s.
func (t *turn) slow(ctx context.Context, s *service, applied, throttled int, ceiling int64) bool {
	// The row as it is now says what the others had of the budget.
	if !t.look(ctx, s) || s.circuit != shard.CircuitClosed {
		return false
	}
	w, due := shard.Cut(s.name, s.row, t.now(), applied, throttled, ceiling)
	if !due {
		return false
	}
	a := t.ask(ctx, w)
	s.row = a.row
	return a.err == nil
}

// readHealth reads the sink's shared row. Where its circuit has been open long enough this turn may
// become the one prober.
func (t *turn) readHealth(ctx context.Context) {
	s := &t.sink
	if !t.look(ctx, s) {
		// An operator may have paused the sink. The table would refuse the claims, too.
		t.unread, s.circuit, s.next = true, shard.CircuitOpen, t.now().Add(t.h.Config.Retry.BackoffMin)
		return
	}
	t.rebuild = s.row
	open, now := s.row.OpenUntil, t.now()
	switch {
	case s.circuit == shard.CircuitProbe && t.manifest.Lane == flight.Bulk && t.state.Probes != open &&
		now < open.Add(t.h.Config.Retry.OpenFor(s.row.Level)) && !shard.Absurd(open, now):
		// Who asks writes first, and live is not through yet.
		s.circuit, s.next = shard.CircuitOpen, open
	case s.circuit == shard.CircuitProbe:
		t.probe(ctx)
	}
	if s.circuit == shard.CircuitOpen && !t.tripped {
		s.next = t.behindCircuit(s.next, s.row.Level)
	}
}

// probe pings the sink, never with a document. Where the sink lets nobody ping, the circuit closes
// to a pace at which a few documents ask the same question. They open it again, one level higher,
// if nothing of them is applied.
func (t *turn) probe(ctx context.Context) {
	// The time of one ping that uses its whole deadline, and the guard for clocks that differ.
	until := t.now().Add(t.h.Config.Index.SinkDeadline + t.h.Config.Index.Guard)
	if !t.isProber(ctx, &t.sink, until) {
		return
	}
	call, cancel := t.h.Clock.Deadline(ctx, min(t.h.Config.Index.SinkDeadline, t.remaining()-sinkMargin))
	err := t.ping(call)
	cancel()
	t.lost("ping the sink", "", err)
	pace := shard.Restart(t.sink.row, t.now())
	switch {
	case errors.Is(err, sink.ErrDenied):
		pace = shard.ProbePace // documents are the probe, a few at a time
	case err != nil:
		// A failed probe opens the circuit breaker again, one level higher.
		t.trip(ctx, 0)
		t.sink.circuit = shard.CircuitOpen
		return
	}
	if t.closed(ctx, &t.sink, until, pace) {
		t.note(journal.Note{Step: journal.CircuitClosed})
	}
}

// judgeHealth slows all flights down together where the sink has throttled a part of a request. It
// opens the circuit where that would not be enough. One document's trouble does neither, nor does
// one index's.
func (t *turn) judgeHealth(ctx context.Context, docs []*document, outcomes []sink.Outcome) {
	var applied, busy, throttled, unknown int
	var after time.Duration
	for _, o := range outcomes {
		switch o.Kind {
		case sink.Applied:
			applied++
		case sink.Throttled, sink.Configuration:
			if o.Apart && !(o.Kind == sink.Configuration && t.onlyIndex()) {
				break
			}
			throttled++
			// Where the sink is only busy, it says so.
			if o.Kind == sink.Throttled &&
				(o.Status == http.StatusTooManyRequests || o.Status == http.StatusServiceUnavailable) {
				busy++
			}
			after = max(after, o.RetryAfter)
		case sink.Unknown:
			unknown++
		}
	}
	// A document alone in its request after claims without an answer is under suspicion itself.
	suspect := len(docs) == 1 && docs[0].row.Attempts > 1
	pace := t.taken()
	// At the slowest pace, or where the sink says for how long, an open circuit is cheaper.
	stop := applied == 0 && (after > 0 || pace > 0 && pace <= shard.TripPace)
	switch {
	case unknown == len(outcomes) && !suspect, throttled > 0 && (busy == 0 || stop):
		// Missing answers count only where the whole request got none.
		t.trip(ctx, after)
	case throttled > 0:
		t.cut(ctx, applied, throttled)
	}
}

// onlyIndex reports whether the settings know that the sink has one collection: what its index does
// not take, nobody can write.
func (t *turn) onlyIndex() bool {
	return len(t.h.Config.Collections) > 0 && len(t.h.Config.CollectionsOf(t.h.SinkName)) == 1
}

// behindCircuit is when this flight asks again. Those who wait are spread over as long as the
// circuit is open. So a sink that is back after hours gets a share of them at a time; and live goes
// before bulk.
func (t *turn) behindCircuit(open shard.Micros, level int64) shard.Micros {
	spread := t.h.Config.Retry.OpenFor(level)
	if t.manifest.Lane == flight.Bulk {
		open = open.Add(spread) // live may take as long as that
		spread *= 4
	}
	return open.Add(time.Duration(t.h.Jitter() * float64(spread)))
}

// trip opens the sink's circuit.
func (t *turn) trip(ctx context.Context, retryAfter time.Duration) {
	level, until := t.opening(&t.sink, retryAfter)
	t.tripped, t.sink.next = true, t.behindCircuit(until+1, level)
	if t.open(ctx, &t.sink, level, until) {
		// Who opens the circuit probes when its time is over. The others may leave.
		t.state.Probes, t.sink.next = until, until+1
		t.note(journal.Note{Step: journal.CircuitOpened, Count: int(level), Until: until.Time()})
	}
}

// cut has all flights write more slowly.
func (t *turn) cut(ctx context.Context, applied, throttled int) {
	switch slowed := t.slow(ctx, &t.sink, applied, throttled, t.ceiling()); {
	case slowed:
		t.note(journal.Note{Step: journal.Slowed, Count: int(t.sink.row.Rate)})
	case t.sink.circuit != shard.CircuitClosed: // somebody has done more than that
		t.tripped, t.sink.next = true, t.behindCircuit(t.sink.next, t.sink.row.Level)
	}
}
