// SPDX-License-Identifier: Apache-2.0

package index

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/shard"
)

// The health row of a sink that throttles has a budget (ADR 0022). A flight takes a slot of this
// budget: a stretch of time that no other flight has. In its slot the flight writes at the pace
// that the row allows at that time. If the pace is cut later, the cut also applies to slots that
// were taken before.
const (
	// slotMost is the longest slot. It must fit into a turn, however slow the sink's answers are.
	slotMost = 2 * time.Second
	// slotNear is the longest time that a turn waits for its slot inside its invocation. A wake of
	// the state machine is exact only to the second.
	slotNear = time.Second
	// slotStale is how long a slot may still be used after it has ended.
	slotStale = 10 * time.Second
	// requestsPerSecond splits a slot into requests. If the sink throttles one request, lull does
	// not send the rest of the slot.
	requestsPerSecond = 4
	// A sink counts as idle if the time for its last documents ended more than idleAfter ago.
	idleAfter = 300 * time.Millisecond
	// sendTries bounds how often a request waits for other flights while the request holds leases.
	sendTries = 4
	// sendLate is how late the answer of the table that allows a request may arrive.
	sendLate = 500 * time.Millisecond
	// yieldLeast is the shortest time that a flight returns to the budget. A write of the
	// health row costs more than a shorter time.
	yieldLeast = 20 * time.Millisecond
)

// budget is the time of the sink that a turn may use: the slot that the flight has taken, and the
// number of documents that were sent in the slot.
type budget struct {
	*holding
	sink    *health
	slot    shard.Micros // the slot that this turn uses
	slotEnd shard.Micros
	unpaid  bool          // no slot was taken, because the sink was idle
	without bool          // documents wait, and the flight may not take a slot yet
	sent    int           // number of documents sent in the slot
	took    time.Duration // how long the last request took
}

// keepsUp reports whether the sink gets documents at about the time when they are due.
func (b *budget) keepsUp() bool {
	return b.sink.acceptedPace() == 0 && (b.sink.ceiling() == 0 || shard.Ahead(b.sink.row, b.now()) <= slotNear)
}

// horizon returns how far ahead a flight may take a slot. The longer the messages of the flight
// have waited, the further ahead it may take a slot, so that the oldest messages go first. The
// limit is short because newer versions may replace the documents of a slot before the slot begins.
func (b *budget) horizon() time.Duration {
	least, most := 4*time.Second, 20*time.Second
	share := time.Duration(6) // a sixth of the time waited
	if b.lane == flight.Bulk {
		least, share = time.Second, 60
	}
	if b.requeues() {
		// The other flights wait in the queue. So few flights ask at the same time, and less time
		// needs to be handed out.
		share, most = 60, 12*time.Second
		if b.lane == flight.Bulk {
			most = 4 * time.Second // the bulk lane never looks further ahead than the live lane
		}
	}
	return min(least+b.age()/share, most)
}

// age returns how long ago the oldest message of the flight was sent.
func (b *budget) age() (age time.Duration) {
	for r := range b.records {
		if b.records[r].mine {
			age = max(age, b.start.Sub(b.manifest.Records[r].Message.Sent))
		}
	}
	return age
}

// beyondHorizon returns how long after the horizon the first free time of the sink begins.
func (b *budget) beyondHorizon() time.Duration {
	return max(shard.Ahead(b.sink.row, b.now())-b.horizon(), 0)
}

// requeues reports whether a flight without a slot gives its messages back to the queue (ADR 0070).
// A flight that waits costs turns, but a message in the queue costs only one receive. The flight
// keeps its messages during slow start, because the pace then doubles every few seconds. Messages
// of a rescued flight may not be in the queue.
func (b *budget) requeues() bool {
	return b.sink.pace() > 0 && !shard.SlowStart(b.sink.row, b.now()) && b.sink.circuit == shard.CircuitClosed &&
		!b.sink.tripped && !b.rescued()
}

// mustRequeue reports whether the flight cannot get a slot in this turn. The flight then need not
// read its rows.
func (b *budget) mustRequeue() bool {
	return b.state.Slot == 0 && b.requeues() && b.beyondHorizon() > 0 && !b.isIdle()
}

// awaitSlot waits for a slot that begins soon. It runs before the rows are read, so that the
// rows are fresh when the slot begins.
func (b *budget) awaitSlot(ctx context.Context) {
	near := b.state.Slot.Sub(b.now())
	if b.state.Slot == 0 || near > slotNear {
		return
	}
	if b.now() > b.state.SlotEnd.Add(slotStale) || b.sink.circuit != shard.CircuitClosed {
		b.forfeit(ctx)
		return
	}
	_ = b.clock.Sleep(ctx, near) // if the invocation ends here, only its slot is lost
}

// claimsInSlot returns the claims that this turn has a slot for, the oldest first. The other claims
// wait. If the sink has no limit, claimsInSlot returns all claims.
func (b *budget) claimsInSlot(ctx context.Context, claims []*document) []*document {
	if b.sink.pace() == 0 {
		b.state.Slot, b.state.SlotEnd = 0, 0
		return claims
	}
	if len(claims) == 0 {
		if b.sink.ceiling() > 0 && b.state.Slot != 0 && b.state.Slot.Sub(b.now()) <= slotNear {
			b.forfeit(ctx) // newer versions replaced all documents of the slot
		}
		return nil
	}
	slices.SortStableFunc(claims, func(a, b *document) int { return cmp.Compare(a.row.BurstStart, b.row.BurstStart) })
	if b.state.Slot == 0 && b.isIdle() {
		b.unpaid, b.slot = true, b.now()
		b.slotEnd = b.slot.Add(slotLong(len(claims), b.sink.pace()))
		return claims
	}
	if b.state.Slot == 0 {
		b.reserve(ctx, len(claims))
	}
	if near := b.state.Slot.Sub(b.now()); b.state.Slot == 0 || near > slotNear ||
		b.clock.Sleep(ctx, near) != nil {
		b.awaitBudget(claims)
		return nil
	}
	b.slot, b.slotEnd = b.state.Slot, b.state.SlotEnd
	b.state.Slot, b.state.SlotEnd = 0, 0
	return claims
}

// isIdle reports whether no documents are being sent to a sink with a ceiling, although flights may
// have taken its time. This happens if newer versions replaced the documents of the slots. A flight
// then needs no slot. shard.Send limits how many flights act on this.
func (b *budget) isIdle() bool {
	return b.sink.ceiling() > 0 && b.sink.acceptedPace() == 0 && b.sink.row.SentUntil.Add(idleAfter) < b.now()
}

// slotLong returns the length of a slot for a number of documents. A slot has room for at least one
// document.
func slotLong(documents int, pace int64) time.Duration {
	return min(shard.Cost(float64(documents), pace), max(slotMost, shard.Cost(1, pace)))
}

// allowance returns how many more documents may be sent in the slot of this turn. The number of
// documents ends a slot, not the time, because answers may be slow.
func (b *budget) allowance(pace int64) int {
	if b.slot == 0 {
		return 0
	}
	// The number is rounded, but is at least one: each slot was taken for at least one document.
	n := max(int(shard.Worth(b.slotEnd.Sub(b.slot), pace)+0.5), 1)
	return max(n-b.sent, 0)
}

// portion waits until the next request may be sent, and splits off the documents that the request
// may contain. Without a budget, that is the whole group. With a budget, it is the number that the
// pace allows up to now. If the number for a quarter of a second is greater, it is that number.
func (b *budget) portion(ctx context.Context, group []*document) (part, rest []*document) {
	pace := b.sink.pace()
	if pace == 0 {
		return group, nil
	}
	elapsed := b.now().Sub(b.slot)
	if due := shard.Cost(float64(b.sent), pace); due > elapsed {
		if b.clock.Sleep(ctx, min(due-elapsed, slotMost)) != nil {
			return nil, group
		}
		elapsed = b.now().Sub(b.slot)
	}
	n := max(int(pace/1000/requestsPerSecond), int(shard.Worth(elapsed, pace))-b.sent, 1)
	n = min(n, b.allowance(pace), len(group))
	if ceiling := b.sink.ceiling(); ceiling > 0 {
		n = min(n, max(int(shard.Worth(shard.SendBurst, ceiling)), 1))
		// Wait before the claim, because other flights would wait for a lease that is held during
		// the wait.
		wait := shard.SendAfter(b.sink.row, b.now(), shard.Cost(float64(n), ceiling))
		if b.clock.Sleep(ctx, min(wait, slotMost)) != nil {
			return nil, group
		}
	}
	return group[:n], group[n:]
}

// reserve takes the next slot for a number of documents.
func (b *budget) reserve(ctx context.Context, documents int) {
	pace := b.sink.pace()
	if pace == 0 || b.state.Slot != 0 {
		return
	}
	long := slotLong(documents, pace)
	if end, ok := b.sink.spend(ctx, long, b.horizon()); ok {
		b.state.Slot, b.state.SlotEnd = end.Add(-long), end
	}
}

// mayGo records that documents are sent to a sink with a ceiling now. It returns false if they must
// not be sent, because other flights were first or the answer of the table is lost. mayGo is called
// last before the request, under the leases. So the limit holds even if the steps before the
// request were slow.
func (b *budget) mayGo(ctx context.Context, documents int) bool {
	ceiling := b.sink.ceiling()
	if ceiling == 0 {
		return true
	}
	long := shard.Cost(float64(documents), ceiling)
	for range sendTries {
		asked := b.now()
		a := b.ask(ctx, shard.Send(b.sinkName, b.sink.row, asked, long))
		if a.unknown() {
			return false
		}
		if b.sink.row = a.row; a.err == nil {
			if b.now().Sub(asked) <= sendLate {
				return true
			}
			continue // the answer was too late: other requests may have used the time in between
		}
		wait := shard.SendAfter(b.sink.row, b.now(), long)
		if wait > slotMost || wait > b.remaining()-sinkMargin-leastWrite || b.clock.Sleep(ctx, wait) != nil {
			return false
		}
	}
	return false
}

// forfeit returns a slot that the flight does not use.
func (b *budget) forfeit(ctx context.Context) {
	b.yield(ctx, b.state.SlotEnd.Sub(b.state.Slot)) // yield does nothing if the flight has no slot
	b.state.Slot, b.state.SlotEnd = 0, 0
}

// yield returns the part of a slot whose documents were replaced by newer versions, so that other
// flights can take it. If the sink throttles, yield returns nothing, because giving time back made
// 429 answers more frequent (ADR 0050).
func (b *budget) yield(ctx context.Context, long time.Duration) {
	if b.sink.acceptedPace() > 0 || b.sink.ceiling() == 0 || long < yieldLeast ||
		shard.Ahead(b.sink.row, b.now()) < long {
		return
	}
	if a := b.ask(ctx, shard.Yield(b.sinkName, b.now(), long)); a.err == nil {
		b.sink.row = a.row
	}
}

// awaitBudget makes documents wait until the flight's slot, or until the flight may get a slot.
func (b *budget) awaitBudget(docs []*document) {
	until := b.state.Slot.Add(-slotNear)
	if b.without = b.state.Slot == 0; b.without {
		// Flights that have waited long may all take slots equally far ahead. So each flight asks
		// at a random moment, about as often as the time that is already taken passes.
		until = b.now().Add(b.beyondHorizon() + time.Duration(b.jitter()*float64(b.horizon())))
	}
	why := "the sink throttles: other flights have taken its budget"
	if b.sink.acceptedPace() == 0 {
		why = "maxDocumentsPerSecond: other flights have taken the sink's time"
	}
	b.waitAll(docs, until, why)
}

// postpone keeps documents for the next turn. None of these documents is claimed, so another flight
// may write them.
func (b *budget) postpone(ctx context.Context, docs []*document) {
	if len(docs) == 0 {
		return
	}
	if !b.sink.tripped && b.sink.pace() > 0 {
		b.reserve(ctx, len(docs))
		b.awaitBudget(docs)
		return
	}
	until, why := b.now(), "no time left in this invocation"
	if b.sink.tripped {
		until, why = b.sink.next, b.sink.whyClosed()
	}
	b.waitAll(docs, until, why)
}

// mayWrite reports whether there is time for another round: this turn has not opened the circuit,
// the budget allows more documents, and the time is enough for a request and its commit. A sink
// that throttles may answer late, and a request that is cut short would count as unanswered. So the
// next request needs one and a half times as long as the last request took.
func (b *budget) mayWrite() bool {
	left, pace := b.remaining()-sinkMargin, b.sink.pace()
	return !b.sink.tripped && left > leastWrite && (pace == 0 || b.allowance(pace) > 0 && left > b.took*3/2)
}

// postponeIfOpen postpones the claims while the circuit breaker of the sink is open (design section
// 8).
func (b *budget) postponeIfOpen(claims []*document) []*document {
	if b.sink.circuit == shard.CircuitClosed {
		return claims
	}
	b.waitAll(claims, b.sink.next, b.sink.whyClosed())
	return nil
}

// yieldRest returns the unused part of this turn's slot to the budget.
func (b *budget) yieldRest(ctx context.Context) {
	if b.slot != 0 && !b.unpaid {
		b.yield(ctx, b.slotEnd.Sub(b.slot)-shard.Cost(float64(b.sent), b.sink.pace()))
	}
}
