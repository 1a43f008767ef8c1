package shardtest

import (
	"slices"
	"time"

	"github.com/lullhq/lull/internal/shard"
)

func openUntil(m shard.Micros) change  { return func(r *shard.Row) { r.OpenUntil = m } }
func probeUntil(m shard.Micros) change { return func(r *shard.Row) { r.ProbeUntil = m } }

// absurd is how far ahead a time in a row of lull's own may lie and still be believed.
const absurd = 4 * time.Hour

func healthCases() []Case {
	open := shard.Row{OpenUntil: now - 1, Level: 2, ProbeUntil: now - 1, LastWrite: begin}
	trip := &table{write: shard.Trip("sink", now, until, 3), base: open}
	tripped := shard.Row{OpenUntil: until, Level: 3, LastWrite: begin}
	trip.add(
		allowed("when the circuit's time is over: it opens wider, and the probe is over", tripped),
		allowed("when the circuit is closed", tripped, openUntil(0), func(r *shard.Row) { r.Level = 0 }),
		allowed("where a clock far ahead has opened it", tripped, openUntil(now.Add(absurd)+1)),
		refused("when somebody has just opened it", openUntil(until)),
		refused("where somebody has opened it, by a clock that may be right", openUntil(now.Add(absurd))),
		refused("in the last microsecond of its time", openUntil(now)),
		foreign,
	)

	probe := &table{write: shard.Probe("sink", now, until), base: open}
	of := func(changes ...change) shard.Row { return with(with(open, probeUntil(until)), changes...) }
	probe.add(
		allowed("when the circuit's time is over and the last prober's too", of()),
		allowed("where nobody probed yet", of(), probeUntil(0)),
		allowed("where a clock far ahead has opened it", of(openUntil(now.Add(absurd)+1)),
			openUntil(now.Add(absurd)+1)),
		allowed("where a clock far ahead has probed", of(), probeUntil(now.Add(absurd)+1)),
		refused("when the circuit is closed", openUntil(0)),
		refused("while the circuit is open", openUntil(until)),
		refused("where somebody has opened it, by a clock that may be right", openUntil(now.Add(absurd))),
		refused("while another one probes, by a clock that may be right", probeUntil(now.Add(absurd))),
		refused("in the last microsecond of the circuit's time", openUntil(now)),
		refused("while another one probes", probeUntil(until)),
		refused("in the last microsecond of another one's probe", probeUntil(now)),
		foreign,
	)

	shut := &table{write: shard.Close("sink", until, now, 8000), base: with(open, probeUntil(until), paced)}
	shut.add(
		allowed("to the prober: the circuit is closed, since when is noted, and a new budget begins",
			shard.Row{LastWrite: now, Level: 2, Rate: 8000, RateTop: 10_000, RateAt: now}),
		refused("to a prober whose time another one took", probeUntil(until+1)),
		refused("to a prober who took the time of another one", probeUntil(until-1)),
		refused("when the circuit opened anew meanwhile", probeUntil(0)),
		foreign,
	)
	stopped := with(open, paused(begin), paced)
	pause := &table{write: shard.Pause("sink", now, "ann", "an index is moved"), base: with(open, paced)}
	held := with(open, paced, paused(now))
	pause.add(
		allowed("whatever the circuit and the budget are, which stay", held),
		allowed(
			"where there is no health row yet",
			with(shard.Row{}, paused(now)),
			func(r *shard.Row) { *r = shard.Row{} },
		),
		refused("where somebody has paused it", paused(begin)),
		refused("where somebody has just paused it", paused(now)),
		foreign,
	)
	pause.write = shard.Pause("sink", now, "ann", "")
	pause.add(allowed("without a reason", with(held, func(r *shard.Row) { r.PausedWhy = "" })))

	resume := &table{write: shard.Resume("sink", stopped, now, openFor), base: stopped}
	resume.add(
		allowed("and a budget begins; the circuit stays as it is", with(open, func(r *shard.Row) {
			r.LastWrite, r.Rate, r.RateTop, r.RateAt = now, max(shard.Pace(stopped, now), 8000), 10_000, now
		})),
		refused("where nothing is paused", paused(0)),
		refused("of a later pause", paused(begin+1)),
		refused("of an earlier pause", paused(begin-1)),
		foreign,
	)
	recovered := with(shard.Row{Level: 3, LastWrite: begin.Add(-60 * second)}, paused(begin))
	resume.write, resume.base = shard.Resume("sink", recovered, now, openFor), recovered
	resume.add(allowed("and a level that the sink lost before the pause is lost",
		shard.Row{LastWrite: now, Rate: 32_000, RateAt: now}))
	return slices.Concat(trip.cases, probe.cases, shut.cases, pause.cases, resume.cases)
}

// openFor is how long a circuit is open at a level.
func openFor(level int64) time.Duration { return time.Duration(level) * second }

func paused(at shard.Micros) change {
	return func(r *shard.Row) {
		if r.PausedAt, r.PausedBy, r.PausedWhy = at, "ann", "an index is moved"; at == 0 {
			r.PausedBy, r.PausedWhy = "", ""
		}
	}
}

func paced(r *shard.Row) {
	r.Rate, r.RateTop, r.RateAt = 7000, 10_000, now.Add(-4*second)
	r.PaidUntil, r.Paid = now.Add(second), 2_500_000
}
func rateAt(m shard.Micros) change    { return func(r *shard.Row) { r.RateAt = m } }
func paidUntil(m shard.Micros) change { return func(r *shard.Row) { r.PaidUntil = m } }
func paidMore(r *shard.Row)           { r.Paid = 3_500_000 }

func budgetCases() []Case {
	limited := with(shard.Row{LastWrite: begin, Level: 2}, paced)
	pace := shard.Pace(limited, now) // of which half was used
	w, _ := shard.Cut("sink", limited, now, 3, 5, 0)
	cut := &table{write: w, base: limited}
	cut.add(
		allowed("of what was seen: a part of the pace is left, and what is spoken for stays", shard.Row{
			LastWrite: begin, Level: 2, Rate: pace/2 - pace/2*24/100, RateTop: pace/2 - pace/2*24/200, RateAt: now,
			PaidUntil: now.Add(second), Paid: 1_000_000,
		}),
		refused("where somebody has cut since", rateAt(now-1)),
		refused("where another budget was seen", rateAt(now.Add(-4*second)-1)),
		refused("where the budget that was seen is gone", rateAt(0)),
		foreign,
	)
	w, _ = shard.Cut("sink", shard.Row{}, now, 3, 5, 0)
	first := &table{write: w, base: shard.Row{LastWrite: begin}}
	of := func(...change) shard.Row { return shard.Row{LastWrite: begin, Rate: 3000, RateAt: now} }
	first.add(
		allowed("for the first time: what went through is the pace", of()),
		allowed("for the first time, beside what is left of a budget long ago", of(), paidUntil(begin),
			func(r *shard.Row) { r.Rate, r.RateTop, r.Paid = 1, 2, 3 }),
		refused("for the first time, where somebody has just done so", rateAt(now-1)),
		foreign,
	)

	spend := &table{write: shard.Spend("sink", now, second, 4*second), base: limited}
	spend.add(
		allowed("of the time that follows what is spoken for", with(limited, paidUntil(now.Add(2*second)), paidMore)),
		allowed(
			"in the microsecond in which that ends",
			with(limited, paidUntil(now.Add(second)), paidMore),
			paidUntil(now),
		),
		allowed(
			"up to the horizon",
			with(limited, paidUntil(now.Add(5*second)), paidMore),
			paidUntil(now.Add(4*second)),
		),
		refused("beyond the horizon", paidUntil(now.Add(4*second)+1)),
		refused("of time that is past", paidUntil(now-1)),
		refused("where none was ever spoken for", paidUntil(0)),
		foreign,
	)
	begun := &table{write: shard.SpendFirst("sink", now, second), base: with(limited, paidUntil(now-1))}
	begun.add(
		allowed("where what was spoken for is past", with(limited, paidUntil(now.Add(second)), paidMore)),
		allowed("where none was ever spoken for", with(limited, paidUntil(now.Add(second)), paidMore), paidUntil(0)),
		allowed("where a clock far ahead has done so", with(limited, paidUntil(now.Add(second)), paidMore),
			paidUntil(now.Add(180*second)+1)),
		refused("where time is spoken for", paidUntil(now.Add(second))),
		refused("where time is spoken for, by a clock that may be right", paidUntil(now.Add(180*second))),
		refused("in the last microsecond of it", paidUntil(now)),
		foreign,
	)
	yield := &table{write: shard.Yield("sink", now, second), base: with(limited, paidUntil(now.Add(2*second)))}
	less := func(until shard.Micros) shard.Row {
		return with(limited, paidUntil(until), func(r *shard.Row) { r.Paid = 1_500_000 })
	}
	yield.add(
		allowed("of the end of what is spoken for", less(now.Add(second))),
		allowed("of all that is spoken for", less(now), paidUntil(now.Add(second))),
		refused("of more than is spoken for", paidUntil(now.Add(second)-1)),
		refused("where none was ever spoken for", paidUntil(0)),
		foreign,
	)
	return slices.Concat(cut.cases, first.cases, spend.cases, begun.cases, yield.cases, sendCases())
}

func sentUntil(m shard.Micros) change { return func(r *shard.Row) { r.SentUntil = m } }

// sendCases count documents that fill a quarter of a second each time: three quarters may be ahead.
func sendCases() []Case {
	const long = second / 4
	going := with(shard.Row{LastWrite: begin, Level: 2}, paced, sentUntil(now.Add(long)))
	more := &table{write: shard.Send("sink", going, now, long), base: going}
	more.add(
		allowed("where there is room before the burst ends", with(going, sentUntil(now.Add(2*long)))),
		allowed("up to the burst", with(going, sentUntil(now.Add(second))), sentUntil(now.Add(3*long))),
		allowed("in the microsecond in which what went ends", with(going, sentUntil(now.Add(long))), sentUntil(now)),
		refused("beyond the burst", sentUntil(now.Add(3*long)+1)),
		refused("where what went is past", sentUntil(now-1)),
		refused("where nothing ever went", sentUntil(0)),
		foreign,
	)
	more.write = shard.Send("sink", going, now, 2*second)
	more.add(
		allowed("of more than the burst, where nothing went before", with(going, sentUntil(now.Add(2*second))),
			sentUntil(now)),
		refused("of more than the burst, where anything did", sentUntil(now+1)),
	)
	first := &table{write: shard.Send("sink", shard.Row{}, now, long), base: with(going, sentUntil(now-1))}
	filled := with(going, sentUntil(now.Add(long)))
	first.add(
		allowed("where what went is past", filled),
		allowed("where nothing ever went", filled, sentUntil(0)),
		allowed("where a clock far ahead has counted", filled, sentUntil(now.Add(180*second)+1)),
		refused("where something went", sentUntil(now.Add(long))),
		refused("where something went, by a clock that may be right", sentUntil(now.Add(180*second))),
		refused("in the last microsecond that it fills", sentUntil(now)),
		foreign,
	)
	return slices.Concat(more.cases, first.cases)
}

func rebuiltAt(m shard.Micros) change { return func(r *shard.Row) { r.RebuildAt = m } }
func missed(n int64) change           { return func(r *shard.Row) { r.RebuildMissed = n } }
func sealed(m shard.Micros) change    { return func(r *shard.Row) { r.RebuildSeal = m } }

func rebuildCases() []Case {
	paced := with(shard.Row{LastWrite: begin, Level: 2}, paced)
	going := with(paced, func(r *shard.Row) { r.RebuildOf, r.RebuildInto, r.RebuildAt = "content", "content.r2", at })

	announce := &table{write: shard.Rebuild("sink", "content", "content.r2", at), base: paced}
	announce.add(
		allowed("where nothing is rebuilt; the circuit and the budget stay", going),
		allowed("and forgets what an older program left", going, missed(3), sealed(now)),
		refused("where something is rebuilt", rebuiltAt(at-1)),
		foreign,
	)
	miss := &table{write: shard.Miss("sink", at), base: going}
	miss.add(
		allowed("for the first time", with(going, missed(1))),
		allowed("once more", with(going, missed(4)), missed(3)),
		refused("while the name is switched", sealed(begin)),
		refused("of a later rebuild", rebuiltAt(at+1)),
		refused("of an earlier rebuild", rebuiltAt(at-1)),
		refused("where nothing is rebuilt any more", rebuiltAt(0)),
		foreign,
	)
	shut := &table{write: shard.Seal("sink", at, 3, now), base: with(going, missed(3))}
	shut.add(
		allowed("where nothing was missed since", with(going, missed(3), sealed(now))),
		refused("where a write was missed since", missed(4)),
		refused("where fewer were missed", missed(2)),
		refused("where the count was lost", missed(0)),
		refused("where it is closed", sealed(begin)),
		refused("of a later rebuild", rebuiltAt(at+1)),
		refused("of an earlier rebuild", rebuiltAt(at-1)),
		foreign,
	)
	shut.write, shut.base = shard.Seal("sink", at, 0, now), going
	shut.add(
		allowed("where nothing was ever missed", with(going, sealed(now))),
		refused("where the first write was missed since", missed(1)),
	)
	open := &table{write: shard.Unseal("sink", at, begin), base: with(going, missed(3), sealed(begin))}
	open.add(
		allowed("that was read; what was missed still counts", with(going, missed(3))),
		refused("of a later switch", sealed(begin+1)),
		refused("of an earlier switch", sealed(begin-1)),
		refused("of a later rebuild", rebuiltAt(at+1)),
		refused("of an earlier rebuild", rebuiltAt(at-1)),
		foreign,
	)
	end := &table{write: shard.Rebuilt("sink", at), base: with(going, missed(3), sealed(begin))}
	end.add(
		allowed("and leaves nothing of it", paced),
		refused("of a later rebuild", rebuiltAt(at+1)),
		refused("of an earlier rebuild", rebuiltAt(at-1)),
		foreign,
	)
	return slices.Concat(announce.cases, miss.cases, shut.cases, open.cases, end.cases)
}

func ranAt(m shard.Micros) change { return func(r *shard.Row) { r.RanAt = m } }

func runCases() []Case {
	last := shard.Row{Owner: other, LeaseUntil: now - 1, RanAt: now.Add(-second), Cursor: "3:x"}
	start := &table{write: shard.StartRun("prune", token, now, until, second), base: last}
	of := func(changes ...change) shard.Row {
		return with(with(last, owner(token), lease(until), ranAt(now)), changes...)
	}
	start.add(
		allowed("after the interval; the cursor stays", of()),
		allowed("for the first time", of(func(r *shard.Row) { r.Cursor = "" }), owner(""), lease(0), ranAt(0),
			func(r *shard.Row) { r.Cursor = "" }),
		allowed("where the last run ended", of(), owner(""), lease(0)),
		allowed("where the last start is not known", of(), ranAt(0)),
		allowed("where a clock far ahead ran", of(), lease(now.Add(absurd)+1), ranAt(now.Add(absurd)+1)),
		refused("while another run goes on", lease(until)),
		refused("while another run goes on, by a clock that may be right", lease(now.Add(absurd))),
		refused("where a clock that may be right ran", ranAt(now.Add(absurd))),
		refused("in the last microsecond of another run", lease(now)),
		refused("within the interval", ranAt(now.Add(-second)+1)),
		foreign,
	)

	going := shard.Row{Owner: token, LeaseUntil: until, RanAt: at, Cursor: "3:x"}
	save := &table{write: shard.SaveRun("prune", token, until+1, "7:y"), base: going}
	save.add(
		allowed("to the one that runs", shard.Row{Owner: token, LeaseUntil: until + 1, RanAt: at, Cursor: "7:y"}),
		owned,
		foreign,
	)
	end := &table{write: shard.EndRun("prune", token, "7:y"), base: going}
	end.add(
		allowed("to the one that runs; it keeps where the next one goes on", shard.Row{RanAt: at, Cursor: "7:y"}),
		owned,
		foreign,
	)
	end.write = shard.EndRun("prune", token, "")
	end.add(
		allowed("and forgets the cursor where the pass is complete", shard.Row{RanAt: at}),
		owned,
	)
	return slices.Concat(start.cases, save.cases, end.cases)
}

func objectCases() []Case {
	row := shard.Row{RanAt: at, Cursor: `{"part":1}`, ExpiresAt: expires}
	object := shard.ObjectRow("search", "b", "k")
	advance := &table{write: shard.Advance(object, at, now, `{"part":2}`, expires+1), base: row}
	advance.add(
		allowed("where nobody has changed it since", shard.Row{RanAt: now, Cursor: `{"part":2}`, ExpiresAt: expires + 1}),
		refused("where somebody has read on since", ranAt(at+1)),
		refused("where a row before it is there", ranAt(at-1)),
		refused("where there is none any more", ranAt(0)),
		foreign,
	)
	advance.write = shard.Advance(object, 0, now, `{"part":0}`, expires)
	advance.base = shard.Row{}
	advance.add(
		allowed("where nothing was read before", shard.Row{RanAt: now, Cursor: `{"part":0}`, ExpiresAt: expires}),
		refused("where somebody has begun", ranAt(at)),
		foreign,
	)
	return advance.cases
}
