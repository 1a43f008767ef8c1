package shard

import "time"

// MaxAhead is how far a time in a row may lie ahead of a reader's clock and still be waited for. A
// time further ahead was written by a clock that was wrong. Fences never go back, so such a row
// goes on from there, by a microsecond a claim, until the clocks have caught up (ADR 0025).
const MaxAhead = time.Minute

// lastFence is the last moment that a fence may name, in the year 9999. It leaves room for all the
// fences that follow one in an int64, which is what sinks take.
const lastFence Micros = 253_402_300_799_000_000

// Ahead reports how far the row's fences lie ahead of now, 0 where that is within MaxAhead.
func (r Row) Ahead(now Micros) time.Duration {
	if last := r.fenced(); last > now.Add(MaxAhead) {
		return last.Sub(now)
	}
	return 0
}

// Spent reports whether the row's fences have reached their end: nothing can be claimed any more.
func (r Row) Spent() bool { return r.fenced() >= lastFence }

// fenced is the newest fence that the row remembers. lease_until is one where nobody has the lease:
// RELEASE and REJECT leave it there.
func (r Row) fenced() Micros {
	if r.Owner == "" {
		return max(r.LastWrite, r.LeaseUntil)
	}
	return r.LastWrite
}

// NextFence is the fence of a claim that is made now: its time, or the next after the row's where
// those lie too far ahead to wait for.
func NextFence(r Row, now Micros) Micros {
	if r.Ahead(now) == 0 {
		return now
	}
	return r.fenced() + 1
}

// FenceAfter is the first fence from now on that is greater than every one that the row shows. It
// is for a claim by a clock that nobody compares with the functions': [NextFence] waits where the
// row is ahead of it.
func FenceAfter(r Row, now Micros) Micros { return max(now, r.fenced()+1) }

// fences are the clauses by which a new fence is greater than all before it, and nobody has the
// lease. Where the fence is not the claim's time, lease_until is compared with the time only where
// it is a lease.
func fences(now, fence Micros) []Clause {
	if fence <= now {
		return []Clause{
			absentOr(AttrLeaseUntil, Less, timeValue(now)),
			absentOr(AttrLastWrite, Less, timeValue(now)),
		}
	}
	return []Clause{
		{{AttrOwner, Absent, Value{}}, {AttrLeaseUntil, Less, timeValue(now)}},
		absentOr(AttrLeaseUntil, Less, timeValue(fence)),
		absentOr(AttrLastWrite, Less, timeValue(fence)),
	}
}

// remembered keeps a fence that is not the claim's time where the next claim finds it: its
// lease_until is a time of the clock, and says nothing of the fence.
func remembered(now, fence Micros) []Action {
	if fence <= now {
		return nil
	}
	return []Action{set(AttrLastWrite, timeValue(fence))}
}
