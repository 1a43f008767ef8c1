package shard

// Act is what index does with the newest held version of a document in this turn.
type Act byte

// The acts of design section 8, step 1.
const (
	ActClaim Act = iota // try CLAIM
	ActWait             // wake at Until; or leave the flight, where Newer says so
	ActDone             // committed >= k: delete the messages with this and older versions
	// dead = k, read consistently: its dead letter is stored; delete this version's messages only
	ActStored
	ActAdmit     // a newer version died, and this is the next: ADMIT it here
	ActLeave     // nobody admitted it, or a newer schema: leave the flight without deleting
	ActReadAgain // what the row shows must not be believed from an eventually consistent read
)

// Step is the decision for one version.
type Step struct {
	Act   Act
	Until Micros // ActWait: when to look again
	// Newer says of ActWait by when a newer version is due, 0 where none is pending. It should be
	// written then. Where this one's message returns by itself later, this one may leave the flight
	// undeleted: the row judges it when it returns (ADR 0028).
	Newer Micros
	Again bool   // ActClaim: the row shows claimed = k
	Cap   Micros // ActClaim: the :cap of the condition
	Why   string // ActWait, ActLeave: in the words of the design, for people
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

// Decide says what to do with the newest version that a flight holds of a document. It steers; the
// conditions guard.
func Decide(r Row, h Hold, v View, t Timing) Step {
	k := h.Key
	if r.Foreign() {
		return Step{Act: ActLeave, Why: "row has a newer schema"}
	}
	if r.Committed >= k {
		return Step{Act: ActDone}
	}
	if !v.Consistent && (r.Dead == k || r.Pending < k) {
		return Step{Act: ActReadAgain}
	}
	if r.Dead == k {
		return Step{Act: ActStored}
	}
	if r.Pending < k && r.Dead > k {
		return Step{Act: ActAdmit}
	}
	if r.Pending < k {
		return Step{Act: ActLeave, Why: "nothing admits it any more: redelivery will"}
	}
	cap := v.Now.Add(-t.MaxWait - t.CapGrace)
	if r.Pending > k {
		// Nothing is claimed within minInterval of the last write. Where that ends later than the cap,
		// the newest has its turn then, and first.
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
			next := max(min(v.Now.Add(t.Quiet), from), r.paced(v.Now, t)) // by then a newer one is due
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
		// What remains of the pace is the last write, where that is not what lies ahead.
		return Step{Act: ActWait, Until: r.paced(v.Now, t), Why: writtenNow}
	case !ahead && r.LastWrite != 0 && (r.LastWrite >= v.Now || r.LastWrite.Add(t.MinInterval) > v.Now):
		return Step{
			Act: ActWait, Until: max(r.LastWrite+1, r.LastWrite.Add(t.MinInterval)),
			Why: writtenNow,
		}
	}
	return Step{Act: ActClaim, Again: r.Claimed == k, Cap: cap}
}

// paced is when the document may be written again by its pace: minInterval after the last write,
// unless that write lies so far ahead that a wrong clock made it.
func (r Row) paced(now Micros, t Timing) Micros {
	if r.LastWrite == 0 || r.LastWrite > now.Add(MaxAhead) {
		return 0
	}
	return r.LastWrite.Add(t.MinInterval)
}

// writtenNow is why a version waits, in two places.
const writtenNow = "written less than minInterval ago"

// GroupSize says how many documents may share a request with one whose claims got no answer
// `attempts` times: all, a quarter, none. So a document that kills requests or invocations is found
// alone.
func GroupSize(attempts int64, all int) int {
	switch {
	case attempts >= 3:
		return 1
	case attempts == 2:
		return max(1, all/4)
	}
	return max(1, all)
}
