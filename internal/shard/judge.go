package shard

import "time"

// Judgement says what a row makes of an event.
type Judgement byte

// The judgements of receive and dlq. Only Done ones and stored dead letters let a message go.
const (
	Held          Judgement = iota // new, or not yet known to be done: the message is kept
	Stale                          // committed > k: done
	Duplicate                      // committed = k: done
	Parked                         // dead = k: the dead letter is stored, done
	ClassMismatch                  // the row's versions are of another class: a dead letter
	TooOld                         // older than rows are kept, and nothing committed to judge by: a dead letter
	Foreign                        // the row has a newer schema: left to redelivery
)

// Done reports whether the judgement alone completes the event.
func (j Judgement) Done() bool { return j == Stale || j == Duplicate || j == Parked }

// String is the word used in logs and metrics.
func (j Judgement) String() string {
	return [...]string{
		"held", "stale", "duplicate", "parked", "version_class_mismatch", "too_old_to_judge",
		"unknown_schema",
	}[j]
}

// Judge says what the row makes of the event with key k. The row must be the image of a refused
// ADMIT, the row after a successful one, or read consistently. aged says that the message is older
// than retention - producerLateness.
func Judge(r Row, k OrderKey, class Class, aged bool) Judgement {
	switch {
	case r.Foreign():
		return Foreign
	case r.VersionClass != 0 && r.VersionClass != class:
		return ClassMismatch
	case r.Committed == k:
		return Duplicate
	case r.Committed > k:
		return Stale
	case r.Dead == k:
		return Parked
	case aged && r.Committed == "":
		return TooOld
	}
	return Held
}

// Mark says what a row that refused a PARK makes of the dead letter that is stored.
type Mark byte

// The states of a row after a refused PARK.
const (
	MarkAgain     Mark = iota // only the form was wrong: PARK again, in the form of this image
	MarkThere                 // dead = k: this very PARK or an earlier one did it
	MarkWritten               // committed >= k: the dead letter is superseded
	MarkOvertaken             // a newer version is pending, and nothing waits for this one
	MarkLeased                // somebody may be writing: not before the lease ends
	MarkForeign               // the row has a newer schema: left to redelivery
)

// Done reports whether nothing waits for the version any more, so that its stored dead letter is
// enough.
func (m Mark) Done() bool { return m == MarkThere || m == MarkWritten || m == MarkOvertaken }

// Marked reads the image of a refused PARK of k.
func Marked(r Row, k OrderKey, now Micros) Mark {
	switch {
	case r.Foreign():
		return MarkForeign
	case r.Committed >= k:
		return MarkWritten
	case r.Dead == k:
		return MarkThere
	case r.Pending > k:
		return MarkOvertaken
	case r.leasedRaw(now):
		return MarkLeased
	}
	return MarkAgain
}

// Timing holds the settings that decide when a document is due (docs/settings.md, debounce).
type Timing struct {
	Quiet       time.Duration
	MaxWait     time.Duration
	CapGrace    time.Duration
	MinInterval time.Duration
	Leading     bool
	Waits       int // turns that wait for quiet before a superseded flight sleeps to the cap
}

// Arrival is what Due needs to know of an event.
type Arrival struct {
	Sent      Micros
	Now       Micros
	Again     bool   // redelivered: what is over of its quiet window is over
	NotBefore Micros // 0 for none
}

// Due says when the event's document is written: `quiet` after the event was sent, at most maxWait
// after the burst began, never within minInterval of the last write. before is the row before
// ADMIT, after the row with the event's version (or a newer one) pending.
func Due(before, after Row, a Arrival, t Timing) Micros {
	due := a.Sent.Add(t.Quiet)
	if after.BurstStart != 0 {
		due = min(due, after.BurstStart.Add(t.MaxWait))
	}
	leading := t.Leading && before.Pending == "" && (before.LastWrite == 0 || before.LastWrite <= a.Now.Add(-t.Quiet))
	if leading || a.Again && due < a.Now {
		due = a.Now // turns that wait are counted from when it is due
	}
	if after.LastWrite != 0 && after.LastWrite <= a.Now.Add(MaxAhead) {
		due = max(due, after.LastWrite.Add(t.MinInterval))
	}
	return max(due, a.NotBefore)
}

// MayRedrive reports whether nobody works on version k any more, so that its dead letter may be
// sent again.
func MayRedrive(r Row, k OrderKey, now Micros) bool { return r.Pending != k && !r.leasedRaw(now) }

// leasedRaw is the lease as the conditions see it: lease_until alone.
func (r Row) leasedRaw(now Micros) bool { return r.LeaseUntil != 0 && r.LeaseUntil >= now }

// Collectable says whether a row is older than rows are kept. settled rows carry expires_at, which
// lies retention + ttlExtra after their last write; a row that waits longer than retention for a
// version nobody has any more is stuck.
func Collectable(r Row, now Micros, retention, ttlExtra time.Duration) (collect, stuck bool) {
	if !r.Doc.IsDocument() || r.Foreign() || r.Leased(now) {
		return false, false
	}
	if r.Pending == "" || r.Pending <= r.Committed {
		return r.ExpiresAt != 0 && now.Time().Unix() >= r.ExpiresAt-int64(ttlExtra/time.Second), false
	}
	old := r.BurstStart != 0 && r.BurstStart.Add(retention) <= now
	return old, old
}
