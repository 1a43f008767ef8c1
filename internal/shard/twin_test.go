package shard_test

import (
	"time"

	"github.com/lullhq/lull/internal/shard"
)

// twin is a row and the protocol as design section 5 words it, in ifs and assignments: slow,
// obvious, and sharing no line with conditions.go. Pointers are attributes that may be absent.
// Times are microseconds.
type twin struct {
	schema                   int64
	class                    shard.Class
	pending, committed, dead *plainKey
	claimed, claimedWas      *plainKey
	lowest                   bool // claimed_was = :lowest
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
	if r.foreign() || !older(r.pending, k) || !older(r.committed, k) || equal(r.dead, k) || r.class != 0 &&
		r.class != class || aged && r.committed == nil {
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
	case r.foreign(), !older(r.committed, k), equal(r.dead, k):
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

// settle is what COMMIT, REJECT and PARK have in common where nothing waits any more.
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
	r.claimed = r.claimedWas // nil where it was :lowest
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
	if !older(r.pending, k) {
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

// row is the twin in the model's form, to be compared field by field. The packed keys come from
// their parts.
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
	if r.lowest {
		out.ClaimedWas = shard.Lowest
	}
	if r.expires != nil {
		out.ExpiresAt = *r.expires
	}
	return out
}

// name tells a twin's keys apart.
func (k plainKey) name() string {
	return k.number.String() + "@" + time.UnixMicro(k.micros).UTC().Format(time.RFC3339Nano) + "/" +
		string(k.digest[:]) + string(k.run[:])
}
