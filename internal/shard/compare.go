// SPDX-License-Identifier: Apache-2.0

package shard

// InSink describes the copy of a document in a sink. The zero InSink means that the sink does not
// have the document.
type InSink struct {
	Key   OrderKey
	Fence Fence // the time of the claim under which the copy was written
	Bytes Bytes // whether the bytes match the content in the row
}

// Bytes says whether the bytes in a sink are the bytes that the row committed.
type Bytes byte

// BytesUnknown means that the bytes were not compared, because the row has no content, or a content
// of another generation of the sink.
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
	Busy                    // a flight writes the document, or did so a moment ago: look again later
	Waiting                 // a version newer than the row and the copy is pending, or must arrive after a reset
	Behind                  // the copy is newer than the row: RAISE
	Undone                  // the row committed a delete, but the sink has an older copy: REASSERT
	Missing                 // the row committed a put, but the sink has no copy: resync
	Older                   // the row committed a put, but the copy is older: resync
	OtherClass              // the copy's versions cannot be compared with the row's: resync
	Stranger                // lull did not write the copy, and no row expects one; Compare does not return it
	// the copy has the committed version, but other bytes, because another program changed it:
	// resync
	Changed
)

// String returns the word for the difference in answers and logs.
func (d Difference) String() string {
	return [...]string{
		"same", "busy", "waiting", "behind", "undone", "missing", "older", "other_class", "stranger", "changed",
	}[d]
}

// Drift reports whether the difference stays until an operator repairs it.
func (d Difference) Drift() bool { return d >= Behind }

// Compare returns how the sink's copy differs from the row. The caller must read the row
// consistently, before it reads the copy. quiet is a moment in the past. Every lease that was held
// at that moment has ended, and every version that was committed by then is visible in the sink.
// kept is the age limit of rows. If a copy was written before kept, its row may have been deleted,
// or created again without a commit.
func Compare(r Row, c InSink, quiet, kept Micros) Difference {
	switch {
	case r.Foreign(), r.LeaseUntil >= quiet && r.LeaseUntil != 0, r.LastWrite >= quiet && r.LastWrite != 0:
		return Busy
	case r.Committed == c.Key && c.Bytes == BytesOther:
		return Changed
	case r.Committed == c.Key:
		return NoDifference
	case r.Committed.IsFloor() && (Micros(c.Fence) <= r.LastWrite || r.Took(c.Key)):
		return Waiting // after a reset, older writes do not count: the copy is not newer
	case r.VersionClass != 0 && c.Key != "" && c.Key.Class() != r.VersionClass:
		return OtherClass
	case c.Key > r.Committed && r.Committed == "" && Micros(c.Fence) < kept:
		return NoDifference
	case c.Key > r.Committed && !r.Took(c.Key):
		return Behind
	case r.CommittedOp == Put && c.Key != "" && c.Bytes == BytesSame:
		return NoDifference // committed by KEEP, without a write to the sink
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

// SameEvent reports whether two keys belong to one event: they differ at most in their resync runs.
func (k OrderKey) SameEvent(other OrderKey) bool {
	a, errA := k.Parts()
	b, errB := other.Parts()
	return errA == nil && errB == nil && a.Epoch == b.Epoch && a.Version == b.Version && a.Time.Equal(b.Time) &&
		a.Digest == b.Digest
}

// Beyond reports whether the row has a newer version than an event, whatever the resync run of the
// event is. A later version counts if it was committed. The same version with other content counts
// if it arrived after the event. A later version that is only pending does not count: the sink may
// still refuse it, and then this event is the newest.
func (r Row) Beyond(k OrderKey) bool {
	beyond := func(known OrderKey) bool { return known > k && !known.SameEvent(k) }
	return beyond(r.Committed) || beyond(r.Pending) && !LaterVersion(r.Pending, k) ||
		beyond(r.Claimed) && !LaterVersion(r.Claimed, k)
}

// LaterVersion reports whether a has a greater epoch and version than b. It ignores run, time and
// digest.
func LaterVersion(a, b OrderKey) bool {
	p, errP := a.Parts()
	q, errQ := b.Parts()
	return errP == nil && errQ == nil &&
		(p.Epoch > q.Epoch || p.Epoch == q.Epoch && p.Version.packed > q.Version.packed)
}
