package shard

import "time"

// HealthRow is the key of the shared row that tells every flight how a sink is.
func HealthRow(sink string) DocID { return DocID("!health#" + sink) }

// RunRow is the key of the row that debounces a maintenance run.
func RunRow(name string) DocID { return DocID("!run#" + name) }

// Circuit is what a health row says.
type Circuit byte

// A closed circuit lets everything through, an open one nothing; after its time an open one lets
// one prober ping.
const (
	CircuitClosed Circuit = iota
	CircuitOpen
	CircuitProbe
)

// MaxOpen is the longest time for which a circuit opens, whatever settings and sink ask for.
const MaxOpen = 2 * time.Hour

// absurd is how far ahead a time in one of lull's own rows lies that only a wrong clock can have
// written. It counts as over: a sink must not stay shut, nor a run stay away, until that clock is
// right.
const absurd = 2 * MaxOpen

// Absurd reports whether only a wrong clock can have written this time in one of lull's own rows.
func Absurd(m, now Micros) bool { return m > now.Add(absurd) }

// over is the clause by which a time of lull's own rows is past. One that lies further ahead than
// is believed counts too: only a wrong clock can have written it.
func over(a Attr, now Micros, believed time.Duration) Clause {
	return Clause{{a, Less, timeValue(now)}, {a, Greater, timeValue(now.Add(believed))}}
}

// absentOrOver is the same where there may be none.
func absentOrOver(a Attr, now Micros, believed time.Duration) Clause {
	return append(must(a, Absent, Value{}), over(a, now, believed)...)
}

// pausedLook is when a flight looks again at a sink that is paused. A minute later its messages
// wait in the queue alone.
const pausedLook = 10 * time.Second

// Health reads the health row: what to do now, and when to look again where nothing may be claimed.
// An operator's pause counts before all else: nobody probes a sink that is to be left alone.
func Health(r Row, now Micros) (Circuit, Micros) {
	switch {
	case r.PausedAt != 0:
		return CircuitOpen, now.Add(pausedLook)
	case r.OpenUntil == 0:
		return CircuitClosed, 0
	case now <= r.OpenUntil && !Absurd(r.OpenUntil, now):
		return CircuitOpen, r.OpenUntil + 1
	case now <= r.ProbeUntil && !Absurd(r.ProbeUntil, now):
		return CircuitOpen, r.ProbeUntil + 1
	}
	return CircuitProbe, 0
}

// Unavailable reports whether nothing goes to the sink of a health row: its circuit is not closed,
// or an operator has paused it.
func Unavailable(r Row) bool { return r.OpenUntil != 0 || r.PausedAt != 0 }

// Pause keeps every claim for a sink back until [Resume], unless somebody has paused it already.
// Who and why are cut. The circuit, its level and the budget stay as they are.
func Pause(sink string, now Micros, who, why string) Write {
	w := Write{Transition: PAUSE, Doc: HealthRow(sink), Cond: []Clause{
		known(),
		must(AttrPausedAt, Absent, Value{}),
	}, Update: []Action{set(AttrPausedAt, timeValue(now)), set(AttrPausedBy, textValue(cut(who)))}}
	if why != "" {
		w.Update = append(w.Update, set(AttrPausedWhy, textValue(cut(why))))
	}
	return w
}

// Resume ends the pause that r shows, the health row as it was just read, and no other one. What
// waited goes at a pace that soon grows, as after a circuit that was open for as long. The circuit
// stays as it is. A level keeps what the sink had lost of it before the pause: see [NextLevel].
func Resume(sink string, r Row, now Micros, openFor func(level int64) time.Duration) Write {
	w := Write{Transition: RESUME, Doc: HealthRow(sink), Cond: []Clause{
		known(),
		must(AttrPausedAt, Equal, timeValue(r.PausedAt)),
	}, Update: append([]Action{
		set(AttrLastWrite, timeValue(max(now, r.LastWrite))),
		set(AttrRate, numberValue(resumePace(r, now, openFor))), set(AttrRateAt, timeValue(now)),
	}, remove(AttrPausedAt, AttrPausedBy, AttrPausedWhy, AttrPaidUntil, AttrPaid)...)}
	if level := NextLevel(r, r.PausedAt, openFor) - 1; level != r.Level {
		w.Update = append(w.Update, set(AttrLevel, numberValue(level)))
	}
	return w
}

// resumePace is [Restart] for a circuit that was open as long as the sink was paused.
func resumePace(r Row, now Micros, openFor func(level int64) time.Duration) int64 {
	paused := now.Sub(r.PausedAt)
	r.Level = 1
	for open := openFor(1); open < paused && r.Level < 4; open += openFor(r.Level) {
		r.Level++
	}
	return Restart(r, now)
}

// Trip opens the circuit, one level higher, unless somebody has just done so.
func Trip(sink string, now, until Micros, level int64) Write {
	return Write{Transition: TRIP, Doc: HealthRow(sink), Cond: []Clause{
		known(),
		absentOrOver(AttrOpenUntil, now, absurd),
	}, Update: append([]Action{
		set(AttrOpenUntil, timeValue(until)),
		set(AttrLevel, numberValue(level)),
	}, remove(AttrProbeUntil)...)}
}

// Probe makes the caller the one prober until the given time.
func Probe(sink string, now, until Micros) Write {
	return Write{Transition: PROBE, Doc: HealthRow(sink), Cond: []Clause{
		known(),
		over(AttrOpenUntil, now, absurd),
		absentOrOver(AttrProbeUntil, now, absurd),
	}, Update: []Action{set(AttrProbeUntil, timeValue(until))}}
}

// Close closes the circuit after a probe, and lets documents go at a pace that soon grows. The
// level stays, because a ping proves little: see [NextLevel]. last_write keeps the
// time: prune wants to know since when the sink is well.
func Close(sink string, probe, now Micros, pace int64) Write {
	return Write{Transition: CLOSE, Doc: HealthRow(sink), Cond: []Clause{
		known(),
		must(AttrProbeUntil, Equal, timeValue(probe)),
	}, Update: append([]Action{
		set(AttrLastWrite, timeValue(now)), set(AttrRate, numberValue(pace)), set(AttrRateAt, timeValue(now)),
	}, remove(AttrOpenUntil, AttrProbeUntil, AttrPaidUntil, AttrPaid)...)}
}

// NextLevel is the level at which the circuit opens next. A sink that was well since has lost a
// level for each quarter of the time for which its circuit was open at that level.
func NextLevel(r Row, now Micros, openFor func(level int64) time.Duration) int64 {
	level := r.Level
	if r.OpenUntil == 0 {
		for well := now.Sub(r.LastWrite); level > 0; level-- {
			if well -= max(openFor(level)/4, openFor(1)); well < 0 {
				break
			}
		}
	}
	return level + 1
}

// HealthySince reports whether the circuit has been closed, and nothing paused, for at least d.
func HealthySince(r Row, now Micros, d time.Duration) bool {
	return !Unavailable(r) && (r.LastWrite == 0 || r.LastWrite.Add(d) <= now)
}

// StartRun makes the caller the one that runs, at most once per interval, however many rules fire.
func StartRun(name string, token Token, now, until Micros, interval time.Duration) Write {
	return Write{Transition: STARTRUN, Doc: RunRow(name), Cond: []Clause{
		known(),
		absentOrOver(AttrLeaseUntil, now, absurd),
		append(absentOr(AttrRanAt, AtMost, timeValue(now.Add(-interval))),
			Term{AttrRanAt, Greater, timeValue(now.Add(absurd))}),
	}, Update: []Action{
		set(AttrOwner, textValue(string(token))),
		set(AttrLeaseUntil, timeValue(until)),
		set(AttrRanAt, timeValue(now)),
	}}
}

// SaveRun keeps where a run of ours goes on, and that it is ours until the given time.
func SaveRun(name string, token Token, until Micros, cursor string) Write {
	return Write{Transition: SAVERUN, Doc: RunRow(name), Cond: []Clause{
		known(),
		must(AttrOwner, Equal, textValue(string(token))),
	}, Update: []Action{
		set(AttrLeaseUntil, timeValue(until)), set(AttrCursor, textValue(cursor)),
	}}
}

// EndRun ends a run of ours and keeps where the next one goes on.
func EndRun(name string, token Token, cursor string) Write {
	w := Write{Transition: ENDRUN, Doc: RunRow(name), Cond: []Clause{
		known(),
		must(AttrOwner, Equal, textValue(string(token))),
	}, Update: remove(AttrOwner, AttrLeaseUntil)}
	if cursor == "" {
		w.Update = append(w.Update, remove(AttrCursor)...)
	} else {
		w.Update = append(w.Update, set(AttrCursor, textValue(cursor)))
	}
	return w
}

// widest is how far an unhealthy sink widens a quiet window: a longer one saves nothing, and would
// keep documents late for as long after the sink is back.
const widest = time.Minute

// Widen is the effective quiet window while a sink is throttling: doubled per level, at most
// maxWait, and no further than a minute.
func Widen(t Timing, level int64) Timing {
	for range level {
		t.Quiet = max(t.Quiet, min(2*max(t.Quiet, time.Second/2), t.MaxWait, widest))
	}
	return t
}
