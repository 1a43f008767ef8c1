package shard

import (
	"time"
	"unicode/utf8"
)

// This file is the one home of every condition (design section 5). A condition is a conjunction of
// clauses; CLAIM's "pending = k or (pending > k and burst_start <= cap)" stands here as two
// clauses. (pending >= k) and (pending = k or burst_start <= cap) is the same.

// MaxLastError is the longest last_error kept, in bytes: a row above 1 KB doubles the cost of every
// write.
const MaxLastError = 200

// known leaves rows of a newer schema alone.
func known() Clause {
	return Clause{{AttrSchema, Absent, Value{}}, {AttrSchema, AtMost, numberValue(SchemaVersion)}}
}

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

// settled ends a burst: nothing is pending any more, and the row expires (seconds) as a backstop.
func settled(expires int64) []Action {
	expiry := set(AttrExpiresAt, numberValue(expires))
	return append([]Action{expiry}, remove(AttrPending, AttrBurstStart, AttrFlight)...)
}

// Admission is what ADMIT needs to know.
type Admission struct {
	Doc    DocID
	Key    OrderKey
	Class  Class
	Flight string
	Now    Micros
	Aged   bool // the message is older than retention - producerLateness: only a row with a commit can judge it
}

// Admit makes k the pending version if nothing shows that it is old, stored as a dead letter or of
// another class.
func Admit(a Admission) Write {
	k := keyValue(a.Key)
	class := textValue(string(rune(a.Class)))
	w := Write{Transition: ADMIT, Doc: a.Doc, Cond: []Clause{
		known(),
		absentOr(AttrPending, Less, k),
		absentOr(AttrCommitted, Less, k),
		absentOr(AttrDead, NotEqual, k),
		absentOr(AttrVersionClass, Equal, class),
	}}
	if a.Aged {
		w.Cond = append(w.Cond, must(AttrCommitted, Exists, Value{}))
	}
	w.Update = append([]Action{
		set(AttrVersionClass, class),
		set(AttrPending, k),
		{Verb: SetIfAbsent, Attr: AttrBurstStart, Val: timeValue(a.Now)},
		set(AttrFlight, textValue(a.Flight)),
	}, remove(AttrExpiresAt, AttrAttempts, AttrRefusals, AttrLastError)...)
	return w
}

// Bid is what CLAIM needs to know.
type Bid struct {
	Doc         DocID
	Key         OrderKey
	Token       Token  // fresh for this claim
	Now         Micros // the claim's time
	Fence       Micros // see NextFence; 0 for the claim's time
	Until       Micros // >= the invocation's hard deadline + guard + applyDelay
	Cap         Micros // a burst that began at or before it may be overridden: now - maxWait, or - capGrace too
	MinInterval time.Duration
	Again       bool // the row shows claimed = k: an earlier claim of the same version got no commit
}

// Claim takes the lease for writing k. A refused CLAIM is ours only if the row shows our token and
// claimed = k.
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
	return Write{Transition: form, Doc: b.Doc, Cond: append([]Clause{
		known(),
		absentOr(AttrCommitted, Less, k),
		claimed,
		absentOr(AttrDead, NotEqual, k),
		must(AttrPending, AtLeast, k),
		{{AttrPending, Equal, k}, {AttrBurstStart, AtMost, timeValue(b.Cap)}},
		paced,
	}, fences(b.Now, b.Fence)...), Update: append([]Action{
		set(AttrOwner, textValue(string(b.Token))),
		set(AttrLeaseUntil, timeValue(b.Until)),
		was,
		set(AttrClaimed, k),
		{Verb: Add, Attr: AttrAttempts, Val: numberValue(1)},
		remove(AttrContent)[0], // from now on the sink may have something else
	}, remembered(b.Now, b.Fence)...)}
}

// Lease is the lease that the claim gets.
func (b Bid) Lease() Lease {
	return Lease{Doc: b.Doc, Key: b.Key, Token: b.Token, At: max(b.Now, b.Fence), Ahead: b.Fence > b.Now}
}

// Lease is a claim that was granted: what COMMIT, RELEASE and REJECT need to know of it.
type Lease struct {
	Doc   DocID
	Key   OrderKey
	Token Token
	At    Micros // the fence: the claim's time, unless Ahead
	Ahead bool   // the row's fences lie ahead of the clock, and last_write remembers this one

	Content Content // of what is put under it, where KEEP may recognise it; set by who writes it
}

// Commit makes k the committed version. The form follows from the newest image of the row: where a
// newer version is pending the burst goes on, from now; otherwise the row is settled and expires
// (seconds) as a backstop.
func Commit(l Lease, op Operation, now Micros, expires int64, image Row) Write {
	k := keyValue(l.Key)
	w := Write{Transition: COMMIT, Doc: l.Doc, Cond: []Clause{
		known(),
		must(AttrOwner, Equal, textValue(string(l.Token))),
		absentOr(AttrCommitted, Less, k),
	}, Update: append([]Action{
		set(AttrCommitted, k),
		set(AttrCommittedOp, textValue(string(op))),
		set(AttrLastWrite, timeValue(max(now, l.At))),
	}, remove(AttrOwner, AttrLeaseUntil, AttrClaimed, AttrClaimedWas, AttrAttempts, AttrRefusals, AttrLastError)...)}
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
	w.Update = append(w.Update, settled(expires)...)
	return w
}

// Kept is what KEEP needs to know.
type Kept struct {
	Doc        DocID
	Key        OrderKey
	Now        Micros
	Cap        Micros // as a [Bid] has it
	Expires    int64  // seconds
	Generation string // of the sink that the document is in: see [ContentOf]
	Document   []byte // what the sink would get
}

// Keep commits k without a write to the sink, because the sink has these very bytes: they are those
// of the committed version, and nothing was claimed since. last_write stays, because nothing is
// written. ok is false where the image shows that there is nothing to recognise.
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
	w.Update = append(w.Update, settled(n.Expires)...)
	return w, true
}

// ends is what RELEASE and REJECT make of lease_until: the next fence must be greater.
func (l Lease) ends() Action {
	if l.Ahead {
		return remove(AttrLeaseUntil)[0]
	}
	return set(AttrLeaseUntil, timeValue(l.At))
}

// Release gives the lease back after every request made under it was definitely not applied.
// claimed stays, and lease_until becomes the claim's time instead of vanishing: the next fence must
// be greater. A refusal is counted only where the sink refused this very document.
func Release(l Lease, lastError string, refused bool) Write {
	w := Write{Transition: RELEASE, Doc: l.Doc, Cond: []Clause{
		known(),
		must(AttrOwner, Equal, textValue(string(l.Token))),
	}, Update: append([]Action{
		l.ends(),
		set(AttrLastError, textValue(cut(lastError))),
	}, remove(AttrOwner, AttrAttempts)...)}
	if refused {
		w.Update = append(w.Update, Action{Verb: Add, Attr: AttrRefusals, Val: numberValue(1)})
	}
	return w
}

// Reject ends a version whose dead letter is stored: claimed goes back to what it was before this
// version, so that the newest good one still held may be written. The forms follow from the newest
// image.
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
		l.ends(),
		set(AttrLastError, textValue(cut(lastError))))
	w.Update = append(w.Update, remove(AttrOwner, AttrClaimedWas, AttrAttempts, AttrRefusals)...)
	if image.Pending != l.Key {
		w.Transition = REJECTNotPending
		w.Cond = append(w.Cond, absentOr(AttrPending, NotEqual, k))
		return w
	}
	w.Cond = append(w.Cond, must(AttrPending, Equal, k))
	w.Update = append(w.Update, settled(expires)...)
	return w
}

// Park marks a version dead whose dead letter is stored and which nobody is writing: by dlq for
// dead letters that SQS moved, by receive after a dead_deadline dead letter. Form two, for a row
// where k is not pending, gives a row that it creates a time to expire.
func Park(doc DocID, k OrderKey, now Micros, expires int64, image Row) Write {
	key := keyValue(k)
	w := Write{Transition: PARK, Doc: doc, Cond: []Clause{
		known(),
		absentOr(AttrCommitted, Less, key),
		absentOr(AttrLeaseUntil, Less, timeValue(now)),
	}, Update: []Action{set(AttrDead, key)}}
	if image.Pending != k {
		w.Transition = PARKNotPending
		w.Cond = append(w.Cond, absentOr(AttrPending, Less, key))
		if image.Pending == "" {
			w.Update = append(w.Update, Action{Verb: SetIfAbsent, Attr: AttrExpiresAt, Val: numberValue(expires)})
		}
		return w
	}
	w.Cond = append(w.Cond, must(AttrPending, Equal, key))
	w.Update = append(w.Update, settled(expires)...)
	return w
}

// Redrive takes the mark of a dead letter away before the dead letter is sent again. It is refused
// while anybody is still working on the version. A row whose dead is another key needs no write;
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

// Reassert takes the lease of a row whose delete a write without a claim may have undone
// (`tableOutage: open`). index then deletes the document from the sink again. Nothing is claimed:
// the version is committed already. It is refused where anything newer waits, which will be written
// anyway, and its time is a fence like a claim's.
// Of the bid it takes the document, the committed key, token and times.
func Reassert(b Bid) Write {
	return Write{Transition: REASSERT, Doc: b.Doc, Cond: append([]Clause{
		known(),
		must(AttrCommitted, Equal, keyValue(b.Key)),
		must(AttrCommittedOp, Equal, textValue(string(Delete))),
		absentOr(AttrPending, AtMost, keyValue(b.Key)),
	}, fences(b.Now, b.Fence)...), Update: append([]Action{
		set(AttrOwner, textValue(string(b.Token))), set(AttrLeaseUntil, timeValue(b.Until)),
	}, remembered(b.Now, b.Fence)...)}
}

// Reasserted ends a reassertion whose delete was applied: the fence that it used is the last write.
func Reasserted(l Lease) Write {
	return Write{Transition: REASSERTED, Doc: l.Doc, Cond: []Clause{
		known(),
		must(AttrOwner, Equal, textValue(string(l.Token))),
	}, Update: append([]Action{set(AttrLastWrite, timeValue(l.At))}, remove(AttrOwner, AttrLeaseUntil)...)}
}

// Raise lifts a row to the put that the sink holds and that the row does not know. The table is
// older than the sink then: see docs/runbook/losses/table-restored.md. The caller reads the row
// first and the sink's copy after it. So where no claim came or went in between, the copy is what
// the sink holds.
// It is refused where the row's last lease ended at quiet or later: a request made under it may
// still be applied. The next fence is greater than the copy's and than every fence that the row
// shows. expires is in seconds.
func Raise(read Row, c InSink, quiet Micros, expires int64) Write {
	k := keyValue(c.Key)
	class := textValue(string(rune(c.Key.Class())))
	w := Write{Transition: RAISE, Doc: read.Doc, Cond: append([]Clause{
		known(),
		absentOr(AttrCommitted, Less, k),
		absentOr(AttrVersionClass, Equal, class),
		absentOr(AttrLeaseUntil, Less, timeValue(quiet)),
	}, same(read, AttrPending, AttrClaimed, AttrOwner, AttrLeaseUntil, AttrLastWrite)...), Update: append([]Action{
		set(AttrVersionClass, class),
		set(AttrCommitted, k),
		set(AttrCommittedOp, textValue(string(Put))),
		set(AttrLastWrite, timeValue(max(read.LastWrite, read.LeaseUntil, Micros(c.Fence)))),
	}, remove(AttrOwner, AttrLeaseUntil, AttrAttempts, AttrRefusals, AttrLastError, AttrContent)...)}
	// A newer version that was claimed keeps older ones out, as it did before.
	if read.Claimed <= c.Key {
		w.Update = append(w.Update, remove(AttrClaimed, AttrClaimedWas)...)
	}
	// A newer version that is pending has its burst and its flight.
	if read.Pending <= c.Key {
		w.Update = append(w.Update, settled(expires)...)
	}
	return w
}

// Reset makes every version from a floor on new again, for a document whose committed version is
// absurd (`lull reset`). Nobody works on the document, and committed is what the operator saw: a
// newer one is never taken back. last_write stays, so that the next fence is greater than that of
// what is in the sink. The row's age stays too. What is taken back counts as dead: a message or a
// manifest which still has it does not bring it back. That of the version which the operator asks
// for does not.
func Reset(doc DocID, committed, floor OrderKey, now Micros) Write {
	update := append([]Action{set(AttrCommitted, keyValue(floor))}, remove(AttrContent)...)
	was, _ := committed.Parts()
	if is, _ := floor.Parts(); is.Version != was.Version || is.Epoch != was.Epoch {
		update = append(update, set(AttrDead, keyValue(committed)))
	}
	return Write{Transition: RESET, Doc: doc, Cond: []Clause{
		known(),
		must(AttrCommitted, Equal, keyValue(committed)),
		must(AttrCommitted, Greater, keyValue(floor)),
		must(AttrPending, Absent, Value{}),
		must(AttrClaimed, Absent, Value{}),
		absentOr(AttrLeaseUntil, Less, timeValue(now)),
	}, Update: update}
}

// Collect deletes a row that nobody can need any more, if it is as prune read it: see
// [Collectable].
func Collect(read Row, now Micros) Write {
	return Write{Transition: COLLECT, Doc: read.Doc, Drop: true, Cond: append([]Clause{
		known(),
		absentOr(AttrLeaseUntil, Less, timeValue(now)),
	}, same(read, AttrCommitted, AttrPending, AttrClaimed, AttrDead, AttrOwner, AttrBurstStart, AttrLastWrite,
		AttrExpiresAt)...)}
}

// same says that these attributes are as they were read.
func same(read Row, attrs ...Attr) []Clause {
	out := make([]Clause, len(attrs))
	for i, a := range attrs {
		v, _ := read.Get(a)
		out[i] = still(a, v)
	}
	return out
}

// still says that an attribute has the value that was read, or is absent where that is zero.
func still(a Attr, v Value) Clause {
	if v.Text == "" && v.Num == 0 {
		return must(a, Absent, Value{})
	}
	return must(a, Equal, v)
}

// cut shortens an error to MaxLastError bytes without breaking a character. An empty one becomes
// "unknown": DynamoDB has no use for an empty reason.
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
