// SPDX-License-Identifier: Apache-2.0

package shard_test

import (
	"slices"
	"time"

	"github.com/lullhq/lull/internal/shard"
)

// twin is the protocol as design section 5 describes it, in plain ifs and assignments on one row.
// It is slow and obvious, and shares no code with conditions.go. Pointers are attributes that may
// be absent. Times are in microseconds.
type twin struct {
	schema                   int64
	class                    shard.Class
	pending, committed, dead *plainKey
	claimed, claimedWas      *plainKey
	taken                    []plainKey // the versions that an operator took back, in order, without resync runs
	lowest                   bool       // claimed_was = :lowest
	op                       shard.Operation
	burst, lease, last       *int64
	flight                   string
	owner                    string
	attempts, refusals       int64
	lastError                string
	expires                  *int64
}

func at64(n int64) *int64 { return &n }

// older reports whether k is absent or below l.
func older(k *plainKey, l plainKey) bool { return k == nil || k.compare(l) < 0 }

func equal(k *plainKey, l plainKey) bool { return k != nil && k.compare(l) == 0 }

func newer(k *plainKey, l plainKey) bool { return k != nil && k.compare(l) > 0 }

func (r *twin) foreign() bool { return r.schema > 1 }

// past reports whether a time is absent or before now.
func past(t *int64, now int64) bool { return t == nil || *t < now }

func (r *twin) admit(k plainKey, class shard.Class, flight string, now int64, aged bool) bool {
	if r.foreign() || !older(r.pending, k) || !older(r.committed, k) || equal(r.dead, k) || r.took(k) ||
		r.class != 0 && r.class != class || aged && r.committed == nil {
		return false
	}
	r.class, r.pending, r.flight = class, &k, flight
	if r.burst == nil {
		r.burst = &now
	}
	r.expires, r.attempts, r.refusals, r.lastError = nil, 0, 0, ""
	return true
}

func (r *twin) claim(k plainKey, token string, now, until, limit, interval int64, again bool) bool {
	switch {
	case r.foreign(), !older(r.committed, k), equal(r.dead, k), r.took(k):
		return false
	case again && !equal(r.claimed, k), !again && !older(r.claimed, k):
		return false
	case equal(r.pending, k):
	case newer(r.pending, k) && r.burst != nil && *r.burst <= limit:
	default:
		return false
	}
	if !past(r.lease, now) || !past(r.last, now) || r.last != nil && *r.last > now-interval {
		return false
	}
	switch {
	case again && r.claimedWas == nil && !r.lowest:
		r.claimedWas = &k
	case !again && r.claimed == nil:
		r.claimedWas, r.lowest = nil, true
	case !again:
		r.claimedWas, r.lowest = r.claimed, false
	}
	r.owner, r.lease, r.claimed = token, &until, &k
	r.attempts++
	return true
}

func (r *twin) commit(k plainKey, token string, at int64, op shard.Operation, now, expires int64, waiting bool) bool {
	if r.foreign() || r.owner != token || !older(r.committed, k) || newer(r.pending, k) != waiting {
		return false
	}
	r.committed, r.op, r.last = &k, op, at64(max(now, at))
	r.owner, r.lease, r.claimed, r.claimedWas, r.lowest, r.attempts, r.refusals, r.lastError = "", nil, nil, nil, false,
		0, 0, ""
	if waiting {
		r.burst = &now
		return true
	}
	r.settle(expires)
	return true
}

// settle is the part that COMMIT, REJECT and PARK share if no version is pending after them.
func (r *twin) settle(expires int64) {
	r.expires, r.pending, r.burst, r.flight = &expires, nil, nil, ""
}

func (r *twin) release(token string, at int64, reason string, refused bool) bool {
	if r.foreign() || r.owner != token {
		return false
	}
	r.lease, r.lastError, r.owner, r.attempts = &at, reason, "", 0
	if refused {
		r.refusals++
	}
	return true
}

func (r *twin) reject(k plainKey, token string, at int64, reason string, expires int64, waits bool) bool {
	if r.foreign() || r.owner != token || equal(r.pending, k) != waits {
		return false
	}
	r.claimed = r.claimedWas // nil if claimed_was is :lowest
	r.dead, r.lease, r.lastError = &k, &at, reason
	r.owner, r.claimedWas, r.lowest, r.attempts, r.refusals = "", nil, false, 0, 0
	if waits {
		r.settle(expires)
	}
	return true
}

func (r *twin) park(k plainKey, now, expires int64, waits, alone bool) bool {
	if r.foreign() || !older(r.committed, k) || !past(r.lease, now) {
		return false
	}
	if waits {
		if !equal(r.pending, k) {
			return false
		}
		r.dead = &k
		r.settle(expires)
		return true
	}
	if !older(r.pending, k) || alone && r.pending != nil {
		return false
	}
	r.dead = &k
	if alone && r.expires == nil {
		r.expires = &expires
	}
	return true
}

func (r *twin) redrive(k plainKey, now int64) bool {
	if r.foreign() || equal(r.pending, k) || !past(r.lease, now) || !equal(r.dead, k) {
		return false
	}
	r.dead = nil
	return true
}

// event returns a key without its resync run.
func (k plainKey) event() plainKey {
	k.run = shard.Run{}
	return k
}

// isFloor reports whether a reset made the key. The key of an event has a digest.
func (k plainKey) isFloor() bool { return k.digest == shard.Digest{} }

func (r *twin) took(k plainKey) bool {
	return slices.ContainsFunc(r.taken, func(t plainKey) bool { return t.compare(k.event()) == 0 })
}

// takeBack returns all versions that are taken back after a reset to a floor.
func (r *twin) takeBack(floor plainKey) []plainKey {
	all := slices.Clone(r.taken)
	if c := *r.committed; !c.isFloor() && !r.took(c) && c.compare(floor) > 0 {
		all = append(all, c.event())
	}
	all = slices.DeleteFunc(all, func(t plainKey) bool { return t.number.Cmp(floor.number) == 0 })
	slices.SortFunc(all, plainKey.compare)
	for len(all) > 8 && all[0].compare(floor) < 0 {
		all = all[1:]
	}
	return all
}

// sees reports whether committed and taken_back are unchanged since they were read.
func (r *twin) sees(read *twin) bool {
	return (r.committed == nil) == (read.committed == nil) &&
		(r.committed == nil || equal(r.committed, *read.committed)) &&
		slices.EqualFunc(r.taken, read.taken, func(a, b plainKey) bool { return a.compare(b) == 0 })
}

func (r *twin) reset(read *twin, floor plainKey, now int64) bool {
	if r.foreign() || !r.sees(read) || !newer(r.committed, floor) || r.pending != nil || r.claimed != nil ||
		!past(r.lease, now) {
		return false
	}
	if (r.dead == nil) != (read.dead == nil) || r.dead != nil && !equal(r.dead, *read.dead) {
		return false
	}
	r.taken = r.takeBack(floor)
	if r.dead != nil && older(r.dead, *r.committed) {
		r.dead = nil
	}
	r.committed = &floor
	return true
}

func (r *twin) giveBack(read *twin, floor plainKey) bool {
	if r.foreign() || !r.sees(read) {
		return false
	}
	r.taken = slices.DeleteFunc(slices.Clone(r.taken), func(t plainKey) bool { return t.number.Cmp(floor.number) == 0 })
	return true
}

// row returns the twin as a row of the package shard, to be compared field by field. The packed
// keys are made from their parts.
func (r *twin) row(doc shard.DocID, packed map[string]shard.OrderKey) shard.Row {
	key := func(k *plainKey) shard.OrderKey {
		if k == nil {
			return ""
		}
		return packed[k.name()]
	}
	micros := func(t *int64) shard.Micros {
		if t == nil {
			return 0
		}
		return shard.Micros(*t)
	}
	out := shard.Row{
		Doc: doc, Schema: r.schema, VersionClass: r.class, Pending: key(r.pending), Committed: key(r.committed),
		CommittedOp: r.op,
		Claimed:     key(r.claimed), ClaimedWas: key(r.claimedWas), Dead: key(r.dead), BurstStart: micros(r.burst),
		Flight: r.flight,
		Owner:  shard.Token(r.owner), LeaseUntil: micros(r.lease), LastWrite: micros(r.last), Attempts: r.attempts,
		Refusals: r.refusals, LastError: r.lastError,
	}
	var taken []shard.OrderKey
	for _, k := range r.taken {
		taken = append(taken, packed[k.name()])
	}
	out.TakenBack = shard.KeySetOf(taken...)
	if r.lowest {
		out.ClaimedWas = shard.Lowest
	}
	if r.expires != nil {
		out.ExpiresAt = *r.expires
	}
	return out
}

// name identifies a key in the twin.
func (k plainKey) name() string {
	return k.number.String() + "@" + time.UnixMicro(k.micros).UTC().Format(time.RFC3339Nano) + "/" +
		string(k.digest[:]) + string(k.run[:])
}
