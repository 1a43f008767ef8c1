// SPDX-License-Identifier: Apache-2.0

package shardtest

import (
	"slices"
	"time"

	"github.com/lullhq/lull/internal/shard"
)

// absurd is how far ahead a time in one of lull's own rows may be and still be believed.
const absurd = 4 * time.Hour

func healthCases() []Case {
	open := shard.Row{OpenUntil: now - 1, Level: 2, ProbeUntil: now - 1, LastWrite: begin}
	tripped := shard.Row{OpenUntil: until, Level: 3, LastWrite: begin}
	of := func(changes ...change) shard.Row { return with(with(open, probeUntil(until)), changes...) }
	stopped, held := with(open, paused(begin), paced), with(open, paced, paused(now))
	recovered := with(shard.Row{Level: 3, LastWrite: begin.Add(-60 * second)}, paused(begin))
	return slices.Concat(cases(shard.Trip("sink", now, until, 3), open,
		allowed("when the open time is over: the circuit opens for longer, and the probe ends", tripped),
		allowed("when the circuit is closed", tripped, openUntil(0), level(0)),
		allowed("if a clock far ahead has opened the circuit", tripped, openUntil(now.Add(absurd)+1)),
		refused("when another invocation has just opened the circuit", openUntil(until)),
		refused("if another invocation has opened the circuit, by a clock that may be right", openUntil(now.Add(absurd))),
		refused("in the last microsecond of the open time", openUntil(now)),
		foreign,
	), cases(shard.Trip("sink", now, until, 3).Because("throttled: unreachable"), open,
		allowed("and the row says why", with(tripped, lastError("throttled: unreachable"))),
		allowed("and the reason replaces an earlier reason", with(tripped, lastError("throttled: unreachable")), lastError("unknown: interrupted")),
	), cases(shard.Probe("sink", now, until), open,
		allowed("when the open time of the circuit and the time of the last prober are over", of()),
		allowed("if no invocation has probed yet", of(), probeUntil(0)),
		allowed("if a clock far ahead has opened the circuit", of(openUntil(now.Add(absurd)+1)),
			openUntil(now.Add(absurd)+1)),
		allowed("if a clock far ahead has probed", of(), probeUntil(now.Add(absurd)+1)),
		refused("when the circuit is closed", openUntil(0)),
		refused("while the circuit is open", openUntil(until)),
		refused("if another invocation has opened the circuit, by a clock that may be right", openUntil(now.Add(absurd))),
		refused("while another invocation probes, by a clock that may be right", probeUntil(now.Add(absurd))),
		refused("in the last microsecond of the open time", openUntil(now)),
		refused("while another invocation probes", probeUntil(until)),
		refused("in the last microsecond of another probe", probeUntil(now)),
		foreign,
	), cases(shard.Close("sink", until, now, 8000), with(open, probeUntil(until), paced),
		allowed("to the prober: the circuit is closed, the row notes the time, and a new budget begins",
			shard.Row{LastWrite: now, Level: 2, Rate: 8000, RateTop: 10_000, RateAt: now}),
		refused("to a prober whose time another prober took", probeUntil(until+1)),
		refused("to a prober who took the time of another prober", probeUntil(until-1)),
		refused("when the circuit opened again in the meantime", probeUntil(0)),
		foreign,
	), cases(shard.Pause("sink", now, "ann", "an index is moved"), with(open, paced),
		allowed("for any circuit and budget, which do not change", held),
		allowed("if there is no health row yet", with(shard.Row{}, paused(now)), nothing),
		refused("if an operator has paused the sink", paused(begin)),
		refused("if an operator has just paused the sink", paused(now)),
		foreign,
	), cases(shard.Pause("sink", now, "ann", ""), with(open, paced),
		allowed("without a reason", with(held, pausedWhy(""))),
	), cases(shard.Resume("sink", stopped, now, openFor), stopped,
		allowed("and a budget begins; the circuit does not change", with(open, lastWrite(now),
			rate(max(shard.Pace(stopped, now), 8000)), rateTop(10_000), rateAt(now))),
		refused("if nothing is paused", pausedAt(0), pausedBy(""), pausedWhy("")),
		refused("of a later pause", paused(begin+1)),
		refused("of an earlier pause", paused(begin-1)),
		foreign,
	), cases(shard.Resume("sink", recovered, now, openFor), recovered,
		allowed("and a level that the sink lost before the pause stays lost",
			shard.Row{LastWrite: now, Rate: 32_000, RateAt: now}),
	))
}

// openFor returns how long a circuit stays open at a level.
func openFor(level int64) time.Duration { return time.Duration(level) * second }

// paused sets the attributes of a pause that began at this time.
func paused(at shard.Micros) change {
	return func(r *shard.Row) { *r = with(*r, pausedAt(at), pausedBy("ann"), pausedWhy("an index is moved")) }
}

func paced(r *shard.Row) {
	r.Rate, r.RateTop, r.RateAt = 7000, 10_000, now.Add(-4*second)
	r.PaidUntil, r.Paid = now.Add(second), 2_500_000
}

func budgetCases() []Case {
	limited := with(shard.Row{LastWrite: begin, Level: 2}, paced)
	pace := shard.Pace(limited, now) // half of the pace was used
	once, _ := shard.Cut("sink", shard.Row{}, now, 3, 5, 0, 0)
	anew, _ := shard.Cut("sink", limited, now, 3, 5, 0, 0)
	begun := shard.Row{LastWrite: begin, Rate: 3000, RateAt: now}
	paidMore := paid(3_500_000)
	less := func(until shard.Micros) shard.Row { return with(limited, paidUntil(until), paid(1_500_000)) }
	return slices.Concat(cases(anew, limited,
		allowed("if the budget is unchanged: a part of the pace remains, and the reserved time does not change", shard.Row{
			LastWrite: begin, Level: 2, Rate: pace/2 - pace/2*24/100, RateTop: pace/2 - pace/2*24/200, RateAt: now,
			PaidUntil: now.Add(second), Paid: 1_000_000,
		}),
		refused("if another invocation has cut the pace since", rateAt(now-1)),
		refused("if another budget was seen", rateAt(now.Add(-4*second)-1)),
		refused("if the budget that was read no longer exists", rateAt(0)),
		foreign,
	), cases(once, shard.Row{LastWrite: begin},
		allowed("for the first time: the documents that passed are the pace", begun),
		allowed("for the first time, with the rest of a budget from long ago", begun, paidUntil(begin),
			rate(1), rateTop(2), paid(3)),
		refused("for the first time, if another invocation has just done so", rateAt(now-1)),
		foreign,
	), cases(shard.Spend("sink", now, second, 4*second), limited,
		allowed("of the time after the reserved time", with(limited, paidUntil(now.Add(2*second)), paidMore)),
		allowed(
			"in the microsecond in which the reserved time ends",
			with(limited, paidUntil(now.Add(second)), paidMore),
			paidUntil(now),
		),
		allowed(
			"up to the horizon",
			with(limited, paidUntil(now.Add(5*second)), paidMore),
			paidUntil(now.Add(4*second)),
		),
		refused("beyond the horizon", paidUntil(now.Add(4*second)+1)),
		refused("of time in the past", paidUntil(now-1)),
		refused("if no time was ever reserved", paidUntil(0)),
		foreign,
	), cases(shard.SpendFirst("sink", now, second), with(limited, paidUntil(now-1)),
		allowed("if the reserved time is past", with(limited, paidUntil(now.Add(second)), paidMore)),
		allowed("if no time was ever reserved", with(limited, paidUntil(now.Add(second)), paidMore), paidUntil(0)),
		allowed("if a clock far ahead has reserved time", with(limited, paidUntil(now.Add(second)), paidMore),
			paidUntil(now.Add(180*second)+1)),
		refused("if time is reserved", paidUntil(now.Add(second))),
		refused("if time is reserved, by a clock that may be right", paidUntil(now.Add(180*second))),
		refused("in the last microsecond of the reserved time", paidUntil(now)),
		foreign,
	), cases(shard.Yield("sink", now, second), with(limited, paidUntil(now.Add(2*second))),
		allowed("of the end of the reserved time", less(now.Add(second))),
		allowed("of all reserved time", less(now), paidUntil(now.Add(second))),
		refused("of more than the reserved time", paidUntil(now.Add(second)-1)),
		refused("if no time was ever reserved", paidUntil(0)),
		foreign,
	), sendCases())
}

// sendCases makes cases in which documents take a quarter of a second each time. So sent_until may
// be three quarters of a second ahead.
func sendCases() []Case {
	const long = second / 4
	going := with(shard.Row{LastWrite: begin, Level: 2}, paced, sentUntil(now.Add(long)))
	filled := with(going, sentUntil(now.Add(long)))
	return slices.Concat(cases(shard.Send("sink", going, now, long), going,
		allowed("if there is enough time before the burst ends", with(going, sentUntil(now.Add(2*long)))),
		allowed("up to the burst", with(going, sentUntil(now.Add(second))), sentUntil(now.Add(3*long))),
		allowed("in the microsecond in which the counted time ends", with(going, sentUntil(now.Add(long))), sentUntil(now)),
		refused("beyond the burst", sentUntil(now.Add(3*long)+1)),
		refused("if the counted time is past", sentUntil(now-1)),
		refused("if nothing was ever counted", sentUntil(0)),
		foreign,
	), cases(shard.Send("sink", going, now, 2*second), going,
		allowed("of more than the burst, if nothing was counted before", with(going, sentUntil(now.Add(2*second))),
			sentUntil(now)),
		refused("of more than the burst, if anything was counted before", sentUntil(now+1)),
	), cases(shard.Send("sink", shard.Row{}, now, long), with(going, sentUntil(now-1)),
		allowed("if the counted time is past", filled),
		allowed("if nothing was ever counted", filled, sentUntil(0)),
		allowed("if a clock far ahead has counted", filled, sentUntil(now.Add(180*second)+1)),
		refused("if something was counted", sentUntil(now.Add(long))),
		refused("if something was counted, by a clock that may be right", sentUntil(now.Add(180*second))),
		refused("in the last microsecond of the counted time", sentUntil(now)),
		foreign,
	))
}

func rebuildCases() []Case {
	paced := with(shard.Row{LastWrite: begin, Level: 2}, paced)
	going := with(paced, rebuildOf("content"), rebuildInto("content.r2"), rebuiltAt(at))
	return slices.Concat(cases(shard.Rebuild("sink", "content", "content.r2", at), paced,
		allowed("if nothing is being rebuilt; the circuit and the budget do not change", going),
		allowed("and removes the attributes of an older rebuild", going, missed(3), sealed(now)),
		refused("if a collection is already being rebuilt", rebuiltAt(at-1)),
		foreign,
	), cases(shard.Miss("sink", at), going,
		allowed("for the first time", with(going, missed(1))),
		allowed("a second time", with(going, missed(4)), missed(3)),
		refused("while the name is switched", sealed(begin)),
		refused("of a later rebuild", rebuiltAt(at+1)),
		refused("of an earlier rebuild", rebuiltAt(at-1)),
		refused("if nothing is rebuilt any more", rebuiltAt(0)),
		foreign,
	), cases(shard.Seal("sink", at, 3, now), with(going, missed(3)),
		allowed("if nothing was missed since", with(going, missed(3), sealed(now))),
		refused("if a write was missed since", missed(4)),
		refused("if fewer writes were missed", missed(2)),
		refused("if the count was lost", missed(0)),
		refused("if the rebuild is already sealed", sealed(begin)),
		refused("of a later rebuild", rebuiltAt(at+1)),
		refused("of an earlier rebuild", rebuiltAt(at-1)),
		foreign,
	), cases(shard.Seal("sink", at, 0, now), going,
		allowed("if nothing was ever missed", with(going, sealed(now))),
		refused("if the first write was missed since", missed(1)),
	), cases(shard.Unseal("sink", at, begin), with(going, missed(3), sealed(begin)),
		allowed("of the seal that was read; missed writes still count", with(going, missed(3))),
		refused("of a later switch", sealed(begin+1)),
		refused("of an earlier switch", sealed(begin-1)),
		refused("of a later rebuild", rebuiltAt(at+1)),
		refused("of an earlier rebuild", rebuiltAt(at-1)),
		foreign,
	), cases(shard.Rebuilt("sink", at), with(going, missed(3), sealed(begin)),
		allowed("and removes all attributes of the rebuild", paced),
		refused("of a later rebuild", rebuiltAt(at+1)),
		refused("of an earlier rebuild", rebuiltAt(at-1)),
		foreign,
	))
}

func runCases() []Case {
	last := shard.Row{Owner: other, LeaseUntil: now - 1, RanAt: now.Add(-second), Cursor: "3:x"}
	of := func(changes ...change) shard.Row {
		return with(with(last, owner(token), lease(until), ranAt(now)), changes...)
	}

	going := shard.Row{Owner: token, LeaseUntil: until, RanAt: at, Cursor: "3:x"}
	return slices.Concat(cases(shard.StartRun("prune", token, now, until, second), last,
		allowed("after the interval; the cursor stays", of()),
		allowed("for the first time", of(cursor("")), owner(""), lease(0), ranAt(0),
			cursor("")),
		allowed("if the last run ended", of(), owner(""), lease(0)),
		allowed("if the last start is not known", of(), ranAt(0)),
		allowed("if a clock far ahead ran", of(), lease(now.Add(absurd)+1), ranAt(now.Add(absurd)+1)),
		refused("while another run is under way", lease(until)),
		refused("while another run is under way, by a clock that may be right", lease(now.Add(absurd))),
		refused("if a clock that may be right ran", ranAt(now.Add(absurd))),
		refused("in the last microsecond of another run", lease(now)),
		refused("within the interval", ranAt(now.Add(-second)+1)),
		foreign,
	), cases(shard.SaveRun("prune", token, until+1, "7:y"), going,
		allowed("to the run that is under way", shard.Row{Owner: token, LeaseUntil: until + 1, RanAt: at, Cursor: "7:y"}),
		owned,
		foreign,
	), cases(shard.EndRun("prune", token, "7:y"), going,
		allowed("to the run that is under way; the row keeps the cursor for the next run", shard.Row{RanAt: at, Cursor: "7:y"}),
		owned,
		foreign,
	), cases(shard.EndRun("prune", token, ""), going,
		allowed("and forgets the cursor if the pass is complete", shard.Row{RanAt: at}),
		owned,
	))
}

func objectCases() []Case {
	row := shard.Row{RanAt: at, Cursor: `{"part":1}`, ExpiresAt: expires}
	object := shard.ObjectRow("search", "b", "k")
	advanceBase := row
	return slices.Concat(cases(shard.Advance(object, at, now, `{"part":2}`, expires+1), advanceBase,
		allowed("if the cursor has not changed since", shard.Row{RanAt: now, Cursor: `{"part":2}`, ExpiresAt: expires + 1}),
		refused("if another reader has moved the cursor since", ranAt(at+1)),
		refused("if an earlier row exists", ranAt(at-1)),
		refused("if the row no longer exists", ranAt(0)),
		foreign,
	), cases(shard.Advance(object, 0, now, `{"part":0}`, expires), shard.Row{},
		allowed("if nothing was read before", shard.Row{RanAt: now, Cursor: `{"part":0}`, ExpiresAt: expires}),
		refused("if another reader has started", ranAt(at)),
		foreign,
	))
}
