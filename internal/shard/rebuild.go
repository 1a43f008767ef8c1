package shard

// Rebuild announces that a collection is being rebuilt: its writes go to a new index too (ADR
// 0035). It is refused if the sink has a rebuild already. at identifies this rebuild in all its
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
// write. It is refused during the switch to the new index, and after the rebuild has ended. Then
// the write must not be committed. A repeated Miss counts twice, which does no harm.
func Miss(sink string, at Micros) Write {
	return Write{Transition: MISS, Doc: HealthRow(sink), Cond: []Clause{
		known(),
		must(AttrRebuildAt, Equal, timeValue(at)),
		must(AttrRebuildSeal, Absent, Value{}),
	}, Update: []Action{{Verb: Add, Attr: AttrRebuildMissed, Val: numberValue(1)}}}
}

// Seal forbids [Miss] during the switch. It is refused if the count is not seen any more: then a
// write was missed after the indexes were compared, and they have to be compared again.
func Seal(sink string, at Micros, seen int64, now Micros) Write {
	return Write{Transition: SEAL, Doc: HealthRow(sink), Cond: []Clause{
		known(),
		must(AttrRebuildAt, Equal, timeValue(at)),
		must(AttrRebuildSeal, Absent, Value{}),
		still(AttrRebuildMissed, numberValue(seen)),
	}, Update: []Action{set(AttrRebuildSeal, timeValue(now))}}
}

// Unseal removes the seal that was read. The caller must know that the switch was not made, and
// that no request to make it is still running.
func Unseal(sink string, at, seal Micros) Write {
	return Write{Transition: UNSEAL, Doc: HealthRow(sink), Cond: []Clause{
		known(),
		must(AttrRebuildAt, Equal, timeValue(at)),
		must(AttrRebuildSeal, Equal, timeValue(seal)),
	}, Update: remove(AttrRebuildSeal)}
}

// Rebuilt ends a rebuild, finished or cancelled: writes go to the new index no more.
func Rebuilt(sink string, at Micros) Write {
	return Write{Transition: REBUILT, Doc: HealthRow(sink), Cond: []Clause{
		known(),
		must(AttrRebuildAt, Equal, timeValue(at)),
	}, Update: remove(AttrRebuildOf, AttrRebuildInto, AttrRebuildAt, AttrRebuildMissed, AttrRebuildSeal)}
}
