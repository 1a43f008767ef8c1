// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"time"
	"unicode/utf8"
)

// This file has the conditions of the writes of a document's row (design section 5). The writes of
// operators are in reset.go and repair.go. A condition is a list of clauses that must all hold.
// CLAIM's "pending = k or (pending > k and burst_start <= cap)" is written as two clauses, which
// mean the same: (pending >= k) and (pending = k or burst_start <= cap).

// MaxLastError is the greatest length of last_error in bytes. It is short, because each write of a
// row above 1 KB costs twice as much.
const MaxLastError = 200

// known is the clause that requires a schema which this code understands. All writes have this
// clause.
func known() Clause { return knownSchema }

var knownSchema = absentOr(AttrSchema, AtMost, numberValue(SchemaVersion))

func absentOr(a Attr, op Op, v Value) Clause { return Clause{{a, Absent, Value{}}, {a, op, v}} }
func must(a Attr, op Op, v Value) Clause     { return Clause{{a, op, v}} }
func set(a Attr, v Value) Action             { return Action{Verb: Set, Attr: a, Val: v} }

func remove(attrs ...Attr) []Action {
	out := make([]Action, len(attrs))
	for i, a := range attrs {
		out[i] = Action{Verb: Remove, Attr: a}
	}
	return out
}

// endBurst ends a burst, because no version is pending any more. The row gets a time to expire, in
// seconds, in case prune does not delete the row.
func endBurst(expires int64) []Action {
	expiry := set(AttrExpiresAt, numberValue(expires))
	return append([]Action{expiry}, remove(AttrPending, AttrBurstStart, AttrFlight)...)
}

// Admission is what ADMIT needs to know.
type Admission struct {
	Doc    DocID
	Key    OrderKey
	Class  Class
	Flight string
	Group  string // the message group, a tenant; if empty, the row keeps its group
	Now    Micros
	Aged   bool // the message is older than retention - producerLateness, so only a row with a commit can judge it
}

// Admit makes k the pending version. It is refused if k is old, stored as a dead letter, taken back
// by an operator, or of another class.
func Admit(a Admission) Write {
	k := keyValue(a.Key)
	class := textValue(string(rune(a.Class)))
	w := Write{Transition: ADMIT, Doc: a.Doc, Cond: []Clause{
		known(),
		absentOr(AttrPending, Less, k),
		absentOr(AttrCommitted, Less, k),
		absentOr(AttrDead, NotEqual, k),
		notTaken(a.Key),
		absentOr(AttrVersionClass, Equal, class),
	}}
	if a.Aged {
		w.Cond = append(w.Cond, must(AttrCommitted, Exists, Value{}))
	}
	w.Update = append(make([]Action, 0, 9), // capacity for all actions below
		set(AttrVersionClass, class),
		set(AttrPending, k),
		Action{Verb: SetIfAbsent, Attr: AttrBurstStart, Val: timeValue(a.Now)},
		set(AttrFlight, textValue(a.Flight)))
	w.Update = append(w.Update, remove(AttrExpiresAt, AttrAttempts, AttrRefusals, AttrLastError)...)
	if a.Group != "" {
		w.Update = append(w.Update, set(AttrGroup, textValue(a.Group)))
	}
	return w
}

// Bid is what CLAIM needs to know.
type Bid struct {
	Doc         DocID
	Key         OrderKey
	Token       Token  // a new token for this claim
	Now         Micros // the time of the claim
	Fence       Micros // result of NextFence; 0 for the time of the claim
	Until       Micros // end of the lease: >= the invocation's hard deadline + guard + applyDelay
	Cap         Micros // a version older than the pending one may be claimed if the burst began by this time
	MinInterval time.Duration
	Again       bool // the row shows claimed = k: an earlier claim of the same version was not committed
}

// Claim takes the lease for writing k. If the row refuses a CLAIM, [OwnClaim] says whether an
// earlier try of this claim was applied.
func Claim(b Bid) Write {
	k := keyValue(b.Key)
	claimed, was := absentOr(AttrClaimed, Less, k), Action{
		Verb: SetIfAbsent, Attr: AttrClaimedWas, From: AttrClaimed, Val: keyValue(Lowest),
	}
	form := CLAIM
	if b.Again {
		form = CLAIMAgain
		claimed, was = must(AttrClaimed, Equal, k), Action{Verb: SetIfAbsent, Attr: AttrClaimedWas, Val: k}
	}
	paced := absentOr(AttrLastWrite, AtMost, timeValue(b.Now.Add(-b.MinInterval)))
	if b.Fence > b.Now {
		paced = append(paced, Term{AttrLastWrite, Greater, timeValue(b.Now.Add(MaxAhead))})
	}
	// capacity for the fences, too
	return Write{Transition: form, Doc: b.Doc, Cond: append(append(make([]Clause, 0, 11),
		known(),
		absentOr(AttrCommitted, Less, k),
		claimed,
		absentOr(AttrDead, NotEqual, k),
		notTaken(b.Key),
		must(AttrPending, AtLeast, k),
		Clause{{AttrPending, Equal, k}, {AttrBurstStart, AtMost, timeValue(b.Cap)}},
		paced,
	), fences(b.Now, b.Fence)...), Update: append([]Action{
		set(AttrOwner, textValue(string(b.Token))),
		set(AttrLeaseUntil, timeValue(b.Until)),
		was,
		set(AttrClaimed, k),
		{Verb: Add, Attr: AttrAttempts, Val: numberValue(1)},
		remove(AttrContent)[0], // from now on the sink may have other bytes
	}, rememberFence(b.Now, b.Fence)...)}
}

// Lease returns the lease that the claim gets if it is applied.
func (b Bid) Lease() Lease {
	return Lease{Doc: b.Doc, Key: b.Key, Token: b.Token, At: max(b.Now, b.Fence), Ahead: b.Fence > b.Now}
}

// Lease is a claim that was granted. It has what COMMIT, RELEASE and REJECT need to know about the
// claim.
type Lease struct {
	Doc   DocID
	Key   OrderKey
	Token Token
	At    Micros // the fence: the claim's time, unless Ahead
	Ahead bool   // the row's fences are ahead of the clock, so last_write holds the fence of this claim

	// content of the document written under this lease, set by the writer; empty if KEEP must not
	// recognise the document
	Content Content
}

// Commit makes k the committed version. The newest image of the row decides the form of the write.
// If a newer version is pending, its burst starts now. Otherwise the burst has ended, and the row
// gets a time to expire, in seconds.
func Commit(l Lease, op Operation, now Micros, expires int64, image Row) Write {
	k := keyValue(l.Key)
	w := Write{Transition: COMMIT, Doc: l.Doc, Cond: []Clause{
		known(),
		must(AttrOwner, Equal, textValue(string(l.Token))),
		absentOr(AttrCommitted, Less, k),
	}, Update: append(make([]Action, 0, 15), // capacity for all actions below
		set(AttrCommitted, k),
		set(AttrCommittedOp, textValue(string(op))),
		set(AttrLastWrite, timeValue(max(now, l.At))))}
	w.Update = append(w.Update,
		remove(AttrOwner, AttrLeaseUntil, AttrClaimed, AttrClaimedWas, AttrAttempts, AttrRefusals, AttrLastError)...)
	if op == Put && l.Content != "" {
		w.Update = append(w.Update, set(AttrContent, contentValue(l.Content)))
	} else {
		w.Update = append(w.Update, remove(AttrContent)...)
	}
	if image.Pending > l.Key {
		w.Transition = COMMITNewerWaiting
		w.Cond = append(w.Cond, must(AttrPending, Greater, k))
		w.Update = append(w.Update, set(AttrBurstStart, timeValue(now)))
		return w
	}
	w.Cond = append(w.Cond, absentOr(AttrPending, AtMost, k))
	w.Update = append(w.Update, endBurst(expires)...)
	return w
}

// Kept is what KEEP needs to know.
type Kept struct {
	Doc        DocID
	Key        OrderKey
	Now        Micros
	Cap        Micros // the same as in a [Bid]
	Expires    int64  // time to expire, in seconds
	Generation string // generation of the sink's index that has the document: see [ContentOf]
	Document   []byte // the bytes that the sink would get
}

// Keep commits k without writing to the sink, because the sink already has these bytes. They are
// the bytes of the committed version, and no version was claimed after it. last_write does not
// change. ok is false if the image shows other bytes or none.
func Keep(n Kept, image Row) (w Write, ok bool) {
	k, was := keyValue(n.Key), ContentOf(n.Generation, image.Committed, n.Document)
	if image.Content != was || image.Committed >= n.Key {
		return Write{}, false
	}
	w = Write{Transition: KEEP, Doc: n.Doc, Cond: []Clause{
		known(),
		must(AttrCommitted, Equal, keyValue(image.Committed)),
		must(AttrCommittedOp, Equal, textValue(string(Put))),
		must(AttrContent, Equal, contentValue(was)),
		must(AttrClaimed, Absent, Value{}),
		absentOr(AttrLeaseUntil, Less, timeValue(n.Now)),
		absentOr(AttrDead, NotEqual, k),
		notTaken(n.Key),
	}, Update: []Action{
		set(AttrCommitted, k),
		set(AttrContent, contentValue(ContentOf(n.Generation, n.Key, n.Document))),
	}}
	if image.Pending > n.Key {
		w.Transition = KEEPNewerWaiting
		w.Cond = append(w.Cond, must(AttrPending, Greater, k), must(AttrBurstStart, AtMost, timeValue(n.Cap)))
		w.Update = append(w.Update, set(AttrBurstStart, timeValue(n.Now)))
		return w, true
	}
	w.Cond = append(w.Cond, must(AttrPending, Equal, k))
	w.Update = append(w.Update, endBurst(n.Expires)...)
	return w, true
}

// endLease is the action with which RELEASE and REJECT end the lease. lease_until becomes the
// fence, so that the next fence must be greater. If last_write already holds the fence, lease_until
// is removed.
func (l Lease) endLease() Action {
	if l.Ahead {
		return remove(AttrLeaseUntil)[0]
	}
	return set(AttrLeaseUntil, timeValue(l.At))
}

// Release returns the lease. The caller knows that the sink applied no request of this claim.
// claimed does not change. lease_until becomes the claim's time, because the next fence must be
// greater. refused says that the sink refused this document, and is counted.
func Release(l Lease, lastError string, refused bool) Write {
	w := Write{Transition: RELEASE, Doc: l.Doc, Cond: []Clause{
		known(),
		must(AttrOwner, Equal, textValue(string(l.Token))),
	}, Update: append([]Action{
		l.endLease(),
		set(AttrLastError, textValue(cut(lastError))),
	}, remove(AttrOwner, AttrAttempts)...)}
	if refused {
		w.Update = append(w.Update, Action{Verb: Add, Attr: AttrRefusals, Val: numberValue(1)})
	}
	return w
}

// Reject ends a version whose dead letter is stored. claimed returns to its value before this
// version, so that the newest older version of a flight may be written. The newest image of the row
// decides the form of the write.
func Reject(l Lease, lastError string, expires int64, image Row) Write {
	k := keyValue(l.Key)
	w := Write{Transition: REJECT, Doc: l.Doc, Cond: []Clause{
		known(),
		must(AttrOwner, Equal, textValue(string(l.Token))),
	}}
	if image.ClaimedWas == "" || image.ClaimedWas == Lowest {
		w.Update = remove(AttrClaimed)
	} else {
		w.Update = []Action{{Verb: Copy, Attr: AttrClaimed, From: AttrClaimedWas}}
	}
	w.Update = append(w.Update,
		set(AttrDead, k),
		l.endLease(),
		set(AttrLastError, textValue(cut(lastError))))
	w.Update = append(w.Update, remove(AttrOwner, AttrClaimedWas, AttrAttempts, AttrRefusals)...)
	if image.Pending != l.Key {
		w.Transition = REJECTNotPending
		w.Cond = append(w.Cond, absentOr(AttrPending, NotEqual, k))
		return w
	}
	w.Cond = append(w.Cond, must(AttrPending, Equal, k))
	w.Update = append(w.Update, endBurst(expires)...)
	return w
}

// Park marks a version as dead. Its dead letter is stored, and no flight writes the version. dlq
// parks messages that SQS moved to the dead-letter queue. receive parks dead letters with the
// reason dead_deadline. The second form is for a row in which k is not pending. If that row is new,
// it gets a time to expire.
func Park(doc DocID, k OrderKey, now Micros, expires int64, image Row) Write {
	key := keyValue(k)
	w := Write{Transition: PARK, Doc: doc, Cond: []Clause{
		known(),
		absentOr(AttrCommitted, Less, key),
		absentOr(AttrLeaseUntil, Less, timeValue(now)),
	}, Update: []Action{set(AttrDead, key)}}
	if image.Pending != k {
		w.Transition = PARKNotPending
		if image.Pending != "" {
			w.Cond = append(w.Cond, absentOr(AttrPending, Less, key))
			return w
		}
		// A row with a pending version must not expire.
		w.Cond = append(w.Cond, must(AttrPending, Absent, Value{}))
		w.Update = append(w.Update, Action{Verb: SetIfAbsent, Attr: AttrExpiresAt, Val: numberValue(expires)})
		return w
	}
	w.Cond = append(w.Cond, must(AttrPending, Equal, key))
	w.Update = append(w.Update, endBurst(expires)...)
	return w
}

// Redrive removes the mark of a dead letter before the dead letter is sent again. It is refused
// while a flight works on the version. If the row marks another key as dead, no write is needed:
// see [MayRedrive].
func Redrive(doc DocID, k OrderKey, now Micros) Write {
	key := keyValue(k)
	return Write{Transition: REDRIVE, Doc: doc, Cond: []Clause{
		known(),
		absentOr(AttrPending, NotEqual, key),
		absentOr(AttrLeaseUntil, Less, timeValue(now)),
		must(AttrDead, Equal, key),
	}, Update: remove(AttrDead)}
}

// Collect deletes a row that is no longer needed, if it has not changed since prune read it: see
// [Collectable].
func Collect(read Row, now Micros) Write {
	return Write{Transition: COLLECT, Doc: read.Doc, Drop: true, Cond: append([]Clause{
		known(),
		absentOr(AttrLeaseUntil, Less, timeValue(now)),
	}, same(read, AttrCommitted, AttrPending, AttrClaimed, AttrDead, AttrOwner, AttrBurstStart, AttrLastWrite,
		AttrExpiresAt)...)}
}

// same returns the clauses which require that these attributes have not changed since the row was
// read.
func same(read Row, attrs ...Attr) []Clause {
	out := make([]Clause, len(attrs))
	for i, a := range attrs {
		v, _ := read.Get(a)
		out[i] = still(a, v)
	}
	return out
}

// still returns the clause which requires that an attribute has the value v, or is absent if v is
// zero.
func still(a Attr, v Value) Clause {
	if v.Text == "" && v.Num == 0 {
		return must(a, Absent, Value{})
	}
	return must(a, Equal, v)
}

// cut shortens an error to MaxLastError bytes, without cutting a character apart. An empty error
// becomes "unknown", because a row does not store empty strings.
func cut(s string) string {
	if s == "" {
		return "unknown"
	}
	if len(s) <= MaxLastError {
		return s
	}
	s = s[:MaxLastError]
	for len(s) > 0 && !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s
}
