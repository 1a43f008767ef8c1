// SPDX-License-Identifier: Apache-2.0

package shard

// Act is what index does in this turn with the newest version that a flight holds of a document.
type Act byte

// These are the acts of design section 8, step 1.
const (
	ActClaim Act = iota // try CLAIM
	ActWait             // look again at Until, or leave the flight if Newer allows that
	ActDone             // committed >= k: delete the messages with this version and older versions
	// dead = k, read consistently: the dead letter is stored, so delete only the messages of this
	// version
	ActStored
	ActAdmit     // a newer version is dead or taken back, and this is the next version: ADMIT it
	ActLeave     // the version is not pending, or the row has a newer schema: leave the flight and delete nothing
	ActReadAgain // an eventually consistent read is not enough here, so read consistently
)

// Step is the decision for one version.
type Step struct {
	Act   Act
	Until Micros // for ActWait: when to look again
	// Newer is set for ActWait if a newer version is pending. It is the time when that version
	// should be written. If the message of this version returns from the queue later than Newer,
	// this version may leave the flight undeleted. The row judges the message when it returns (ADR
	// 0028).
	Newer Micros
	Again bool   // for ActClaim: the row shows claimed = k
	Cap   Micros // for ActClaim: the limit for burst_start, see [Bid]
	Why   string // for ActWait and ActLeave: the reason, for people
}

// Hold is a version that a flight holds.
type Hold struct {
	Key      OrderKey
	Admitted Micros // when receive admitted it
}

// View is what index knows when it decides.
type View struct {
	Now        Micros
	Consistent bool // the row was read consistently or is the image of a refused write
	Turn       int  // how many turns this flight has waited for the document
	Backoff    Micros
}

// Decide returns what to do with the newest version that a flight holds of a document. The row may
// be old, because the conditions of the writes protect the document, and not this function.
func Decide(r Row, h Hold, v View, t Timing) Step {
	k := h.Key
	if r.Foreign() {
		return Step{Act: ActLeave, Why: "row has a newer schema"}
	}
	if r.Committed >= k {
		return Step{Act: ActDone}
	}
	if !v.Consistent && (r.Dead == k || r.Took(k) || r.Pending < k) {
		return Step{Act: ActReadAgain}
	}
	if r.Dead == k || r.Took(k) {
		return Step{Act: ActStored}
	}
	if r.Pending < k && r.behind(k) {
		return Step{Act: ActAdmit}
	}
	if r.Pending < k {
		return Step{Act: ActLeave, Why: "nothing admits it any more: redelivery will"}
	}
	cap := v.Now.Add(-t.MaxWait - t.CapGrace)
	if r.Pending > k {
		// Nothing is claimed within minInterval of the last write. If that ends later than the cap,
		// the newest version has its turn at that time, before older ones.
		from := max(r.BurstStart.Add(t.MaxWait), r.paced(v.Now, t))
		late := h.Admitted >= from
		until := from
		if late {
			cap = v.Now.Add(-t.MaxWait)
		} else {
			if r.Owner != "" && r.LeaseUntil < v.Now {
				until = max(until, r.LeaseUntil)
			}
			until = until.Add(t.CapGrace)
		}
		if v.Now < until {
			next := max(min(v.Now.Add(t.Quiet), from), r.paced(v.Now, t)) // by then the newer version is due
			if v.Turn < t.Waits && v.Now < from {
				until = next
			}
			return Step{
				Act: ActWait, Until: until, Newer: next, Why: "a newer version is pending",
			}
		}
	}
	ahead := r.Ahead(v.Now) > 0 && !r.Leased(v.Now)
	switch {
	case r.Spent():
		return Step{Act: ActWait, Until: v.Backoff, Why: "its fences have reached the year 9999: see the runbook, clock-off"}
	case r.leasedRaw(v.Now) && !ahead:
		return Step{Act: ActWait, Until: r.LeaseUntil + 1, Why: "leased"}
	case r.Claimed > k:
		return Step{Act: ActWait, Until: v.Backoff, Why: "a newer version was claimed and may be in the sink"}
	case ahead && r.paced(v.Now, t) > v.Now:
		// The newest fence is not the last write here. The document still has to keep minInterval.
		return Step{Act: ActWait, Until: r.paced(v.Now, t), Why: writtenNow}
	case !ahead && r.LastWrite != 0 && (r.LastWrite >= v.Now || r.LastWrite.Add(t.MinInterval) > v.Now):
		return Step{
			Act: ActWait, Until: max(r.LastWrite+1, r.LastWrite.Add(t.MinInterval)),
			Why: writtenNow,
		}
	}
	return Step{Act: ActClaim, Again: r.Claimed == k, Cap: cap}
}

// paced returns when minInterval after the last write has passed. It returns 0 if a wrong clock
// wrote last_write far ahead.
func (r Row) paced(now Micros, t Timing) Micros {
	if r.LastWrite == 0 || r.LastWrite > now.Add(MaxAhead) {
		return 0
	}
	return r.LastWrite.Add(t.MinInterval)
}

// writtenNow is the reason of a version that waits for minInterval.
const writtenNow = "written less than minInterval ago"

// GroupSize returns how many documents may share a request with a document that has `attempts`
// claims without an answer: all, a quarter, or only itself. So a document that makes requests or
// invocations fail is sent alone in the end, and found.
func GroupSize(attempts int64, all int) int {
	switch {
	case attempts >= 3:
		return 1
	case attempts == 2:
		return max(1, all/4)
	}
	return max(1, all)
}
