package index

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/shard"
)

// A sink that throttles has a budget in its health row (ADR 0022). A flight gets a slot of it: a
// stretch of time of its own, in which it writes what goes into that time at the pace that the row
// then allows. A cut in between holds for slots that were handed out before it.
const (
	// slotMost is the longest slot: it must fit into a turn, however slow the answers are.
	slotMost = 2 * time.Second
	// slotNear is how long a turn waits for its slot inside its invocation: wakes are whole seconds.
	slotNear = time.Second
	// slotStale is how much later than its end a slot is still used.
	slotStale = 10 * time.Second
	// requestsPerSecond splits a slot, so that the first request that is throttled stops the rest.
	requestsPerSecond = 4
	// idleAfter is how long after the last documents filled the time a sink counts as idle.
	idleAfter = 300 * time.Millisecond
	// sendTries bounds how often a request waits for others under its leases.
	sendTries = 4
	// sendLate is how long the answer may take that lets a request go.
	sendLate = 500 * time.Millisecond
	// yieldLeast is the shortest time for which the health row is written.
	yieldLeast = 20 * time.Millisecond
)

// pace is how fast the sink may be given documents now, 0 for no limit.
func (t *turn) pace() int64 { return shard.Lesser(t.taken(), t.ceiling()) }

// taken is how fast the sink takes documents, by the 429s of late.
func (t *turn) taken() int64 { return shard.Pace(t.sink.row, t.now()) }

// ceiling is how fast the settings let documents go, 0 for no ceiling. What is rebuilt is written
// to two indices.
func (t *turn) ceiling() int64 {
	ceiling := t.h.Config.Ceiling(t.h.SinkName)
	if t.rebuild.RebuildAt != 0 {
		ceiling /= 2
	}
	return ceiling
}

// keepsUp reports whether the sink is given what is due about when it is due.
func (t *turn) keepsUp() bool {
	return t.taken() == 0 && (t.ceiling() == 0 || shard.Ahead(t.sink.row, t.now()) <= slotNear)
}

// horizon is how far ahead a flight may take a slot. Those that have waited longest reach furthest,
// so that they go first. A short reach keeps slots from being wasted: until a slot begins, newer
// versions take the place of what it was taken for.
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

// awaitSlot waits for a slot that begins in a moment, before the rows are read: what they say
// should be new when the slot begins.
func (t *turn) awaitSlot(ctx context.Context) {
	near := t.state.Slot.Sub(t.now())
	if t.state.Slot == 0 || near > slotNear {
		return
	}
	if t.now() > t.state.SlotEnd.Add(slotStale) || t.sink.circuit != shard.CircuitClosed {
		t.forfeit(ctx)
		return
	}
	_ = t.h.Clock.Sleep(ctx, near) // an invocation that ends here loses its slot, nothing else
}

// pay returns the claims for which this turn has a slot, the oldest first; the others wait. Where
// the sink takes everything that is all of them.
func (t *turn) pay(ctx context.Context, claims []*document) []*document {
	if t.pace() == 0 {
		t.state.Slot, t.state.SlotEnd = 0, 0
		return claims
	}
	if len(claims) == 0 {
		if t.ceiling() > 0 && t.state.Slot != 0 && t.state.Slot.Sub(t.now()) <= slotNear {
			t.forfeit(ctx) // newer versions took the place of all that it was for
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
		t.h.Clock.Sleep(ctx, near) != nil {
		t.awaitBudget(claims)
		return nil
	}
	t.slot, t.slotEnd = t.state.Slot, t.state.SlotEnd
	t.state.Slot, t.state.SlotEnd = 0, 0
	return claims
}

// idle reports whether nothing goes to a sink with a ceiling, although time may be handed out:
// newer versions took the place of what that is for. Whoever has something to write needs no slot
// then. Send sees to it that not too many think so.
func (t *turn) idle() bool {
	return t.ceiling() > 0 && t.taken() == 0 && t.sink.row.SentUntil.Add(idleAfter) < t.now()
}

// slotLong is how long a slot for so many documents is: it has room for one at least.
func slotLong(documents int, pace int64) time.Duration {
	return min(shard.Cost(float64(documents), pace), max(slotMost, shard.Cost(1, pace)))
}

// allowance is how many more documents may be sent in the slot of this turn. Slots end by what was
// sent, not by the time: answers may be slow.
func (t *turn) allowance(pace int64) int {
	if t.slot == 0 {
		return 0
	}
	// Rounded, and never less than one: a slot was paid for one document at least.
	n := max(int(shard.Worth(t.slotEnd.Sub(t.slot), pace)+0.5), 1)
	return max(n-t.sent, 0)
}

// portion cuts off what the next request may take of a group, once its time has come: all of it
// where the sink has no budget, otherwise what the pace allows up to now, at least a quarter of a
// second's worth.
func (t *turn) portion(ctx context.Context, group []*document) (part, rest []*document) {
	pace := t.pace()
	if pace == 0 {
		return group, nil
	}
	elapsed := t.now().Sub(t.slot)
	if due := shard.Cost(float64(t.sent), pace); due > elapsed {
		if t.h.Clock.Sleep(ctx, min(due-elapsed, slotMost)) != nil {
			return nil, group
		}
		elapsed = t.now().Sub(t.slot)
	}
	n := max(int(pace/1000/requestsPerSecond), int(shard.Worth(elapsed, pace))-t.sent, 1)
	n = min(n, t.allowance(pace), len(group))
	if ceiling := t.ceiling(); ceiling > 0 {
		n = min(n, max(int(shard.Worth(shard.SendBurst, ceiling)), 1))
		// Before anything is claimed: whoever has to wait then has a lease that others wait for.
		wait := shard.SendAfter(t.sink.row, t.now(), shard.Cost(float64(n), ceiling))
		if t.h.Clock.Sleep(ctx, min(wait, slotMost)) != nil {
			return nil, group
		}
	}
	return group[:n], group[n:]
}

// reserve takes the next slot for so many documents.
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

// spend takes the next stretch of a service's budget, unless more than most is handed out ahead.
// What a lost answer took is nobody's, and passes.
func (t *turn) spend(ctx context.Context, s *service, long, most time.Duration) (end shard.Micros, ok bool) {
	// The second try follows a refusal, whose image says which form it takes.
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

// mayGo counts documents that go to the sink now, where it has a ceiling. False where they do not
// go: others went first, or nobody knows. That is asked last before the request, under the leases:
// whatever was slow before, a service or the table, what goes in any time is bounded.
func (t *turn) mayGo(ctx context.Context, documents int) bool {
	ceiling := t.ceiling()
	if ceiling == 0 {
		return true
	}
	long := shard.Cost(float64(documents), ceiling)
	for range sendTries {
		asked := t.now()
		a := t.ask(ctx, shard.Send(t.h.SinkName, t.sink.row, asked, long))
		if a.unknown() {
			return false
		}
		if t.sink.row = a.row; a.err == nil {
			if t.now().Sub(asked) <= sendLate {
				return true
			}
			continue // its time has passed: what went meanwhile may have filled the time since
		}
		wait := shard.SendAfter(t.sink.row, t.now(), long)
		if wait > slotMost || wait > t.remaining()-sinkMargin-leastWrite || t.h.Clock.Sleep(ctx, wait) != nil {
			return false
		}
	}
	return false
}

// forfeit gives a slot up that is not used.
func (t *turn) forfeit(ctx context.Context) {
	t.yield(ctx, t.state.SlotEnd.Sub(t.state.Slot)) // of none, nothing
	t.state.Slot, t.state.SlotEnd = 0, 0
}

// yield has time of a slot handed out again that was for documents which newer versions replaced.
// Where the sink throttles it is left: who hands it out twice makes up for nothing.
func (t *turn) yield(ctx context.Context, long time.Duration) {
	if t.taken() > 0 || t.ceiling() == 0 || long < yieldLeast || shard.Ahead(t.sink.row, t.now()) < long {
		return
	}
	if a := t.ask(ctx, shard.Yield(t.h.SinkName, t.now(), long)); a.err == nil {
		t.sink.row = a.row
	}
}

// awaitBudget keeps documents until the flight's slot, or until it may get one.
func (t *turn) awaitBudget(docs []*document) {
	until := t.state.Slot.Add(-slotNear)
	if t.state.Slot == 0 {
		// Those that wait long all reach equally far. So they ask at random moments, about as often
		// as what is handed out passes.
		beyond := max(shard.Ahead(t.sink.row, t.now())-t.horizon(), 0)
		until = t.now().Add(beyond + time.Duration(t.h.Jitter()*float64(t.horizon())))
	}
	why := "the sink throttles: its budget is spoken for"
	if t.taken() == 0 {
		why = "maxDocumentsPerSecond: the sink's time is spoken for"
	}
	t.waitAll(docs, until, why)
}
