// SPDX-License-Identifier: Apache-2.0

package shard

import "time"

// Judgement is what a row says about an event.
type Judgement byte

// The judgements of receive and dlq. A message may be deleted only if its judgement is Done or its
// dead letter is stored.
const (
	Held          Judgement = iota // the event is new, or not yet known to be done: the message is kept
	Stale                          // committed > k: done
	Duplicate                      // committed = k: done
	Parked                         // dead = k: the dead letter is stored, done
	TakenBack                      // an operator's reset took the event back: done
	ClassMismatch                  // the row's versions are of another class: becomes a dead letter
	// the event is older than rows are kept, and the row has no commit: it becomes a dead letter
	TooOld
	Foreign // the row has a newer schema: SQS delivers the message again
)

// Done reports whether the event needs no more work.
func (j Judgement) Done() bool { return j == Stale || j == Duplicate || j == Parked || j == TakenBack }

// String returns the word for the judgement in logs and metrics.
func (j Judgement) String() string {
	return [...]string{
		"held", "stale", "duplicate", "parked", "taken_back", "version_class_mismatch", "too_old_to_judge",
		"unknown_schema",
	}[j]
}

// Judge compares an event with key k with its row. The row must be the image of a refused ADMIT,
// the row after a successful ADMIT, or the result of a consistent read. aged says that the message
// is older than retention - producerLateness.
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
	case r.Took(k):
		return TakenBack
	case r.Dead == k:
		return Parked
	case aged && r.Committed == "":
		return TooOld
	}
	return Held
}

// Mark is what the row that refused a PARK says about the stored dead letter.
type Mark byte

// The states of a row after a refused PARK.
const (
	MarkAgain     Mark = iota // only the form was wrong: PARK again, in the form that this image needs
	MarkThere                 // dead = k: this PARK or an earlier one was applied
	MarkWritten               // committed >= k, or k was taken back: the version no longer needs a dead letter
	MarkOvertaken             // a newer version is pending, and no flight works on k
	MarkLeased                // a flight may be writing k: PARK again after the lease
	MarkForeign               // the row has a newer schema: SQS delivers the message again
)

// Done reports whether the version is finished, so that its stored dead letter is enough.
func (m Mark) Done() bool { return m == MarkThere || m == MarkWritten || m == MarkOvertaken }

// Marked returns what the row that refused a PARK of k says about k.
func Marked(r Row, k OrderKey, now Micros) Mark {
	switch {
	case r.Foreign():
		return MarkForeign
	case r.Committed >= k, r.Took(k):
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
	Waits       int // how many turns wait for quiet before a superseded flight sleeps until the cap
}

// Arrival is what Due needs to know about an event.
type Arrival struct {
	Sent      Micros
	Now       Micros
	Again     bool   // the message is redelivered: once its quiet window has passed, it is due now
	NotBefore Micros // the event is not due before this time; 0 for none
}

// Due returns when the event's document is written. That is `quiet` after the event was sent, at
// most maxWait after the burst began, and never within minInterval of the last write. before is the
// row before ADMIT. after is the row in which the event's version, or a newer one, is pending.
func Due(before, after Row, a Arrival, t Timing) Micros {
	due := a.Sent.Add(t.Quiet)
	if after.BurstStart != 0 {
		due = min(due, after.BurstStart.Add(t.MaxWait))
	}
	leading := t.Leading && before.Pending == "" && (before.LastWrite == 0 || before.LastWrite <= a.Now.Add(-t.Quiet))
	if leading || a.Again && due < a.Now {
		due = a.Now // turns are then counted from now
	}
	if after.LastWrite != 0 && after.LastWrite <= a.Now.Add(MaxAhead) {
		due = max(due, after.LastWrite.Add(t.MinInterval))
	}
	return max(due, a.NotBefore)
}

// MayRedrive reports whether no flight works on version k any more, so that its dead letter may be
// sent again.
func MayRedrive(r Row, k OrderKey, now Micros) bool { return r.Pending != k && !r.leasedRaw(now) }

// leasedRaw reports whether lease_until has not passed yet. The conditions check only this time,
// and not the owner.
func (r Row) leasedRaw(now Micros) bool { return r.LeaseUntil != 0 && r.LeaseUntil >= now }

// Collectable reports whether a row is older than rows are kept. A row without a pending version
// has expires_at, which is retention + ttlExtra after its last write. A row is stuck if its burst
// is older than retention, because SQS has deleted the message of the pending version by then.
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
