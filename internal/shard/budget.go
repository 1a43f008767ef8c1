package shard

import (
	"math"
	"time"
)

// A sink that throttles has a budget, which all flights share in its health row (ADR 0022). The row
// says how fast documents may go, and until when that speed is handed out already. How fast is a
// function of time, so that growing costs no write. All speeds are thousandths of a document a
// second.
const (
	slowestPace = 500 // below it, a sink counts as one that takes nothing
	noLimit     = 1e8 // from here on nobody has to ask

	// ProbePace is the speed after a probe that nothing but documents can make.
	ProbePace = 1000
	// RestartPace is the speed after a probe that succeeded, after a long outage: see [Restart].
	RestartPace = 8000
	// TripPace is the speed up to which a request of which nothing was applied opens the circuit.
	TripPace = 2000

	// slowStart is how long the speed takes to double, where nothing is known of what the sink
	// takes.
	slowStart = 8 * time.Second
	// cubicScale is the time in which the speed doubles that was reached before the last cut, once
	// it has been reached again.
	cubicScale = 40 * time.Second
	// forgotten is how long after its last cut a budget counts.
	forgotten = 3 * time.Minute
	// cutEvery is the shortest time between two cuts: requests under way still tell of the speed
	// before the last one.
	cutEvery = 3 * time.Second
	// A cut takes so many hundredths: cutMost where the whole request was throttled, at least
	// cutLeast, and twice as much before the speed is back where the last cut was.
	cutMost  = 20
	cutLeast = 3
)

// Pace is how fast documents may go to the sink, 0 for no limit. After a cut it follows the curve
// of TCP CUBIC (RFC 9438): quickly near to what was reached before, slowly past it, then quickly.
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

// Lesser is the lesser of two speeds, where 0 stands for any speed.
func Lesser(a, b int64) int64 {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// SlowStart reports whether the speed is the growing one after a pause or an outage: the sink has
// not throttled since.
func SlowStart(r Row, now Micros) bool { return r.RateTop == 0 && Pace(r, now) > 0 }

// Restart is the speed after a probe that succeeded. After a long outage much has gathered, and a
// sink is cold. A circuit that opened for a second is most often one request without an answer:
// little has gathered, and who began at the slowest pace would be slow for half a minute for each.
// A sink that throttled goes on no faster than before.
func Restart(r Row, now Micros) int64 {
	pace := int64(RestartPace)
	if level := max(r.Level, 1); level <= 3 {
		pace <<= 8 - 2*level // 64, 16 and 4 times as fast
	}
	if known := Pace(r, now); known > 0 {
		pace = min(pace, max(known, RestartPace))
	}
	return pace
}

// Worth is how many documents may go in so much time at a pace.
func Worth(long time.Duration, pace int64) float64 { return long.Seconds() * float64(pace) / 1000 }

// Cost is the time that so many documents take at a pace.
func Cost(documents float64, pace int64) time.Duration {
	return time.Duration(documents * 1000 / float64(pace) * float64(time.Second))
}

// Cut slows everybody down after the sink has throttled a request: it applied so many documents of
// it, and throttled so many. r is the row as it was just read, and ceiling the speed that was never
// exceeded, 0 for none. The write is refused where somebody has cut since. The second result is
// false where the last cut is too young for another one.
func Cut(sink string, r Row, now Micros, applied, throttled int, ceiling int64) (Write, bool) {
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
		// The first cut: what went through is the best guess. Time that somebody had handed out
		// long ago means nothing.
		rate := Lesser(min(max(int64(applied)*1000, slowestPace), noLimit/2), ceiling)
		w.Update = append(w.Update, set(AttrRate, numberValue(rate)))
		w.Update = append(w.Update, remove(AttrRateTop, AttrPaidUntil)...)
		return w, true
	}
	// A pace that was not used says nothing of the sink. The share of the time that was handed out
	// does.
	pace = Lesser(pace, ceiling)
	if used := float64(r.Paid) / float64((since + Ahead(r, now)).Microseconds()); r.Paid > 0 && used < 1 {
		pace = max(int64(float64(pace)*used), slowestPace)
	}
	top, less := pace, max(int64(cutMost*throttled/max(applied+throttled, 1)), cutLeast)
	if r.RateTop == 0 || pace < r.RateTop {
		// The sink takes less than it did: twice as much, and aim lower.
		less *= 2
		top -= pace * less / 200
	}
	rate := max(pace-pace*less/100, slowestPace)
	w.Update = append(w.Update, set(AttrRate, numberValue(rate)), set(AttrRateTop, numberValue(max(top, rate))))
	return w, true
}

// Spend hands out the next time of the budget to the caller: from the old paid_until on, which the
// image of a success shows. It is refused where nothing is handed out beyond now, or where more
// than ahead is.
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

// SpendFirst hands out time from now on, where none is handed out, or where only a clock far ahead
// can have done so.
func SpendFirst(sink string, now Micros, long time.Duration) Write {
	return Write{Transition: SPENDFirst, Doc: HealthRow(sink), Cond: []Clause{
		known(),
		absentOrOver(AttrPaidUntil, now, forgotten),
	}, Update: []Action{
		set(AttrPaidUntil, timeValue(now.Add(long))),
		{Verb: Add, Attr: AttrPaid, Val: numberValue(long.Microseconds())},
	}}
}

// Yield takes back time that was handed out and that nobody uses, so that it is handed out again:
// from the end, because what is handed out in between belongs to others. It is refused where as
// much is not handed out beyond now.
func Yield(sink string, now Micros, long time.Duration) Write {
	return Write{Transition: YIELD, Doc: HealthRow(sink), Cond: []Clause{
		known(),
		must(AttrPaidUntil, AtLeast, timeValue(now.Add(long))),
	}, Update: []Action{
		{Verb: Add, Attr: AttrPaidUntil, Val: numberValue(-long.Microseconds())},
		{Verb: Add, Attr: AttrPaid, Val: numberValue(-long.Microseconds())},
	}}
}

// SendBurst is how much time's worth of documents may go at once to a sink with a ceiling, where
// nothing went before. One document may go in any case.
const SendBurst = time.Second

// Send counts documents that go to a sink with a ceiling, before they go: at the ceiling they fill
// so much time. What went fills the time up to sent_until, which may be [SendBurst] ahead. So in
// any time T goes what fills T and SendBurst, and no more. It is refused where the documents have
// to wait. r is the row as it was read last, which says the form: one begins where nothing that
// went fills the time beyond now, or where only a clock far ahead says so.
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

// SendAfter is how long documents that fill so much time have to wait.
func SendAfter(r Row, now Micros, long time.Duration) time.Duration {
	ahead := r.SentUntil.Sub(now)
	if ahead > forgotten {
		return 0 // a clock far ahead
	}
	return max(ahead-max(SendBurst-long, 0), 0)
}

// Ahead is how much time of the budget is handed out from now on.
func Ahead(r Row, now Micros) time.Duration {
	if ahead := r.PaidUntil.Sub(now); ahead <= forgotten {
		return max(ahead, 0)
	}
	return 0 // a clock far ahead
}
