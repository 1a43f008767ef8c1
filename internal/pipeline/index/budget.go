package index

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/shard"
)

// The health row of a sink that throttles has a budget (ADR 0022). A flight takes a slot of it:
// a stretch of time that no other flight has. In its slot the flight writes at the pace that the
// row allows at that time. A later cut of the pace also applies to slots that were taken before.
const (
	// slotMost is the longest slot: it must fit into a turn, however slow the answers are.
	slotMost = 2 * time.Second
	// slotNear is how long a turn waits for its slot inside its invocation. A wake has whole
	// seconds only.
	slotNear = time.Second
	// slotStale is how long after its end a slot may still be used.
	slotStale = 10 * time.Second
	// requestsPerSecond splits a slot into requests. If the sink throttles one, the rest is not
	// sent.
	requestsPerSecond = 4
	// idleAfter is how long after the end of the last documents' time a sink counts as idle.
	idleAfter = 300 * time.Millisecond
	// sendTries bounds how often a request waits for other flights while it holds its leases.
	sendTries = 4
	// sendLate is how late the answer that allows a request may arrive.
	sendLate = 500 * time.Millisecond
	// yieldLeast is the shortest time for which the health row is written.
	yieldLeast = 20 * time.Millisecond
)

// budget is the sink's time that a turn may use: the slot that its flight has taken, and what it
// has sent in it.
type budget struct {
	*holding
	sink    *health
	slot    shard.Micros // the slot that this turn uses
	slotEnd shard.Micros
	unpaid  bool          // no slot was taken, because the sink was idle
	without bool          // documents wait, and the flight may not take a slot yet
	sent    int           // documents sent in it
	took    time.Duration // how long the last request took
}

// keepsUp reports whether the sink gets documents about when they are due.
func (b *budget) keepsUp() bool {
	return b.sink.taken() == 0 && (b.sink.ceiling() == 0 || shard.Ahead(b.sink.row, b.now()) <= slotNear)
}

// horizon returns how far ahead a flight may take a slot. The longer its messages have waited,
// the further ahead it may take one, so that the oldest go first. The limit is short because
// newer versions may replace the documents of a slot before it begins.
func (b *budget) horizon() time.Duration {
	least, most := 4*time.Second, 20*time.Second
	share := time.Duration(6) // a sixth of the time waited
	if b.lane == flight.Bulk {
		least, share = time.Second, 60
	}
	if b.requeues() {
		// The others wait in the queue. So few ask at the same time, and less needs to be handed out.
		share, most = 60, 12*time.Second
		if b.lane == flight.Bulk {
			most = 4 * time.Second // never further than live
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

// beyond returns how much later than the horizon the time begins that is not handed out yet.
func (b *budget) beyond() time.Duration {
	return max(shard.Ahead(b.sink.row, b.now())-b.horizon(), 0)
}

// requeues reports whether a flight without a slot gives its messages back to the queue (ADR 0070).
// A flight that waits costs turns, a message in the queue costs one receive. The flight keeps them
// during slow start, because the speed then doubles every few seconds. Messages of a rescued flight
// may not be in the queue.
func (b *budget) requeues() bool {
	return b.sink.pace() > 0 && !shard.SlowStart(b.sink.row, b.now()) && b.sink.circuit == shard.CircuitClosed &&
		!b.sink.tripped && !b.rescued()
}

// mustRequeue reports whether the flight cannot get a slot in this turn. Then it need not read its
// rows.
func (b *budget) mustRequeue() bool {
	return b.state.Slot == 0 && b.requeues() && b.beyond() > 0 && !b.idle()
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
	_ = b.clock.Sleep(ctx, near) // an invocation that ends here loses its slot, nothing else
}

// pay returns the claims that this turn has a slot for, the oldest first. The others wait. If
// the sink has no limit, pay returns all claims.
func (b *budget) pay(ctx context.Context, claims []*document) []*document {
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
	if b.state.Slot == 0 && b.idle() {
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

// idle reports whether nothing is sent to a sink with a ceiling, although its time may be taken.
// That happens when newer versions replaced the documents of the slots. A flight then needs no
// slot. Send limits how many flights act on this.
func (b *budget) idle() bool {
	return b.sink.ceiling() > 0 && b.sink.taken() == 0 && b.sink.row.SentUntil.Add(idleAfter) < b.now()
}

// slotLong returns the length of a slot for a number of documents. It has room for at least one.
func slotLong(documents int, pace int64) time.Duration {
	return min(shard.Cost(float64(documents), pace), max(slotMost, shard.Cost(1, pace)))
}

// allowance returns how many more documents may be sent in this turn's slot. A slot ends by the
// number sent, not by the time, because answers may be slow.
func (b *budget) allowance(pace int64) int {
	if b.slot == 0 {
		return 0
	}
	// Rounded, but at least one: each slot was paid for at least one document.
	n := max(int(shard.Worth(b.slotEnd.Sub(b.slot), pace)+0.5), 1)
	return max(n-b.sent, 0)
}

// portion waits until the next request may be sent, and splits off the documents that it may
// contain. Without a budget that is the whole group. With one it is what the pace allows up to
// now, at least a quarter of a second's worth.
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
		// Wait before the claim: a wait after it would hold a lease that other flights wait for.
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

// mayGo counts documents that are sent to a sink with a ceiling now. It returns false if they
// must not be sent, because others were first or the answer is lost. It is asked last before the
// request, under the leases. So the limit holds however slow the steps before it were.
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
			continue // too late: other requests may have used the time since
		}
		wait := shard.SendAfter(b.sink.row, b.now(), long)
		if wait > slotMost || wait > b.remaining()-sinkMargin-leastWrite || b.clock.Sleep(ctx, wait) != nil {
			return false
		}
	}
	return false
}

// forfeit returns a slot that is not used.
func (b *budget) forfeit(ctx context.Context) {
	b.yield(ctx, b.state.SlotEnd.Sub(b.state.Slot)) // does nothing without a slot
	b.state.Slot, b.state.SlotEnd = 0, 0
}

// yield returns the part of a slot whose documents were replaced by newer versions, so that
// others can take it. If the sink throttles, it returns nothing, because that made 429s more
// frequent (ADR 0050).
func (b *budget) yield(ctx context.Context, long time.Duration) {
	if b.sink.taken() > 0 || b.sink.ceiling() == 0 || long < yieldLeast || shard.Ahead(b.sink.row, b.now()) < long {
		return
	}
	if a := b.ask(ctx, shard.Yield(b.sinkName, b.now(), long)); a.err == nil {
		b.sink.row = a.row
	}
}

// awaitBudget postpones documents until the flight's slot, or until the flight may get one.
func (b *budget) awaitBudget(docs []*document) {
	until := b.state.Slot.Add(-slotNear)
	if b.without = b.state.Slot == 0; b.without {
		// All flights that waited long may take slots equally far ahead. So each asks at a
		// random moment, about as often as the time that is taken ahead passes.
		until = b.now().Add(b.beyond() + time.Duration(b.jitter()*float64(b.horizon())))
	}
	why := "the sink throttles: its budget is spoken for"
	if b.sink.taken() == 0 {
		why = "maxDocumentsPerSecond: the sink's time is spoken for"
	}
	b.waitAll(docs, until, why)
}

// postpone keeps documents for the next turn. None of them is claimed, so another flight may
// write them.
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
		until, why = b.sink.next, b.sink.shut()
	}
	b.waitAll(docs, until, why)
}

// mayWrite reports whether another round fits: this turn has not opened the circuit, the budget
// has room, and there is time for a request and its commit. A sink that throttles may answer
// late, and a request that is cut short would count as unanswered. So it needs half as much time
// again as the last.
func (b *budget) mayWrite() bool {
	left, pace := b.remaining()-sinkMargin, b.sink.pace()
	return !b.sink.tripped && left > leastWrite && (pace == 0 || b.allowance(pace) > 0 && left > b.took*3/2)
}

// unlessOpen postpones the claims while the circuit breaker of the sink is open (design section
// 8).
func (b *budget) unlessOpen(claims []*document) []*document {
	if b.sink.circuit == shard.CircuitClosed {
		return claims
	}
	b.waitAll(claims, b.sink.next, b.sink.shut())
	return nil
}

// yieldRest returns what remains of this turn's slot.
func (b *budget) yieldRest(ctx context.Context) {
	if b.slot != 0 && !b.unpaid {
		b.yield(ctx, b.slotEnd.Sub(b.slot)-shard.Cost(float64(b.sent), b.sink.pace()))
	}
}
