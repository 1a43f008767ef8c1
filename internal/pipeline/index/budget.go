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

// pace returns how fast the sink may be given documents now, 0 for no limit.
func (t *turn) pace() int64 { return shard.Lesser(t.taken(), t.ceiling()) }

// taken returns how fast the sink accepts documents, judged by its recent 429 answers.
func (t *turn) taken() int64 { return shard.Pace(t.sink.row, t.now()) }

// ceiling returns the pace that the settings allow, 0 for no ceiling. During a rebuild it is
// halved, because each document is written to two indices.
func (t *turn) ceiling() int64 {
	ceiling := t.config.Ceiling(t.sinkName)
	if t.rebuild.RebuildAt != 0 {
		ceiling /= 2
	}
	return ceiling
}

// keepsUp reports whether the sink gets documents about when they are due.
func (t *turn) keepsUp() bool {
	return t.taken() == 0 && (t.ceiling() == 0 || shard.Ahead(t.sink.row, t.now()) <= slotNear)
}

// horizon returns how far ahead a flight may take a slot. The longer its messages have waited,
// the further ahead it may take one, so that the oldest go first. The limit is short because
// newer versions may replace the documents of a slot before it begins.
func (t *turn) horizon() time.Duration {
	least, most := 4*time.Second, 20*time.Second
	share := 6.0 // a sixth of the time waited
	if t.manifest.Lane == flight.Bulk {
		least, share = time.Second, 60
	}
	var age time.Duration
	for r := range t.records {
		if t.records[r].mine {
			age = max(age, t.start.Sub(t.manifest.Records[r].Message.Sent))
		}
	}
	return min(least+time.Duration(float64(age)/share), most)
}

// awaitSlot waits for a slot that begins soon. It runs before the rows are read, so that the
// rows are fresh when the slot begins.
func (t *turn) awaitSlot(ctx context.Context) {
	near := t.state.Slot.Sub(t.now())
	if t.state.Slot == 0 || near > slotNear {
		return
	}
	if t.now() > t.state.SlotEnd.Add(slotStale) || t.sink.circuit != shard.CircuitClosed {
		t.forfeit(ctx)
		return
	}
	_ = t.clock.Sleep(ctx, near) // an invocation that ends here loses its slot, nothing else
}

// pay returns the claims that this turn has a slot for, the oldest first. The others wait. If
// the sink has no limit, pay returns all claims.
func (t *turn) pay(ctx context.Context, claims []*document) []*document {
	if t.pace() == 0 {
		t.state.Slot, t.state.SlotEnd = 0, 0
		return claims
	}
	if len(claims) == 0 {
		if t.ceiling() > 0 && t.state.Slot != 0 && t.state.Slot.Sub(t.now()) <= slotNear {
			t.forfeit(ctx) // newer versions replaced all documents of the slot
		}
		return nil
	}
	slices.SortStableFunc(claims, func(a, b *document) int { return cmp.Compare(a.row.BurstStart, b.row.BurstStart) })
	if t.state.Slot == 0 && t.idle() {
		t.unpaid, t.slot = true, t.now()
		t.slotEnd = t.slot.Add(slotLong(len(claims), t.pace()))
		return claims
	}
	if t.state.Slot == 0 {
		t.reserve(ctx, len(claims))
	}
	if near := t.state.Slot.Sub(t.now()); t.state.Slot == 0 || near > slotNear ||
		t.clock.Sleep(ctx, near) != nil {
		t.awaitBudget(claims)
		return nil
	}
	t.slot, t.slotEnd = t.state.Slot, t.state.SlotEnd
	t.state.Slot, t.state.SlotEnd = 0, 0
	return claims
}

// idle reports whether nothing is sent to a sink with a ceiling, although its time may be taken.
// That happens when newer versions replaced the documents of the slots. A flight then needs no
// slot. Send limits how many flights act on this.
func (t *turn) idle() bool {
	return t.ceiling() > 0 && t.taken() == 0 && t.sink.row.SentUntil.Add(idleAfter) < t.now()
}

// slotLong returns the length of a slot for a number of documents. It has room for at least one.
func slotLong(documents int, pace int64) time.Duration {
	return min(shard.Cost(float64(documents), pace), max(slotMost, shard.Cost(1, pace)))
}

// allowance returns how many more documents may be sent in this turn's slot. A slot ends by the
// number sent, not by the time, because answers may be slow.
func (t *turn) allowance(pace int64) int {
	if t.slot == 0 {
		return 0
	}
	// Rounded, but at least one: each slot was paid for at least one document.
	n := max(int(shard.Worth(t.slotEnd.Sub(t.slot), pace)+0.5), 1)
	return max(n-t.sent, 0)
}

// portion waits until the next request may be sent, and splits off the documents that it may
// contain. Without a budget that is the whole group. With one it is what the pace allows up to
// now, at least a quarter of a second's worth.
func (t *turn) portion(ctx context.Context, group []*document) (part, rest []*document) {
	pace := t.pace()
	if pace == 0 {
		return group, nil
	}
	elapsed := t.now().Sub(t.slot)
	if due := shard.Cost(float64(t.sent), pace); due > elapsed {
		if t.clock.Sleep(ctx, min(due-elapsed, slotMost)) != nil {
			return nil, group
		}
		elapsed = t.now().Sub(t.slot)
	}
	n := max(int(pace/1000/requestsPerSecond), int(shard.Worth(elapsed, pace))-t.sent, 1)
	n = min(n, t.allowance(pace), len(group))
	if ceiling := t.ceiling(); ceiling > 0 {
		n = min(n, max(int(shard.Worth(shard.SendBurst, ceiling)), 1))
		// Wait before the claim: a wait after it would hold a lease that other flights wait for.
		wait := shard.SendAfter(t.sink.row, t.now(), shard.Cost(float64(n), ceiling))
		if t.clock.Sleep(ctx, min(wait, slotMost)) != nil {
			return nil, group
		}
	}
	return group[:n], group[n:]
}

// reserve takes the next slot for a number of documents.
func (t *turn) reserve(ctx context.Context, documents int) {
	pace := t.pace()
	if pace == 0 || t.state.Slot != 0 {
		return
	}
	long := slotLong(documents, pace)
	if end, ok := t.spend(ctx, &t.sink, long, t.horizon()); ok {
		t.state.Slot, t.state.SlotEnd = end.Add(-long), end
	}
}

// spend takes the next stretch of a service's budget, unless more than most is already taken
// ahead. If the answer is lost, the stretch may be taken without a user. It then passes unused.
func (t *turn) spend(ctx context.Context, s *service, long, most time.Duration) (end shard.Micros, ok bool) {
	// The first try may be refused. The row in the refusal shows which form the second try
	// needs.
	for range 2 {
		now, ahead := t.now(), shard.Ahead(s.row, t.now())
		w := shard.SpendFirst(s.name, now, long)
		switch {
		case ahead > most:
			return 0, false
		case ahead > 0:
			w = shard.Spend(s.name, now, long, most)
		}
		a := t.ask(ctx, w)
		if a.unknown() {
			return 0, false
		}
		if s.row = a.row; a.err == nil {
			return s.row.PaidUntil, true
		}
	}
	return 0, false
}

// mayGo counts documents that are sent to a sink with a ceiling now. It returns false if they
// must not be sent, because others were first or the answer is lost. It is asked last before the
// request, under the leases. So the limit holds however slow the steps before it were.
func (t *turn) mayGo(ctx context.Context, documents int) bool {
	ceiling := t.ceiling()
	if ceiling == 0 {
		return true
	}
	long := shard.Cost(float64(documents), ceiling)
	for range sendTries {
		asked := t.now()
		a := t.ask(ctx, shard.Send(t.sinkName, t.sink.row, asked, long))
		if a.unknown() {
			return false
		}
		if t.sink.row = a.row; a.err == nil {
			if t.now().Sub(asked) <= sendLate {
				return true
			}
			continue // too late: other requests may have used the time since
		}
		wait := shard.SendAfter(t.sink.row, t.now(), long)
		if wait > slotMost || wait > t.remaining()-sinkMargin-leastWrite || t.clock.Sleep(ctx, wait) != nil {
			return false
		}
	}
	return false
}

// forfeit returns a slot that is not used.
func (t *turn) forfeit(ctx context.Context) {
	t.yield(ctx, t.state.SlotEnd.Sub(t.state.Slot)) // does nothing without a slot
	t.state.Slot, t.state.SlotEnd = 0, 0
}

// yield returns the part of a slot whose documents were replaced by newer versions, so that
// others can take it. If the sink throttles, it returns nothing, because that made 429s more
// frequent (ADR 0050).
func (t *turn) yield(ctx context.Context, long time.Duration) {
	if t.taken() > 0 || t.ceiling() == 0 || long < yieldLeast || shard.Ahead(t.sink.row, t.now()) < long {
		return
	}
	if a := t.ask(ctx, shard.Yield(t.sinkName, t.now(), long)); a.err == nil {
		t.sink.row = a.row
	}
}

// awaitBudget postpones documents until the flight's slot, or until the flight may get one.
func (t *turn) awaitBudget(docs []*document) {
	until := t.state.Slot.Add(-slotNear)
	if t.state.Slot == 0 {
		// All flights that waited long may take slots equally far ahead. So each asks at a
		// random moment, about as often as the time that is taken ahead passes.
		beyond := max(shard.Ahead(t.sink.row, t.now())-t.horizon(), 0)
		until = t.now().Add(beyond + time.Duration(t.jitter()*float64(t.horizon())))
	}
	why := "the sink throttles: its budget is spoken for"
	if t.taken() == 0 {
		why = "maxDocumentsPerSecond: the sink's time is spoken for"
	}
	t.waitAll(docs, until, why)
}
