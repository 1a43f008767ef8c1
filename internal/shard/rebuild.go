// SPDX-License-Identifier: Apache-2.0

package shard

// Rebuild records that a collection is being rebuilt, so that its writes go to a new index too (ADR
// 0035). It is refused if the sink already has a rebuild. at identifies this rebuild in all its
// later writes.
func Rebuild(sink string, c Collection, index string, at Micros) Write {
	return Write{Transition: REBUILD, Doc: HealthRow(sink), Cond: []Clause{
		known(),
		must(AttrRebuildAt, Absent, Value{}),
	}, Update: append([]Action{
		set(AttrRebuildOf, textValue(string(c))),
		set(AttrRebuildInto, textValue(index)),
		set(AttrRebuildAt, timeValue(at)),
	}, remove(AttrRebuildMissed, AttrRebuildSeal)...)}
}

// Miss counts a write that the new index lacks, or may lack. It is made before the COMMIT of that
// write. Miss is refused during the switch to the new index, and after the rebuild has ended. The
// write must not be committed then. A repeated Miss counts twice, which does no harm.
func Miss(sink string, at Micros) Write {
	return Write{Transition: MISS, Doc: HealthRow(sink), Cond: []Clause{
		known(),
		must(AttrRebuildAt, Equal, timeValue(at)),
		must(AttrRebuildSeal, Absent, Value{}),
	}, Update: []Action{{Verb: Add, Attr: AttrRebuildMissed, Val: numberValue(1)}}}
}

// Seal forbids [Miss] during the switch to the new index. It is refused if the count of missed
// writes is no longer seen. A write was then missed after the indexes were compared, so they must
// be compared again.
func Seal(sink string, at Micros, seen int64, now Micros) Write {
	return Write{Transition: SEAL, Doc: HealthRow(sink), Cond: []Clause{
		known(),
		must(AttrRebuildAt, Equal, timeValue(at)),
		must(AttrRebuildSeal, Absent, Value{}),
		still(AttrRebuildMissed, numberValue(seen)),
	}, Update: []Action{set(AttrRebuildSeal, timeValue(now))}}
}

// Unseal removes the seal that was read. The caller must know that the switch was not made, and
// that no request for the switch is still running.
func Unseal(sink string, at, seal Micros) Write {
	return Write{Transition: UNSEAL, Doc: HealthRow(sink), Cond: []Clause{
		known(),
		must(AttrRebuildAt, Equal, timeValue(at)),
		must(AttrRebuildSeal, Equal, timeValue(seal)),
	}, Update: remove(AttrRebuildSeal)}
}

// Rebuilt ends a rebuild that is finished or cancelled. Writes no longer go to the new index.
func Rebuilt(sink string, at Micros) Write {
	return Write{Transition: REBUILT, Doc: HealthRow(sink), Cond: []Clause{
		known(),
		must(AttrRebuildAt, Equal, timeValue(at)),
	}, Update: remove(AttrRebuildOf, AttrRebuildInto, AttrRebuildAt, AttrRebuildMissed, AttrRebuildSeal)}
}
