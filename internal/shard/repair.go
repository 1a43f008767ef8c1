// SPDX-License-Identifier: Apache-2.0

package shard

// Reassert takes the lease of a row whose version is a committed delete. A write without a claim
// (`tableOutage: open`) may have written the document again, so index must repeat the delete.
// Nothing is claimed, because the version is already committed. Reassert is refused if a newer
// version is pending, because that version will be written anyway. The time of the write is a
// fence, as for a claim. Reassert uses the bid's document, key, token and times. The key must be
// the committed key.
func Reassert(b Bid) Write {
	return Write{Transition: REASSERT, Doc: b.Doc, Cond: append([]Clause{
		known(),
		must(AttrCommitted, Equal, keyValue(b.Key)),
		must(AttrCommittedOp, Equal, textValue(string(Delete))),
		absentOr(AttrPending, AtMost, keyValue(b.Key)),
	}, fences(b.Now, b.Fence)...), Update: append([]Action{
		set(AttrOwner, textValue(string(b.Token))), set(AttrLeaseUntil, timeValue(b.Until)),
	}, rememberFence(b.Now, b.Fence)...)}
}

// Reasserted ends the lease of [Reassert] after the sink applied the delete. The fence becomes
// last_write.
func Reasserted(l Lease) Write {
	return Write{Transition: REASSERTED, Doc: l.Doc, Cond: []Clause{
		known(),
		must(AttrOwner, Equal, textValue(string(l.Token))),
	}, Update: append([]Action{set(AttrLastWrite, timeValue(l.At))}, remove(AttrOwner, AttrLeaseUntil)...)}
}

// Raise sets a row to the put that the sink has and the row does not know. This happens after the
// table was restored from a backup: see docs/runbook/losses/table-restored.md. The caller reads the
// row first, and then the sink's copy. The write requires that no claim began or ended since the
// row was read, so the copy is still what the sink has.
//
// Raise is refused if the row's last lease ended at quiet or later, because the sink may still
// apply a request of that lease. The next fence is greater than the copy's fence and all fences in
// the row. expires is in seconds.
func Raise(read Row, c InSink, quiet Micros, expires int64) Write {
	k := keyValue(c.Key)
	class := textValue(string(rune(c.Key.Class())))
	w := Write{Transition: RAISE, Doc: read.Doc, Cond: append([]Clause{
		known(),
		absentOr(AttrCommitted, Less, k),
		notTaken(c.Key),
		absentOr(AttrVersionClass, Equal, class),
		absentOr(AttrLeaseUntil, Less, timeValue(quiet)),
	}, same(read, AttrPending, AttrClaimed, AttrOwner, AttrLeaseUntil, AttrLastWrite)...), Update: append([]Action{
		set(AttrVersionClass, class),
		set(AttrCommitted, k),
		set(AttrCommittedOp, textValue(string(Put))),
		set(AttrLastWrite, timeValue(max(read.LastWrite, read.LeaseUntil, Micros(c.Fence)))),
	}, remove(AttrOwner, AttrLeaseUntil, AttrAttempts, AttrRefusals, AttrLastError, AttrContent)...)}
	// A newer version that was claimed still blocks older versions.
	if read.Claimed <= c.Key {
		w.Update = append(w.Update, remove(AttrClaimed, AttrClaimedWas)...)
	}
	// A newer version that is pending keeps its burst and its flight.
	if read.Pending <= c.Key {
		w.Update = append(w.Update, endBurst(expires)...)
	}
	return w
}
