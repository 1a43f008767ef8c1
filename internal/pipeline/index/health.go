// SPDX-License-Identifier: Apache-2.0

package index

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// health is what a turn knows of its sink: the health row that all flights share, and what this
// turn did to that row.
type health struct {
	service
	engine  *engine
	rebuild shard.Row // the sink's row at the first read of this turn: it says whether a collection is rebuilt
	unread  bool      // the sink's row could not be read
	tripped bool      // this turn found the circuit open after a request, or opened it
}

// A ping ends after pingDeadline. If the sink returns while a ping hangs, the next ping comes soon.
// Each patientEvery-th ping gets the whole deadline of the sink. Otherwise lull would never use a
// sink again that always answers slowly.
const (
	pingDeadline = 2 * time.Second
	patientEvery = 8
)

// An answer is late if it took more than one part in lateShare of the sink's deadline. It counts
// like a request of which the sink throttled lateCut documents for each document that it accepted.
const (
	lateShare = 2
	lateCut   = 3
	// lateFirst is the lowest speed after the first late answer, in documents a second. It is the
	// speed after the circuit was open for the first time, because a healthy engine may pause once.
	// The next late answer cuts the speed that flights used.
	lateFirst = 32 * shard.RestartPace / 1000
)

// read reads the shared health row of the sink. If the circuit has been open long enough, this turn
// may become the one prober.
func (h *health) read(ctx context.Context) {
	s := &h.service
	if !s.readHealth(ctx) {
		// The row could not be read, so an operator may have paused the sink. The table would
		// probably refuse the claims, too.
		h.unread, s.circuit, s.next = true, shard.CircuitOpen, h.now().Add(h.config.Retry.BackoffMin)
		return
	}
	h.rebuild = s.row
	open, now := s.row.OpenUntil, h.now()
	switch {
	case s.circuit == shard.CircuitProbe && h.lane == flight.Bulk && h.state.Probes != open &&
		now < open.Add(h.config.Retry.OpenFor(s.row.Level)) && !shard.Absurd(open, now):
		// The prober writes first, and the live lane should write before the bulk lane.
		s.circuit, s.next = shard.CircuitOpen, open
	case s.circuit == shard.CircuitProbe:
		h.probe(ctx)
	}
	// The flight that opened the circuit probes right after the circuit's open time ends, even if a
	// document woke the flight.
	if s.circuit == shard.CircuitOpen && !h.tripped && !h.probesNext() {
		s.next = h.behindCircuit(s.next, s.row.Level)
	}
}

// probe pings the sink. It never sends a document. If the sink denies pings, the circuit closes to
// a pace at which a few documents are the probe. If the sink applies none of these documents, they
// open the circuit again, one level higher.
func (h *health) probe(ctx context.Context) {
	deadline := h.config.Index.SinkDeadline
	if h.row.Level%patientEvery != 0 {
		deadline = min(deadline, pingDeadline)
	}
	// The probe may take one ping with its whole deadline, and the guard for clocks that differ.
	asked := h.now()
	until := asked.Add(deadline + h.config.Index.Guard)
	if !h.isProber(ctx, until) {
		return
	}
	call, cancel := h.clock.Deadline(ctx, min(deadline, h.remaining()-sinkMargin))
	err := h.engine.ping(call)
	cancel()
	h.noteFailed("ping the sink", "", err)
	pace := shard.Restart(h.row, h.now())
	switch {
	case errors.Is(err, sink.ErrDenied):
		pace = shard.ProbePace // a few documents at a time are the probe
	case err != nil:
		h.why = err.Error() // safe to store: the error of a sink contains no text of an answer
		// A failed probe opens the circuit breaker again, one level higher. The open time begins
		// when the ping was sent, so a ping that hung has used a part of it.
		h.trip(ctx, asked, asked, 0)
		h.circuit = shard.CircuitOpen
		return
	}
	if h.closeCircuit(ctx, until, pace) {
		h.note(journal.Note{Step: journal.CircuitClosed})
	}
}

// judge lowers the pace of all flights if the sink has throttled a part of a request, or answered
// late. If a lower pace is not enough, judge opens the circuit. A failure of one document or one
// index does neither.
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
			// A sink that is only busy answers with status 429 or 503.
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
	// If a document is alone in its request and its claims went unanswered before, the document
	// itself may be the cause.
	suspect := len(r.docs) == 1 && r.docs[0].row.Attempts > 1
	pace := h.acceptedPace()
	// If the pace is at its slowest, or the sink says how long to wait, an open circuit is cheaper
	// than a lower pace.
	stop := applied == 0 && (after > 0 || pace > 0 && pace <= shard.TripPace)
	switch {
	case unknown == len(r.outcomes) && !suspect:
		// Missing answers count only if the whole request got no answer. The sink may not have
		// answered earlier requests either, if they were sent within the time that this one took.
		h.trip(ctx, h.now(), r.began.Add(-r.took), after)
	case throttled > 0 && (busy == 0 || stop):
		h.trip(ctx, h.now(), h.now(), after)
	case throttled > 0:
		h.cut(ctx, applied, throttled, 0)
	case applied > 0 && h.isLate(r) && (pace == 0 || pace > shard.RestartPace):
		// The sink queues requests, and soon it will answer later than lull waits (ADR 0081).
		h.why = fmt.Sprintf("the sink answered after %s", r.took.Round(100*time.Millisecond))
		accepted := max(int(float64(applied)/r.took.Seconds()), lateFirst)
		h.cut(ctx, accepted, lateCut*accepted, shard.RestartPace)
	}
}

// isLate reports whether a bulk request of a call took too long, on average. A sink that writes one
// document a request sends many requests in one call.
func (h *health) isLate(r *request) bool {
	set, bytes := h.config.Sinks[h.sinkName], 0
	for _, op := range r.ops {
		bytes += len(op.Document)
	}
	full := func(n, each int) int { return (n - 1) / max(each, 1) } // requests before the last one
	requests := 1 + max(full(len(r.ops), set.BulkDocuments), full(bytes, int(set.BulkBytes)))
	return r.took/time.Duration(requests) > h.config.Index.SinkDeadline/lateShare
}

// causeOf returns why a document was not written, for the health row. The text names the collection
// and not the document, because other documents are affected too.
func causeOf(d *document, o sink.Outcome) string {
	why := cmp.Or(o.Reason, fmt.Sprint("HTTP ", o.Status))
	return fmt.Sprintf("%s: %s, in collection %s", o.Kind, why, d.id.Collection())
}

// onlyIndex reports whether the settings give the sink only one collection. A fault of that
// collection's index then stops all writes to the sink.
func (h *health) onlyIndex() bool {
	return len(h.config.Collections) > 0 && len(h.config.CollectionsOf(h.sinkName)) == 1
}

// trip opens the sink's circuit. See [service.opening].
func (h *health) trip(ctx context.Context, asked, healthy shard.Micros, retryAfter time.Duration) {
	level, until := h.opening(asked, healthy, retryAfter)
	h.tripped, h.next = true, h.behindCircuit(until+1, level)
	if h.openCircuit(ctx, level, until) {
		// The flight that opens the circuit probes the sink when the open time is over. The other
		// flights may leave.
		h.state.Probes, h.next = until, until+1
		h.note(journal.Note{
			Step: journal.CircuitOpened, Count: int(level), Until: until.Time(), Detail: h.why,
		})
	}
}

// cut makes all flights write more slowly, but not more slowly than the speed least.
func (h *health) cut(ctx context.Context, applied, throttled int, least int64) {
	switch slowed := h.lowerPace(ctx, applied, throttled, h.ceiling(), least); {
	case slowed:
		h.note(journal.Note{Step: journal.Slowed, Count: int(h.row.Rate), Detail: h.why})
	// another flight has opened the circuit, or an operator has paused the sink
	case h.circuit != shard.CircuitClosed:
		h.tripped, h.next = true, h.behindCircuit(h.next, h.row.Level)
	}
}

// probesNext reports whether this flight opened the circuit and so must probe. The flight stays
// until then, even if newer versions replaced everything it held: no other flight would probe in
// time.
func (h *health) probesNext() bool {
	return h.state.Probes != 0 && h.state.Probes == h.row.OpenUntil && h.row.PausedAt == 0
}

// whyClosed returns why nothing is claimed.
func (h *health) whyClosed() string {
	switch {
	case h.unread:
		return "the sink's health could not be read"
	case h.row.PausedAt != 0:
		return "an operator has paused the sink"
	}
	return "the sink is unhealthy"
}

// pace returns how many documents the sink may be given now, in thousandths of a document a second.
// 0 means no limit.
func (h *health) pace() int64 { return shard.Lesser(h.acceptedPace(), h.ceiling()) }

// acceptedPace returns how fast the sink accepts documents, judged by its recent 429 answers.
func (h *health) acceptedPace() int64 { return shard.Pace(h.row, h.now()) }

// ceiling returns the pace that the settings allow, 0 for no ceiling. During a rebuild the ceiling
// is halved, because each document is written to two indices.
func (h *health) ceiling() int64 {
	ceiling := config.Ceiling(h.config.Sinks[h.sinkName])
	if h.rebuild.RebuildAt != 0 {
		ceiling /= 2
	}
	return ceiling
}
