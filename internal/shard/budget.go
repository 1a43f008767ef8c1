// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"math"
	"time"
)

// A sink that throttles has a budget, which all flights share in its health row (ADR 0022). The row
// has the speed, and the time up to which flights have taken this speed. The speed is a function of
// time, so that its growth needs no write. All speeds are in thousandths of a document a second.
const (
	slowestPace = 500 // the lowest speed: a slower sink counts as a sink that accepts nothing
	noLimit     = 1e8 // from this speed on, flights need no share of the budget

	// ProbePace is the speed after a probe of a sink that can be probed only with documents.
	ProbePace = 1000
	// RestartPace is the speed after a probe that succeeded, after a long outage: see [Restart].
	RestartPace = 16000
	// TripPace is a low speed. If the sink applies nothing of a request at this speed or a lower
	// one, the circuit opens.
	TripPace = 2000

	// slowStart is the time in which the speed doubles, as long as lull does not know what the sink
	// accepts.
	slowStart = 8 * time.Second
	// cubicScale is the time scale of the growth after a cut. Once the speed has reached the speed
	// before the cut again, it doubles in this time.
	cubicScale = 40 * time.Second
	// forgotten is how long after its last cut a budget counts.
	forgotten = 3 * time.Minute
	// cutEvery is the shortest time between two cuts. Running requests were sent at the speed
	// before the last cut, so they do not show whether the new speed is too high.
	cutEvery = 3 * time.Second
	// A cut reduces the speed by a percentage. It is cutMost if the whole request was throttled,
	// less if only a part was, and at least cutLeast. The percentage is doubled while the speed is
	// below the speed before the last cut.
	cutMost  = 20
	cutLeast = 3
)

// Pace returns how fast documents may be sent to the sink, 0 for no limit. After a cut, the speed
// follows the curve of TCP CUBIC (RFC 9438). It grows fast up to the speed before the cut, slowly
// near that speed, then fast again.
func Pace(r Row, now Micros) int64 {
	t := now.Sub(r.RateAt)
	if r.RateAt == 0 || t >= forgotten || t <= -forgotten {
		return 0
	}
	t = max(t, 0) // another clock may be ahead
	pace := float64(r.Rate)
	if r.RateTop == 0 {
		pace *= math.Exp2(t.Seconds() / slowStart.Seconds())
	} else {
		top := float64(r.RateTop)
		x := t.Seconds()/cubicScale.Seconds() - math.Cbrt((top-pace)/top)
		pace = top * (1 + x*x*x)
	}
	if pace >= noLimit {
		return 0
	}
	return max(int64(pace), slowestPace)
}

// Lesser returns the lower of two speeds. The speed 0 means no limit.
func Lesser(a, b int64) int64 {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// SlowStart reports whether the speed grows after a pause or an outage, and the sink has not
// throttled since then.
func SlowStart(r Row, now Micros) bool { return r.RateTop == 0 && Pace(r, now) > 0 }

// Restart returns the speed after a successful probe. After a long outage many documents wait, and
// the sink has empty caches, so the speed is low. A circuit that opened only for a second was most
// often opened by one request without an answer. Few documents wait then, and the lowest speed
// would slow the sink for half a minute each time. A sink that throttled before gets at most its
// earlier speed, or RestartPace.
func Restart(r Row, now Micros) int64 {
	pace := int64(RestartPace)
	if level := max(r.Level, 1); level <= 3 {
		pace <<= 7 - 2*level // 32, 8 and 2 times as fast
	}
	if known := Pace(r, now); known > 0 {
		pace = min(pace, max(known, RestartPace/2))
	}
	return pace
}

// Worth returns how many documents may be sent at a speed in a time.
func Worth(long time.Duration, pace int64) float64 { return long.Seconds() * float64(pace) / 1000 }

// Cost returns the time that documents take at a speed.
func Cost(documents float64, pace int64) time.Duration {
	return time.Duration(documents * 1000 / float64(pace) * float64(time.Second))
}

// Cut lowers the speed for all flights after the sink throttled a request. Of this request, the
// sink applied some documents and throttled others. r is the row as it was just read. ceiling is
// the highest speed that the settings allow, 0 for none. least is the lowest speed that this cut
// may set, 0 for slowestPace. The write is refused if another flight has cut the speed since r was
// read. The second result is false if the last cut is too recent for another cut.
func Cut(sink string, r Row, now Micros, applied, throttled int, ceiling, least int64) (Write, bool) {
	since := now.Sub(r.RateAt)
	if r.RateAt != 0 && since < cutEvery && since > -forgotten {
		return Write{}, false
	}
	w := Write{
		Transition: CUT, Doc: HealthRow(sink), Cond: []Clause{known(), still(AttrRateAt, timeValue(r.RateAt))},
		Update: []Action{set(AttrRateAt, timeValue(now)), set(AttrPaid, numberValue(Ahead(r, now).Microseconds()))},
	}
	pace := Pace(r, now)
	if pace == 0 {
		// This is the first cut, so the number of applied documents is the best guess of the speed.
		// Time that flights took long ago does not count any more.
		rate := Lesser(min(max(int64(applied)*1000, slowestPace), noLimit/2), ceiling)
		w.Update = append(w.Update, set(AttrRate, numberValue(rate)))
		w.Update = append(w.Update, remove(AttrRateTop, AttrPaidUntil)...)
		return w, true
	}
	// If flights used only a part of the speed, the sink was already throttling at that part. The
	// share of the time that flights have taken shows how large the part was.
	pace = Lesser(pace, ceiling)
	least = max(min(least, pace), slowestPace) // a cut never raises the speed
	if used := float64(r.Paid) / float64((since + Ahead(r, now)).Microseconds()); r.Paid > 0 && used < 1 {
		pace = max(int64(float64(pace)*used), least)
	}
	top, less := pace, max(int64(cutMost*throttled/max(applied+throttled, 1)), cutLeast)
	if r.RateTop == 0 || pace < r.RateTop {
		// The sink accepts less than at the last cut: cut twice as much, and aim at a lower speed.
		less *= 2
		top -= pace * less / 200
	}
	rate := max(pace-pace*less/100, least)
	w.Update = append(w.Update, set(AttrRate, numberValue(rate)), set(AttrRateTop, numberValue(max(top, rate))))
	return w, true
}

// Spend gives the next part of the budget to the caller. The part begins at the old paid_until,
// which the image of a successful write shows. Spend is refused if paid_until is in the past, or
// further ahead than the caller allows.
func Spend(sink string, now Micros, long, ahead time.Duration) Write {
	return Write{Transition: SPEND, Doc: HealthRow(sink), Cond: []Clause{
		known(),
		must(AttrPaidUntil, AtLeast, timeValue(now)),
		must(AttrPaidUntil, AtMost, timeValue(now.Add(ahead))),
	}, Update: []Action{
		{Verb: Add, Attr: AttrPaidUntil, Val: numberValue(long.Microseconds())},
		{Verb: Add, Attr: AttrPaid, Val: numberValue(long.Microseconds())},
	}}
}

// SpendFirst gives time from now on to the caller. It is refused if flights have already taken time
// from now on. A paid_until so far ahead that only a wrong clock can have written it does not
// count.
func SpendFirst(sink string, now Micros, long time.Duration) Write {
	return Write{Transition: SPENDFirst, Doc: HealthRow(sink), Cond: []Clause{
		known(),
		absentOrOver(AttrPaidUntil, now, forgotten),
	}, Update: []Action{
		set(AttrPaidUntil, timeValue(now.Add(long))),
		{Verb: Add, Attr: AttrPaid, Val: numberValue(long.Microseconds())},
	}}
}

// Yield returns time of the budget that a flight took and does not use. Yield removes the time at
// the end, because other flights own the parts in between. It is refused if flights have taken less
// than that time from now on.
func Yield(sink string, now Micros, long time.Duration) Write {
	return Write{Transition: YIELD, Doc: HealthRow(sink), Cond: []Clause{
		known(),
		must(AttrPaidUntil, AtLeast, timeValue(now.Add(long))),
	}, Update: []Action{
		{Verb: Add, Attr: AttrPaidUntil, Val: numberValue(-long.Microseconds())},
		{Verb: Add, Attr: AttrPaid, Val: numberValue(-long.Microseconds())},
	}}
}

// SendBurst bounds a burst to a sink with a ceiling. If no documents were sent before, the
// documents of this much time may be sent at once. One document may always be sent.
const SendBurst = time.Second

// Send counts documents before they are sent to a sink with a ceiling. long is the time that the
// documents take at the ceiling. Each write moves sent_until by this time, and sent_until may be
// [SendBurst] ahead of now. So in any time T, at most the documents of T plus SendBurst are sent.
// The write is refused if the documents have to wait.
//
// r is the row as it was last read. It decides the form of the write. The count starts at now if
// sent_until is in the past, or so far ahead that only a wrong clock can have written it.
func Send(sink string, r Row, now Micros, long time.Duration) Write {
	w := Write{Transition: SEND, Doc: HealthRow(sink), Cond: []Clause{
		known(),
		must(AttrSentUntil, AtLeast, timeValue(now)),
		must(AttrSentUntil, AtMost, timeValue(now.Add(max(SendBurst-long, 0)))),
	}, Update: []Action{{Verb: Add, Attr: AttrSentUntil, Val: numberValue(long.Microseconds())}}}
	if filled := r.SentUntil; filled < now || filled > now.Add(forgotten) {
		w.Transition, w.Update = SENDFirst, []Action{set(AttrSentUntil, timeValue(now.Add(long)))}
		w.Cond = []Clause{known(), absentOrOver(AttrSentUntil, now, forgotten)}
	}
	return w
}

// SendAfter returns how long documents have to wait before they may be sent. long is the time that
// they take at the ceiling.
func SendAfter(r Row, now Micros, long time.Duration) time.Duration {
	ahead := r.SentUntil.Sub(now)
	if ahead > forgotten {
		return 0 // a clock that was far ahead wrote sent_until
	}
	return max(ahead-max(SendBurst-long, 0), 0)
}

// Ahead returns how much time of the budget flights have taken from now on.
func Ahead(r Row, now Micros) time.Duration {
	if ahead := r.PaidUntil.Sub(now); ahead <= forgotten {
		return max(ahead, 0)
	}
	return 0 // a clock that was far ahead wrote paid_until
}
