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

// health is what a turn knows of its sink: the health row that all flights share, and what this
// turn did to it.
type health struct {
	service
	engine  *engine
	rebuild shard.Row // the sink's row as this turn first read it: says whether a collection is rebuilt
	unread  bool      // the sink's row could not be read
	tripped bool      // this turn found the circuit open after a request, or opened it
}

// A ping ends after pingDeadline. If the sink returns while a ping hangs, the next ping comes
// soon. Each patientEvery-th ping has the sink's whole deadline. Otherwise a sink that always
// answers slowly would never be used again.
const (
	pingDeadline = 2 * time.Second
	patientEvery = 8
)

// read reads the sink's shared row. If the circuit has been open long enough, this turn
// may become the one prober.
func (h *health) read(ctx context.Context) {
	s := &h.service
	if !s.look(ctx) {
		// An operator may have paused the sink. The table would probably refuse the claims, too.
		h.unread, s.circuit, s.next = true, shard.CircuitOpen, h.now().Add(h.config.Retry.BackoffMin)
		return
	}
	h.rebuild = s.row
	open, now := s.row.OpenUntil, h.now()
	switch {
	case s.circuit == shard.CircuitProbe && h.lane == flight.Bulk && h.state.Probes != open &&
		now < open.Add(h.config.Retry.OpenFor(s.row.Level)) && !shard.Absurd(open, now):
		// The prober writes first, and the live lane should go first.
		s.circuit, s.next = shard.CircuitOpen, open
	case s.circuit == shard.CircuitProbe:
		h.probe(ctx)
	}
	// The flight that opened the circuit probes right after its end, even if a document woke the
	// flight.
	if s.circuit == shard.CircuitOpen && !h.tripped && !h.probesNext() {
		s.next = h.behindCircuit(s.next, s.row.Level)
	}
}

// probe pings the sink, never with a document. If the sink denies pings, the circuit closes to a
// pace at which a few documents are the probe. If none of them is applied they open it again,
// one level higher.
func (h *health) probe(ctx context.Context) {
	deadline := h.config.Index.SinkDeadline
	if h.row.Level%patientEvery != 0 {
		deadline = min(deadline, pingDeadline)
	}
	// The time of one ping that uses its whole deadline, and the guard for clocks that differ.
	asked := h.now()
	until := asked.Add(deadline + h.config.Index.Guard)
	if !h.isProber(ctx, until) {
		return
	}
	call, cancel := h.clock.Deadline(ctx, min(deadline, h.remaining()-sinkMargin))
	err := h.engine.ping(call)
	cancel()
	h.lost("ping the sink", "", err)
	pace := shard.Restart(h.row, h.now())
	switch {
	case errors.Is(err, sink.ErrDenied):
		pace = shard.ProbePace // documents are the probe, a few at a time
	case err != nil:
		h.why = err.Error() // safe to store: a sink's error has no text of an answer
		// A failed probe opens the circuit breaker again, one level higher. A ping that hung has
		// used a part of that time.
		h.trip(ctx, asked, 0)
		h.circuit = shard.CircuitOpen
		return
	}
	if h.closed(ctx, until, pace) {
		h.note(journal.Note{Step: journal.CircuitClosed})
	}
}

// judge lowers the pace of all flights if the sink has throttled a part of a request. If
// that is not enough, it opens the circuit. A failure of one document or one index does neither.
func (h *health) judge(ctx context.Context, r *request) {
	var applied, busy, throttled, unknown int
	var after time.Duration
	for i, o := range r.outcomes {
		switch o.Kind {
		case sink.Applied:
			applied++
		case sink.Throttled, sink.Configuration:
			if o.Apart && !(o.Kind == sink.Configuration && h.onlyIndex()) {
				break
			}
			throttled++
			h.why = causeOf(r.docs[i], o)
			// A sink that is only busy answers with one of these statuses.
			if o.Kind == sink.Throttled &&
				(o.Status == http.StatusTooManyRequests || o.Status == http.StatusServiceUnavailable) {
				busy++
			}
			after = max(after, o.RetryAfter)
		case sink.Unknown:
			unknown++
			h.why = causeOf(r.docs[i], o)
		}
	}
	// A document alone in its request, whose claims went unanswered before, may itself be the
	// cause.
	suspect := len(r.docs) == 1 && r.docs[0].row.Attempts > 1
	pace := h.taken()
	// If the pace is at its slowest, or the sink says how long to wait, an open circuit is
	// cheaper.
	stop := applied == 0 && (after > 0 || pace > 0 && pace <= shard.TripPace)
	switch {
	case unknown == len(r.outcomes) && !suspect, throttled > 0 && (busy == 0 || stop):
		// Missing answers count only if the whole request got none.
		h.trip(ctx, h.now(), after)
	case throttled > 0:
		h.cut(ctx, applied, throttled)
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
func (h *health) onlyIndex() bool {
	return len(h.config.Collections) > 0 && len(h.config.CollectionsOf(h.sinkName)) == 1
}

// trip opens the sink's circuit after a request or ping that began at asked.
func (h *health) trip(ctx context.Context, asked shard.Micros, retryAfter time.Duration) {
	level, until := h.opening(asked, retryAfter)
	h.tripped, h.next = true, h.behindCircuit(until+1, level)
	if h.open(ctx, level, until) {
		// The flight that opens the circuit probes when its time is over. The others may leave.
		h.state.Probes, h.next = until, until+1
		h.note(journal.Note{
			Step: journal.CircuitOpened, Count: int(level), Until: until.Time(), Detail: h.why,
		})
	}
}

// cut makes all flights write more slowly.
func (h *health) cut(ctx context.Context, applied, throttled int) {
	switch slowed := h.slow(ctx, applied, throttled, h.ceiling()); {
	case slowed:
		h.note(journal.Note{Step: journal.Slowed, Count: int(h.row.Rate), Detail: h.why})
	case h.circuit != shard.CircuitClosed: // another flight has opened the circuit, or an operator paused the sink
		h.tripped, h.next = true, h.behindCircuit(h.next, h.row.Level)
	}
}

// probesNext reports whether this flight opened the circuit and so must probe. It stays until
// then, even if newer versions replaced everything it held: no other flight would probe in time.
func (h *health) probesNext() bool {
	return h.state.Probes != 0 && h.state.Probes == h.row.OpenUntil && h.row.PausedAt == 0
}

// shut returns why nothing is claimed.
func (h *health) shut() string {
	switch {
	case h.unread:
		return "the sink's health could not be read"
	case h.row.PausedAt != 0:
		return "an operator has paused the sink"
	}
	return "the sink is unhealthy"
}

// pace returns how fast the sink may be given documents now, 0 for no limit.
func (h *health) pace() int64 { return shard.Lesser(h.taken(), h.ceiling()) }

// taken returns how fast the sink accepts documents, judged by its recent 429 answers.
func (h *health) taken() int64 { return shard.Pace(h.row, h.now()) }

// ceiling returns the pace that the settings allow, 0 for no ceiling. During a rebuild it is
// halved, because each document is written to two indices.
func (h *health) ceiling() int64 {
	ceiling := h.config.Ceiling(h.sinkName)
	if h.rebuild.RebuildAt != 0 {
		ceiling /= 2
	}
	return ceiling
}
