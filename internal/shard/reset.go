// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"slices"
	"strings"
)

// MaxTakenBack is the number of versions of a document that a row remembers as taken back. It
// bounds the size of the row.
const MaxTakenBack = 8

// KeySet is a set of order keys, as one string. The keys are sorted, and each has its length before
// it. Equal sets are equal strings.
type KeySet string

// KeySetOf returns the set of these keys. It leaves out the empty key, and keys that are longer
// than the key of any event.
func KeySetOf(keys ...OrderKey) KeySet {
	keys = slices.DeleteFunc(slices.Clone(keys), func(k OrderKey) bool { return k == "" || len(k) > maxKeyBytes })
	slices.Sort(keys)
	var b strings.Builder
	for _, k := range slices.Compact(keys) {
		b.WriteByte(byte(len(k)))
		b.WriteString(string(k))
	}
	return KeySet(b.String())
}

const maxKeyBytes = 255

// KeySetValue returns the value of an attribute that is a set of order keys, as a store returned
// it.
func KeySetValue(items [][]byte) Value {
	keys := make([]OrderKey, len(items))
	for i, item := range items {
		keys[i] = OrderKey(item)
	}
	return keySetValue(KeySetOf(keys...))
}

// Keys returns the keys of the set, the lowest first.
func (s KeySet) Keys() (keys []OrderKey) {
	for len(s) > 0 {
		n := min(1+int(s[0]), len(s))
		keys = append(keys, OrderKey(s[1:n]))
		s = s[n:]
	}
	return keys
}

// Has reports whether the key is in the set.
func (s KeySet) Has(k OrderKey) bool { return s != "" && slices.Contains(s.Keys(), k) }

// Took reports whether an operator took the event with this key back, in any resync run.
func (r Row) Took(k OrderKey) bool { return r.TakenBack != "" && r.TakenBack.Has(k.Event()) }

// TookVersion reports whether an operator took the version of a floor back, with any content.
func (r Row) TookVersion(floor OrderKey) bool {
	return slices.ContainsFunc(r.TakenBack.Keys(), func(k OrderKey) bool { return sameVersion(k, floor) })
}

// behind reports whether a newer version than k is dead or was taken back. Then k may be the newest
// good version.
func (r Row) behind(k OrderKey) bool {
	return r.Dead > k || slices.ContainsFunc(r.TakenBack.Keys(), func(t OrderKey) bool { return t > k })
}

// TakeBack returns the keys that a row remembers as taken back after a reset to a floor. The
// operator wants the version of the floor, so that version is accepted. No source sends floors or
// tombstones.
//
// Versions below the floor are remembered too, because a later reset may go below them. If the set
// has more than MaxTakenBack keys, it loses the lowest keys below the floor. These are stale now,
// and of all versions only the lowest reset would make them new again. The caller must refuse a set
// that is still too large.
func (r Row) TakeBack(floor OrderKey) KeySet {
	keys := r.TakenBack.Keys()
	if floor < r.Committed && !r.Committed.IsFloor() && !r.Committed.IsFinal() {
		keys = append(keys, r.Committed.Event())
	}
	keys = slices.DeleteFunc(keys, func(k OrderKey) bool { return sameVersion(k, floor) })
	keys = KeySetOf(keys...).Keys()
	for len(keys) > MaxTakenBack && keys[0] < floor {
		keys = keys[1:]
	}
	return KeySetOf(keys...)
}

// Reset makes every version from a floor on new again, for a document whose committed version is
// absurd (`lull reset`). It requires that no flight works on the document, and that committed is
// what the operator saw, so a newer version is never taken back. last_write does not change, so
// that the next fence is greater than the fence of the copy in the sink. The age of the row does
// not change either. The row remembers what is taken back: see [Row.TakeBack]. It forgets a dead
// version below the committed one. The dead letter of such a version may have been deleted, so an
// event with that version must be judged anew.
func Reset(read Row, floor OrderKey, now Micros) Write {
	return Write{Transition: RESET, Doc: read.Doc, Cond: append([]Clause{
		known(),
		must(AttrCommitted, Equal, keyValue(read.Committed)),
		must(AttrCommitted, Greater, keyValue(floor)),
		must(AttrPending, Absent, Value{}),
		must(AttrClaimed, Absent, Value{}),
		absentOr(AttrLeaseUntil, Less, timeValue(now)),
	}, same(read, AttrTakenBack, AttrDead)...), Update: append([]Action{
		set(AttrCommitted, keyValue(floor)), remembers(read.TakeBack(floor)), remove(AttrContent)[0],
	}, read.coveredDead()...)}
}

// coveredDead returns the action that removes the mark of a dead version below the committed one.
func (r Row) coveredDead() []Action {
	if r.Dead != "" && r.Dead < r.Committed {
		return remove(AttrDead)
	}
	return nil
}

// GiveBack accepts a version again that an operator took back: the version of the floor. Nothing
// else changes. GiveBack is refused if the row was reset since it was read.
func GiveBack(read Row, floor OrderKey) Write {
	keys := slices.DeleteFunc(read.TakenBack.Keys(), func(k OrderKey) bool { return sameVersion(k, floor) })
	return Write{Transition: RESET, Doc: read.Doc, Cond: append([]Clause{known()},
		same(read, AttrCommitted, AttrTakenBack)...), Update: []Action{remembers(KeySetOf(keys...))}}
}

// remembers returns the action after which the row has exactly these keys as taken back.
func remembers(taken KeySet) Action {
	if taken == "" {
		return remove(AttrTakenBack)[0]
	}
	return set(AttrTakenBack, keySetValue(taken))
}

// notTaken returns the clause which requires that no reset took the event with this key back.
func notTaken(k OrderKey) Clause { return absentOr(AttrTakenBack, Lacks, keyValue(k.Event())) }

// sameVersion reports whether two keys have the same epoch and version.
func sameVersion(a, b OrderKey) bool {
	p, errP := a.Parts()
	q, errQ := b.Parts()
	return errP == nil && errQ == nil && p.Epoch == q.Epoch && p.Version == q.Version
}
