// SPDX-License-Identifier: Apache-2.0

package model

// This file states every condition and every update of design section 5 a second time, as pure
// functions over a row. conditions_test.go compares them with the writes of internal/shard on every
// small row. Changes of docs/model.md that concern a row are switches of Rules, and this file
// implements them.

// Row is the shard row of the document. None and 0 mean absent attributes. Lease says that
// lease_until is in the future on every clock. LeaseUntil is the rank of lease_until among the
// times. LeaseUntil matters only if clocks are modelled.
type Row struct {
	Exists     bool
	Pending    Key
	Committed  Key
	Floor      bool // a reset set Committed: all versions above it are new again, and no later commit happened
	Claimed    Key
	ClaimedWas Key
	Dead       Key
	Taken      KeySet // versions that resets withdrew
	Owner      Token
	Lease      bool
	LeaseUntil Clock
	LastWrite  Clock
	Refusals   uint8
	Expires    bool
	Content    Key // the committed version whose bytes the digest in `content` belongs to
	Bytes      Key // the bytes of Content: the version, or the state of the source loaded for it
}

// admits is ADMIT's condition for k. aged means older than retention - producerLateness.
func (r Row) admits(rl Rules, k Key, aged bool) bool {
	if aged && !r.canJudgeAge(rl) {
		return false
	}
	return r.Pending < k && r.Committed < k && r.Dead != k && (!r.Taken.Has(k) || rl.AdmitIgnoresTaken)
}

// canJudgeAge reports whether the row can tell if an old message is superseded. Only a commit can
// tell that.
func (r Row) canJudgeAge(rl Rules) bool {
	switch {
	case rl.NoAgeGuard:
		return true
	case rl.AgeGuardByRow:
		return r.Exists
	}
	return r.Committed != None
}

func (r Row) admit(k Key) Row {
	r.Exists = true
	r.Pending = k
	r.Expires = false
	r.Refusals = 0
	return r
}

// claims is the condition of CLAIM, or of CLAIM again. capPast means burst_start <= :cap.
func (r Row) claims(rl Rules, k Key, again, capPast bool, now Clock) bool {
	switch {
	case r.Committed >= k, r.Dead == k, r.withdrawn(rl, k):
		return false
	case again && r.Claimed != k:
		return false
	case !again && r.Claimed >= k && !(rl.CapIgnoresClaimed && r.Pending > k):
		return false
	case r.Pending < k, r.Pending > k && !capPast:
		return false
	case rl.NoLease:
		return true
	}
	return !r.Lease && r.LeaseUntil < now && r.LastWrite < now
}

// withdrawn reports whether index knows that a reset withdrew k.
func (r Row) withdrawn(rl Rules, k Key) bool { return r.Taken.Has(k) && !rl.IndexIgnoresTaken }

func (r Row) claim(rl Rules, k Key, again bool, t Token, now Clock) Row {
	unanswered := r.Owner != 0
	r.Owner, r.Lease, r.LeaseUntil = t, true, now
	if !rl.ClaimKeepsContent {
		r.Content, r.Bytes = None, None
	}
	if rl.RefusalsOfVersion && !again {
		r.Refusals = 0
	}
	switch {
	case again && rl.BlockAfterUnknown && unanswered:
		r.ClaimedWas = k
	case again && rl.ClaimedWasOnlyAtFirst:
	case again && r.ClaimedWas == None:
		r.ClaimedWas = k
	case again:
	case r.Claimed == None:
		r.ClaimedWas = Lowest
	default:
		r.ClaimedWas = r.Claimed
	}
	r.Claimed = k
	return r
}

func (r Row) commits(rl Rules, k Key, t Token) bool {
	return (r.Owner == t || rl.CommitWithoutOwner) && r.Committed < k
}

// commit is COMMIT. bytes are the bytes that content will identify; If bytes is None, the row
// stores no content.
func (r Row) commit(rl Rules, k Key, claimed Clock, bytes Key) Row {
	r.Committed, r.Floor = k, false
	r.Content, r.Bytes = None, None
	if bytes != None {
		r.Content, r.Bytes = k, bytes
	}
	r.LastWrite = claimed
	r.Owner, r.Lease, r.LeaseUntil = 0, false, 0
	r.Claimed, r.ClaimedWas = None, None
	r.Refusals = 0
	if r.Pending <= k && !rl.CommitAlwaysNewer {
		r = r.settled()
	}
	return r
}

// settled returns the row without a pending version. A row without a pending version may expire.
func (r Row) settled() Row {
	r.Pending, r.Expires = None, true
	return r
}

// unclaimed returns the row with `claimed` as it was before the claim, or without `claimed`.
func (r Row) unclaimed() Row {
	if r.Claimed = r.ClaimedWas; r.Claimed == Lowest {
		r.Claimed = None
	}
	r.ClaimedWas = None
	return r
}

// keeps is KEEP's condition for k: the sink already shows the bytes of k, under the version was.
// same reports whether two versions have the same bytes.
func (r Row) keeps(rl Rules, k, was Key, capPast bool, same func(a, b Key) bool) bool {
	bytes := r.shownBytes(rl)
	return r.Committed == was && was < k && bytes != None && same(bytes, k) &&
		(r.Claimed == None || rl.KeepIgnoresClaimed) && !r.Lease && r.Dead != k && !r.withdrawn(rl, k) &&
		(r.Pending == k || r.Pending > k && capPast)
}

// shownBytes returns the bytes that the sink shows according to the row, or None.
func (r Row) shownBytes(rl Rules) Key {
	if r.Content == r.Committed || rl.ContentUnbound {
		return r.Bytes
	}
	return None
}

// bytesBeforeClaim returns the bytes that the sink shows according to the row before CLAIM, or
// None. The row says so only if no write was under way.
func (r Row) bytesBeforeClaim(rl Rules) Key {
	if r.Claimed == None || rl.ImageIgnoresClaimed {
		return r.shownBytes(rl)
	}
	return None
}

// keep commits k without a write to the sink.
func (r Row) keep(k Key) Row {
	r.Committed, r.Floor, r.Content, r.Bytes = k, false, k, k
	if r.Pending == k {
		r = r.settled()
	}
	return r
}

func (r Row) releases(t Token) bool { return r.Owner == t }

func (r Row) release(rl Rules, claimed Clock, refused, first bool) Row {
	r.Owner, r.Lease, r.LeaseUntil = 0, false, claimed
	if rl.ReleaseErasesLease {
		r.LeaseUntil = 0
	}
	if rl.ReleaseResetsClaimed {
		r.Claimed = None
	}
	if first && rl.ReleaseRestores {
		r = r.unclaimed()
	}
	if refused {
		r.Refusals++
	}
	return r
}

// rejects is REJECT's condition. An update that copies an absent attribute fails like a refused
// condition.
func (r Row) rejects(rl Rules, t Token) bool {
	if rl.ClaimedWasOnlyAtFirst && r.ClaimedWas == None {
		return false
	}
	return r.Owner == t
}

func (r Row) reject(rl Rules, k Key, claimed Clock) Row {
	r = r.unclaimed()
	r.Dead = k
	r.Owner, r.Lease, r.LeaseUntil = 0, false, claimed
	r.Refusals = 0
	if r.Pending == k && !rl.DeadStaysPending {
		r = r.settled()
	}
	return r
}

// parks is PARK's condition, in its first form (k is pending) or in its second form (k is newer
// than pending).
func (r Row) parks(k Key, second bool) bool {
	if r.Committed >= k || r.Lease {
		return false
	}
	if second {
		return r.Pending < k
	}
	return r.Pending == k
}

// park sets dead. If the second form creates the row, or finds the row without pending, the row
// expires.
func (r Row) park(rl Rules, k Key, second bool) Row {
	r.Exists = true
	r.Dead = k
	switch {
	case second:
		r.Expires = r.Expires || r.Pending == None
	case !rl.DeadStaysPending:
		r = r.settled()
	}
	return r
}

// redrives is the condition of REDRIVE: k is not pending, and the row has no lease.
func (r Row) redrives(rl Rules, k Key) bool {
	return rl.RedriveAtAnyTime || r.Pending != k && !r.Lease
}

func (r Row) redrive(k Key) Row {
	if r.Dead == k {
		r.Dead = None
	}
	return r
}

// raises is RAISE's condition for a copy in the sink that was read after the row was read.
func (r Row) raises(rl Rules, read Row, c Sink) bool {
	if r.Committed >= c.Content || r.Lease || r.Taken.Has(c.Content) {
		return false
	}
	return rl.RaiseBlindly || r.Pending == read.Pending && r.Claimed == read.Claimed && r.Owner == read.Owner &&
		r.LeaseUntil == read.LeaseUntil && r.LastWrite == read.LastWrite
}

func (r Row) raise(read Row, c Sink) Row {
	r.Exists = true
	r.Committed, r.Floor = c.Content, false
	r.Content, r.Bytes = None, None
	r.LastWrite = max(read.LastWrite, read.LeaseUntil, c.Fence)
	r.Owner, r.Lease, r.LeaseUntil, r.Refusals = 0, false, 0, 0
	if read.Claimed <= c.Content {
		r.Claimed, r.ClaimedWas = None, None
	}
	if read.Pending <= c.Content {
		r = r.settled()
	}
	return r
}

// resets is RESET's condition if the operator saw version seen committed.
func (r Row) resets(rl Rules, seen Key) bool {
	switch {
	case r.Committed == None, r.Committed != seen && !rl.ResetBlindly:
		return false
	case rl.ResetUnderLease:
		return true
	}
	return r.Pending == None && r.Claimed == None && !r.Lease
}

// reset makes every version above to new again, except the versions that resets withdrew. The time
// of the last write stays, so that the next fence is greater.
func (r Row) reset(rl Rules, to Key) Row {
	if rl.ResetDeletes {
		return Row{}
	}
	if r.Dead < r.Committed || r.Floor && r.Dead == r.Committed {
		r.Dead = None // its dead letter was covered, and may be gone
	}
	switch {
	case rl.ResetMarksDead:
		r.Dead = r.Committed
	case rl.ResetRemembersOne:
		r.Taken = Keys(r.Committed)
	case !r.Floor:
		r.Taken |= Keys(r.Committed)
	}
	if rl.ResetDropsBelow {
		r.Taken &^= 1<<(to+1) - 1
	}
	r.Committed, r.Floor = to, to != None
	r.Content, r.Bytes = None, None
	if rl.ResetUnderLease {
		r.Pending, r.Claimed, r.ClaimedWas = None, None, None
		r.Owner, r.Lease = 0, false
	}
	return r
}

// version returns the committed version, or None if a reset set it.
func (r Row) version() Key {
	if r.Floor {
		return None
	}
	return r.Committed
}

// collectable is the part of prune's condition that does not concern the row's age.
func (r Row) collectable() bool {
	return r.Exists && (r.Pending == None || r.Pending <= r.Committed) && !r.Lease
}
