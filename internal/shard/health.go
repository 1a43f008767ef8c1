// SPDX-License-Identifier: Apache-2.0

package shard

import "time"

// HealthRow returns the key of the row that all flights to a sink share. The row says whether the
// sink is healthy, and how fast documents may be sent.
func HealthRow(sink string) DocID { return DocID("!health#" + sink) }

// RunRow returns the key of the row that prevents a maintenance run from starting twice.
func RunRow(name string) DocID { return DocID("!run#" + name) }

// Circuit is the state of the circuit breaker in a health row.
type Circuit byte

// A closed circuit lets every request pass, and an open circuit none. When the time of an open
// circuit is over, one caller may probe the sink.
const (
	CircuitClosed Circuit = iota
	CircuitOpen
	CircuitProbe
)

// MaxOpen is the longest time for which a circuit opens, even if the settings or the sink ask for
// more.
const MaxOpen = 2 * time.Hour

// absurd is how far ahead a time in one of lull's own rows may be. Only a wrong clock writes a
// later time, so a later time counts as past. Otherwise a circuit would stay open, or a run would
// not start, until that clock is right.
const absurd = 2 * MaxOpen

// Absurd reports whether only a wrong clock can have written this time in one of lull's own rows.
func Absurd(m, now Micros) bool { return m > now.Add(absurd) }

// over returns the clause which requires that a time in one of lull's own rows is past. A time that
// is further ahead than believed counts as past too, because only a wrong clock can have written
// it.
func over(a Attr, now Micros, believed time.Duration) Clause {
	return Clause{{a, Less, timeValue(now)}, {a, Greater, timeValue(now.Add(believed))}}
}

// absentOrOver is like [over], for an attribute that may be absent.
func absentOrOver(a Attr, now Micros, believed time.Duration) Clause {
	return append(must(a, Absent, Value{}), over(a, now, believed)...)
}

// pausedLook is how long a flight waits before it looks again at a paused sink. After a minute of
// pause no flight holds the messages any more, because they wait in the queue.
const pausedLook = 10 * time.Second

// Health reads the health row. It returns the state of the circuit, and when to look again if
// nothing may be claimed. An operator's pause has priority: a paused sink is not probed either.
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

// Unavailable reports whether lull writes nothing to the sink, because its circuit is not closed or
// an operator has paused it.
func Unavailable(r Row) bool { return r.OpenUntil != 0 || r.PausedAt != 0 }

// Pause forbids all claims for a sink until [Resume]. It is refused if the sink is already paused.
// Who and why are cut to [MaxLastError] bytes. The circuit, its level and the budget do not change.
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

// Resume ends the pause that r shows, and no other pause. r is the health row as it was just read.
// The waiting documents are sent at a speed that soon grows, as after a circuit that was open for
// the same time. The circuit does not change. The level is lowered by what it had lost before the
// pause: see [NextLevel].
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

// resumePace returns [Restart] for a circuit that was open as long as the sink was paused.
func resumePace(r Row, now Micros, openFor func(level int64) time.Duration) int64 {
	paused := now.Sub(r.PausedAt)
	r.Level = 1
	for open := openFor(1); open < paused && r.Level < 4; open += openFor(r.Level) {
		r.Level++
	}
	return Restart(r, now)
}

// Trip opens the circuit until the given time, at the given level. It is refused if another flight
// has just opened the circuit.
func Trip(sink string, now, until Micros, level int64) Write {
	return Write{Transition: TRIP, Doc: HealthRow(sink), Cond: []Clause{
		known(),
		absentOrOver(AttrOpenUntil, now, absurd),
	}, Update: append([]Action{
		set(AttrOpenUntil, timeValue(until)),
		set(AttrLevel, numberValue(level)),
	}, remove(AttrProbeUntil)...)}
}

// Probe makes the caller the only prober of the sink until the given time.
func Probe(sink string, now, until Micros) Write {
	return Write{Transition: PROBE, Doc: HealthRow(sink), Cond: []Clause{
		known(),
		over(AttrOpenUntil, now, absurd),
		absentOrOver(AttrProbeUntil, now, absurd),
	}, Update: []Action{set(AttrProbeUntil, timeValue(until))}}
}

// Close closes the circuit after a probe, and lets documents be sent at a speed that soon grows.
// The level does not change, because one answered probe proves little: see [NextLevel]. last_write
// becomes now, because prune needs to know since when the sink has been healthy.
func Close(sink string, probe, now Micros, pace int64) Write {
	return Write{Transition: CLOSE, Doc: HealthRow(sink), Cond: []Clause{
		known(),
		must(AttrProbeUntil, Equal, timeValue(probe)),
	}, Update: append([]Action{
		set(AttrLastWrite, timeValue(now)), set(AttrRate, numberValue(pace)), set(AttrRateAt, timeValue(now)),
	}, remove(AttrOpenUntil, AttrProbeUntil, AttrPaidUntil, AttrPaid)...)}
}

// NextLevel returns the level at which the circuit opens next. While a sink is healthy, the level
// falls by one in each quarter of the time for which the circuit opens at that level.
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

// HealthySince reports whether, for at least d, the circuit has been closed and the sink not
// paused.
func HealthySince(r Row, now Micros, d time.Duration) bool {
	return !Unavailable(r) && (r.LastWrite == 0 || r.LastWrite.Add(d) <= now)
}

// StartRun starts a maintenance run of the caller. At most one run starts per interval, even if
// several scheduled rules fire.
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

// SaveRun stores how far the caller's run is, and extends the lease of the run to the given time.
func SaveRun(name string, token Token, until Micros, cursor string) Write {
	return Write{Transition: SAVERUN, Doc: RunRow(name), Cond: []Clause{
		known(),
		must(AttrOwner, Equal, textValue(string(token))),
	}, Update: []Action{
		set(AttrLeaseUntil, timeValue(until)), set(AttrCursor, textValue(cursor)),
	}}
}

// EndRun ends the caller's run and stores where the next run continues.
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

// widest bounds the quiet window for an unhealthy sink. A longer window would save nothing more,
// but would delay documents after the sink is healthy again.
const widest = 10 * time.Second

// Widen returns the quiet window while a sink throttles. The window is doubled for each level, to
// at most maxWait and 10 s. A window that is already longer does not change.
func Widen(t Timing, level int64) Timing {
	for range level {
		t.Quiet = max(t.Quiet, min(2*max(t.Quiet, time.Second/2), t.MaxWait, widest))
	}
	return t
}
