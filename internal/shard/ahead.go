// SPDX-License-Identifier: Apache-2.0

package shard

import "time"

// MaxAhead is the longest time by which a time in a row may be ahead of a reader's clock. Up to
// MaxAhead, a claim waits until that time. Only a wrong clock writes a later time. Fences never
// decrease. So the next fences of such a row grow by one microsecond a claim, until the clocks have
// reached the time (ADR 0025).
const MaxAhead = time.Minute

// lastFence is the highest fence of a row from which a claim is made: a moment in the year 9999.
// Sinks store fences as int64, which leaves room for the fences after lastFence.
const lastFence Micros = 253_402_300_799_000_000

// Ahead returns how far the row's fences are ahead of now, or 0 if that is at most MaxAhead.
func (r Row) Ahead(now Micros) time.Duration {
	if last := r.fenced(); last > now.Add(MaxAhead) {
		return last.Sub(now)
	}
	return 0
}

// Spent reports whether the row's fences have reached [lastFence], so that the row cannot be
// claimed any more.
func (r Row) Spent() bool { return r.fenced() >= lastFence }

// fenced returns the newest fence that the row remembers. If the row has no owner, lease_until is a
// fence too, because RELEASE and REJECT leave the fence there.
func (r Row) fenced() Micros {
	if r.Owner == "" {
		return max(r.LastWrite, r.LeaseUntil)
	}
	return r.LastWrite
}

// NextFence returns the fence of a claim that is made now: the time of the claim. If the row's
// fences are more than MaxAhead ahead, it is the newest fence of the row plus one microsecond.
func NextFence(r Row, now Micros) Micros {
	if r.Ahead(now) == 0 {
		return now
	}
	return r.fenced() + 1
}

// FenceAfter returns the first fence from now on that is greater than every fence in the row. It is
// for a claim by a machine whose clock may be behind the clocks of the functions. With the fence of
// [NextFence], such a claim would have to wait.
func FenceAfter(r Row, now Micros) Micros { return max(now, r.fenced()+1) }

// fences returns the clauses that make a new fence greater than all earlier fences, and that
// require that no lease is running. If the fence is later than now, lease_until is a lease only if
// the row has an owner. Only then is lease_until compared with now.
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

// rememberFence stores a fence that is later than the claim's time in last_write, so that the next
// claim finds it. lease_until cannot hold this fence, because lease_until is a time of the clock
// there.
func rememberFence(now, fence Micros) []Action {
	if fence <= now {
		return nil
	}
	return []Action{set(AttrLastWrite, timeValue(fence))}
}
