package index

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// service is the sink, or a collection's enricher, with its health row. All flights share that
// row.
type service struct {
	kind    string // sink or enricher
	name    string // of the health row
	row     shard.Row
	circuit shard.Circuit
	next    shard.Micros // when to look again if the circuit is open
	why     string       // why it did not accept all of the last request
}

// look reads the health row. The row only steers the pace; safety does not depend on it.
func (t *turn) look(ctx context.Context, s *service) bool {
	row, err := t.rows().One(ctx, shard.HealthRow(s.name), shard.Eventual)
	if t.lost("read the "+s.kind+"'s health", "", err) {
		return false
	}
	s.row = row
	s.circuit, s.next = shard.Health(row, t.now())
	return true
}

// isProber tries to make this turn the one prober. The condition of the write admits one flight.
// The others wait until the time of that probe has passed.
func (t *turn) isProber(ctx context.Context, s *service, until shard.Micros) bool {
	a := t.ask(ctx, shard.Probe(s.name, t.now(), until))
	if a.err != nil {
		s.circuit, s.next = shard.CircuitOpen, until
	}
	return a.err == nil
}

// closed ends a probe that the service has answered.
func (t *turn) closed(ctx context.Context, s *service, probe shard.Micros, pace int64) bool {
	a := t.ask(ctx, shard.Close(s.name, probe, t.now(), pace))
	if a.err != nil {
		s.circuit, s.next = shard.CircuitOpen, probe // another flight has opened it again, or probes
		return false
	}
	s.row = a.row
	s.circuit, s.next = shard.Health(a.row, t.now()) // an operator may have paused the sink
	return true
}

// opening returns the next level of an open circuit, and until when it stays open. It is open
// longer at each level, counted from when the service was asked, and at least as long as the
// service asked for.
func (t *turn) opening(s *service, asked shard.Micros, retryAfter time.Duration) (level int64, until shard.Micros) {
	retry, now := t.config.Retry, t.now()
	level = shard.NextLevel(s.row, now, retry.OpenFor)
	open := max(asked.Add(retry.OpenFor(level)).Sub(now), retry.OpenFor(1), retryAfter)
	return level, now.Add(min(open, shard.MaxOpen))
}

// open opens the circuit for all flights. It reports whether this turn opened it.
func (t *turn) open(ctx context.Context, s *service, level int64, until shard.Micros) bool {
	a := t.ask(ctx, shard.Trip(s.name, t.now(), until, level).Because(s.why))
	if !a.unknown() {
		s.row = a.row
	}
	return a.err == nil || a.refused && a.row.OpenUntil == until // our own write, whose answer was lost
}

// slow lowers the pace for all flights, unless another flight has just lowered it. It also reads
// the health row into s, so that the caller sees what others did to the circuit.
func (t *turn) slow(ctx context.Context, s *service, applied, throttled int, ceiling int64) bool {
	// The current row shows how much of the budget the other flights used.
	if !t.look(ctx, s) || s.circuit != shard.CircuitClosed {
		return false
	}
	w, due := shard.Cut(s.name, s.row, t.now(), applied, throttled, ceiling)
	if !due {
		return false
	}
	a := t.ask(ctx, w.Because(s.why))
	s.row = a.row
	return a.err == nil
}

// readHealth reads the sink's shared row. If the circuit has been open long enough, this turn
// may become the one prober.
func (t *turn) readHealth(ctx context.Context) {
	s := &t.sink
	if !t.look(ctx, s) {
		// An operator may have paused the sink. The table would probably refuse the claims, too.
		t.unread, s.circuit, s.next = true, shard.CircuitOpen, t.now().Add(t.config.Retry.BackoffMin)
		return
	}
	t.rebuild = s.row
	open, now := s.row.OpenUntil, t.now()
	switch {
	case s.circuit == shard.CircuitProbe && t.manifest.Lane == flight.Bulk && t.state.Probes != open &&
		now < open.Add(t.config.Retry.OpenFor(s.row.Level)) && !shard.Absurd(open, now):
		// The prober writes first, and the live lane should go first.
		s.circuit, s.next = shard.CircuitOpen, open
	case s.circuit == shard.CircuitProbe:
		t.probe(ctx)
	}
	// The flight that opened the circuit probes right after its end, even if a document woke the
	// flight.
	if s.circuit == shard.CircuitOpen && !t.tripped && !t.probesNext() {
		s.next = t.behindCircuit(s.next, s.row.Level)
	}
}

// A ping ends after pingDeadline. If the sink returns while a ping hangs, the next ping comes
// soon. Each patientEvery-th ping has the sink's whole deadline. Otherwise a sink that always
// answers slowly would never be used again.
const (
	pingDeadline = 2 * time.Second
	patientEvery = 8
)

// probe pings the sink, never with a document. If the sink denies pings, the circuit closes to a
// pace at which a few documents are the probe. If none of them is applied they open it again,
// one level higher.
func (t *turn) probe(ctx context.Context) {
	deadline := t.config.Index.SinkDeadline
	if t.sink.row.Level%patientEvery != 0 {
		deadline = min(deadline, pingDeadline)
	}
	// The time of one ping that uses its whole deadline, and the guard for clocks that differ.
	asked := t.now()
	until := asked.Add(deadline + t.config.Index.Guard)
	if !t.isProber(ctx, &t.sink, until) {
		return
	}
	call, cancel := t.clock.Deadline(ctx, min(deadline, t.remaining()-sinkMargin))
	err := t.ping(call)
	cancel()
	t.lost("ping the sink", "", err)
	pace := shard.Restart(t.sink.row, t.now())
	switch {
	case errors.Is(err, sink.ErrDenied):
		pace = shard.ProbePace // documents are the probe, a few at a time
	case err != nil:
		t.sink.why = err.Error() // safe to store: a sink's error has no text of an answer
		// A failed probe opens the circuit breaker again, one level higher. A ping that hung has
		// used a part of that time.
		t.trip(ctx, asked, 0)
		t.sink.circuit = shard.CircuitOpen
		return
	}
	if t.closed(ctx, &t.sink, until, pace) {
		t.note(journal.Note{Step: journal.CircuitClosed})
	}
}

// judgeHealth lowers the pace of all flights if the sink has throttled a part of a request. If
// that is not enough, it opens the circuit. A failure of one document or one index does neither.
func (t *turn) judgeHealth(ctx context.Context, docs []*document, outcomes []sink.Outcome) {
	var applied, busy, throttled, unknown int
	var after time.Duration
	for i, o := range outcomes {
		switch o.Kind {
		case sink.Applied:
			applied++
		case sink.Throttled, sink.Configuration:
			if o.Apart && !(o.Kind == sink.Configuration && t.onlyIndex()) {
				break
			}
			throttled++
			t.sink.why = causeOf(docs[i], o)
			// A sink that is only busy answers with one of these statuses.
			if o.Kind == sink.Throttled &&
				(o.Status == http.StatusTooManyRequests || o.Status == http.StatusServiceUnavailable) {
				busy++
			}
			after = max(after, o.RetryAfter)
		case sink.Unknown:
			unknown++
			t.sink.why = causeOf(docs[i], o)
		}
	}
	// A document alone in its request, whose claims went unanswered before, may itself be the
	// cause.
	suspect := len(docs) == 1 && docs[0].row.Attempts > 1
	pace := t.taken()
	// If the pace is at its slowest, or the sink says how long to wait, an open circuit is
	// cheaper.
	stop := applied == 0 && (after > 0 || pace > 0 && pace <= shard.TripPace)
	switch {
	case unknown == len(outcomes) && !suspect, throttled > 0 && (busy == 0 || stop):
		// Missing answers count only if the whole request got none.
		t.trip(ctx, t.now(), after)
	case throttled > 0:
		t.cut(ctx, applied, throttled)
	}
}

// causeOf returns why a document was not written, for the health row. It names the collection
// and not the document, because other documents are affected too.
func causeOf(d *document, o sink.Outcome) string {
	why := cmp.Or(o.Reason, fmt.Sprint("HTTP ", o.Status))
	return fmt.Sprintf("%s: %s, in collection %s", o.Kind, why, d.id.Collection())
}

// onlyIndex reports whether the settings give the sink one collection only. Then a fault of its
// index stops all writes to the sink.
func (t *turn) onlyIndex() bool {
	return len(t.config.Collections) > 0 && len(t.config.CollectionsOf(t.sinkName)) == 1
}

// behindCircuit returns when this flight asks again. The waiting flights are spread over as long
// as the circuit is open. So a sink that returns after hours gets a share of them at a time. The
// live lane goes before bulk.
func (t *turn) behindCircuit(open shard.Micros, level int64) shard.Micros {
	spread := t.config.Retry.OpenFor(level)
	if t.manifest.Lane == flight.Bulk {
		open = open.Add(spread) // the live lane may take as long as that
		spread *= 4
	}
	return open.Add(time.Duration(t.jitter() * float64(spread)))
}

// trip opens the sink's circuit after a request or ping that began at asked.
func (t *turn) trip(ctx context.Context, asked shard.Micros, retryAfter time.Duration) {
	level, until := t.opening(&t.sink, asked, retryAfter)
	t.tripped, t.sink.next = true, t.behindCircuit(until+1, level)
	if t.open(ctx, &t.sink, level, until) {
		// The flight that opens the circuit probes when its time is over. The others may leave.
		t.state.Probes, t.sink.next = until, until+1
		t.note(journal.Note{
			Step: journal.CircuitOpened, Count: int(level), Until: until.Time(), Detail: t.sink.why,
		})
	}
}

// cut makes all flights write more slowly.
func (t *turn) cut(ctx context.Context, applied, throttled int) {
	switch slowed := t.slow(ctx, &t.sink, applied, throttled, t.ceiling()); {
	case slowed:
		t.note(journal.Note{Step: journal.Slowed, Count: int(t.sink.row.Rate), Detail: t.sink.why})
	case t.sink.circuit != shard.CircuitClosed: // another flight has opened the circuit, or an operator paused the sink
		t.tripped, t.sink.next = true, t.behindCircuit(t.sink.next, t.sink.row.Level)
	}
}
