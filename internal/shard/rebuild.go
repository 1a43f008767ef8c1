package shard

// Rebuild announces that writes of a collection go to a new index too (ADR 0031), unless something
// is rebuilt in the sink already. at is what every other write of this rebuild knows it by.
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

// Miss notes, before its COMMIT, that the new index does not have a write, or that nobody knows. It
// is refused while the name is switched, and once the rebuild has ended: then nothing may be
// committed. One that is repeated counts twice, which does no harm.
func Miss(sink string, at Micros) Write {
	return Write{Transition: MISS, Doc: HealthRow(sink), Cond: []Clause{
		known(),
		must(AttrRebuildAt, Equal, timeValue(at)),
		must(AttrRebuildSeal, Absent, Value{}),
	}, Update: []Action{{Verb: Add, Attr: AttrRebuildMissed, Val: numberValue(1)}}}
}

// Seal forbids that a write is missed from now on, for the time of the switch. It is refused
// where one was since seen was read, so that what is compared is compared again.
func Seal(sink string, at Micros, seen int64, now Micros) Write {
	return Write{Transition: SEAL, Doc: HealthRow(sink), Cond: []Clause{
		known(),
		must(AttrRebuildAt, Equal, timeValue(at)),
		must(AttrRebuildSeal, Absent, Value{}),
		still(AttrRebuildMissed, numberValue(seen)),
	}, Update: []Action{set(AttrRebuildSeal, timeValue(now))}}
}

// Unseal takes the seal away that was read. Only who knows that the name was not switched, and that
// no call to do so is on its way, may do so.
func Unseal(sink string, at, seal Micros) Write {
	return Write{Transition: UNSEAL, Doc: HealthRow(sink), Cond: []Clause{
		known(),
		must(AttrRebuildAt, Equal, timeValue(at)),
		must(AttrRebuildSeal, Equal, timeValue(seal)),
	}, Update: remove(AttrRebuildSeal)}
}

// Rebuilt ends a rebuild, done or given up: no write goes to the new index any more.
func Rebuilt(sink string, at Micros) Write {
	return Write{Transition: REBUILT, Doc: HealthRow(sink), Cond: []Clause{
		known(),
		must(AttrRebuildAt, Equal, timeValue(at)),
	}, Update: remove(AttrRebuildOf, AttrRebuildInto, AttrRebuildAt, AttrRebuildMissed, AttrRebuildSeal)}
}
