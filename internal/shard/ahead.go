package shard

import "time"

// MaxAhead is how far ahead of a reader's clock a time in a row is believed, so that a claim waits
// for it. Only a wrong clock writes a later time. Fences never decrease. So the next fences of such
// a row grow by one microsecond a claim, until the clocks have caught up (ADR 0025).
const MaxAhead = time.Minute

// lastFence is the highest fence from which a claim is made: a moment in the year 9999. Sinks take
// an int64, which leaves room for the fences after it.
const lastFence Micros = 253_402_300_799_000_000

// Ahead returns how far the row's fences lie ahead of now, or 0 if that is at most MaxAhead.
func (r Row) Ahead(now Micros) time.Duration {
	if last := r.fenced(); last > now.Add(MaxAhead) {
		return last.Sub(now)
	}
	return 0
}

// Spent reports whether the row's fences have reached [lastFence]: it cannot be claimed any more.
func (r Row) Spent() bool { return r.fenced() >= lastFence }

// fenced returns the newest fence that the row remembers. If the row has no owner, lease_until is a
// fence too: RELEASE and REJECT leave it there.
func (r Row) fenced() Micros {
	if r.Owner == "" {
		return max(r.LastWrite, r.LeaseUntil)
	}
	return r.LastWrite
}

// NextFence returns the fence of a claim that is made now: the time of the claim. If the row's
// fences lie more than MaxAhead ahead, it is the row's newest fence plus one microsecond.
func NextFence(r Row, now Micros) Micros {
	if r.Ahead(now) == 0 {
		return now
	}
	return r.fenced() + 1
}

// FenceAfter returns the first fence from now on that is greater than every fence in the row. It is
// for a claim by a machine whose clock may be behind the clocks of the functions. With [NextFence],
// such a claim would have to wait.
func FenceAfter(r Row, now Micros) Micros { return max(now, r.fenced()+1) }

// fences returns the clauses that make a new fence greater than all fences before it, and that
// demand that no lease is running. If the fence is later than now, lease_until is a lease only if
// the row has an owner. Only then is it compared with now.
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

// remembered stores a fence that is later than the claim's time in last_write, so that the next
// claim finds it. lease_until cannot hold it: there it is a time of the clock.
func remembered(now, fence Micros) []Action {
	if fence <= now {
		return nil
	}
	return []Action{set(AttrLastWrite, timeValue(fence))}
}
