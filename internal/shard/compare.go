package shard

// InSink is what a sink holds of a document. The zero InSink is none.
type InSink struct {
	Key   OrderKey
	Fence Fence // the claim's time with which it was written
	Bytes Bytes // compared with the row's content
}

// Bytes says how what a sink holds compares with what the row says of it.
type Bytes byte

// BytesUnknown is where nobody compared them: the row has no content, or that of another
// generation.
const (
	BytesUnknown Bytes = iota
	BytesSame
	BytesOther
)

// Difference says how a sink's copy differs from what its row committed.
type Difference byte

// The differences. Only Behind and Undone can be repaired from the row and the sink alone.
const (
	NoDifference Difference = iota
	Busy                    // somebody writes it, or did so a moment ago: look again later
	Waiting                 // something newer than row and copy is pending, or must come after a reset
	Behind                  // the copy is newer than the row: RAISE
	Undone                  // the row committed a delete, and an older copy is there: REASSERT
	Missing                 // the row committed a put, and there is no copy: resync
	Older                   // the row committed a put, and the copy is older: resync
	OtherClass              // the copy's versions do not compare with the row's: resync
	Stranger                // lull did not write it, and no row holds it to be there
	Changed                 // the copy has the committed version, and somebody changed its bytes: resync
)

// String is the word used in answers and logs.
func (d Difference) String() string {
	return [...]string{
		"same", "busy", "waiting", "behind", "undone", "missing", "older", "other_class", "stranger", "changed",
	}[d]
}

// Drift reports a difference that does not pass by itself.
func (d Difference) Drift() bool { return d >= Behind }

// Compare says how the sink's copy differs from the row. The row was read consistently, before the
// copy. quiet lies so far back that whoever held a lease then writes no more, and that what was
// committed then is visible. kept is the oldest moment of which rows are still kept: a row may be
// gone, or know no commit, because the copy was written before it.
func Compare(r Row, c InSink, quiet, kept Micros) Difference {
	switch {
	case r.Foreign(), r.LeaseUntil >= quiet && r.LeaseUntil != 0, r.LastWrite >= quiet && r.LastWrite != 0:
		return Busy
	case r.Committed == c.Key && c.Bytes == BytesOther:
		return Changed
	case r.Committed == c.Key:
		return NoDifference
	case r.Committed.IsFloor() && Micros(c.Fence) <= r.LastWrite:
		return Waiting // a reset gave up what was written before: the copy is not newer
	case r.VersionClass != 0 && c.Key != "" && c.Key.Class() != r.VersionClass:
		return OtherClass
	case c.Key > r.Committed && r.Committed == "" && Micros(c.Fence) < kept:
		return NoDifference
	case c.Key > r.Committed:
		return Behind
	case r.CommittedOp == Put && c.Key != "" && c.Bytes == BytesSame:
		return NoDifference // committed without a write: see Keep
	case r.CommittedOp == Delete && c.Key == "":
		return NoDifference
	case r.Pending > r.Committed:
		return Waiting
	case r.CommittedOp == Delete:
		return Undone
	case c.Key == "":
		return Missing
	}
	return Older
}

// SameEvent reports whether two keys are of one event: they differ by their resync runs at most.
func (k OrderKey) SameEvent(other OrderKey) bool {
	a, errA := k.Parts()
	b, errB := other.Parts()
	return errA == nil && errB == nil && a.Epoch == b.Epoch && a.Version == b.Version && a.Time.Equal(b.Time) &&
		a.Digest == b.Digest
}

// Beyond reports whether the row knows something newer than an event, in whatever run that is sent
// again: a later version that was committed, or the same version with another content that came
// after it. A later version that is only pending may still be refused for good: then this one is
// the newest.
func (r Row) Beyond(k OrderKey) bool {
	beyond := func(known OrderKey) bool { return known > k && !known.SameEvent(k) }
	return beyond(r.Committed) || beyond(r.Pending) && !LaterVersion(r.Pending, k) ||
		beyond(r.Claimed) && !LaterVersion(r.Claimed, k)
}

// LaterVersion reports whether a key is of a greater epoch and version, whatever its run, time and
// digest.
func LaterVersion(a, b OrderKey) bool {
	p, errP := a.Parts()
	q, errQ := b.Parts()
	return errP == nil && errQ == nil &&
		(p.Epoch > q.Epoch || p.Epoch == q.Epoch && p.Version.packed > q.Version.packed)
}
