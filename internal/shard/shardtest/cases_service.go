package shardtest

import (
	"github.com/lullhq/lull/internal/shard"
)

func openUntil(m shard.Micros) change  { return func(r *shard.Row) { r.OpenUntil = m } }
func probeUntil(m shard.Micros) change { return func(r *shard.Row) { r.ProbeUntil = m } }

func healthCases() []Case {
	open := shard.Row{OpenUntil: now - 1, Level: 2, ProbeUntil: now - 1, LastWrite: begin}
	trip := &table{write: shard.Trip("sink", now, until, 3), base: open}
	tripped := shard.Row{OpenUntil: until, Level: 3, LastWrite: begin}
	trip.add(
		allowed("when the circuit's time is over: it opens wider, and the probe is over", tripped),
		allowed("when the circuit is closed", tripped, openUntil(0), func(r *shard.Row) { r.Level = 0 }),
		refused("when somebody has just opened it", openUntil(until)),
		refused("in the last microsecond of its time", openUntil(now)),
		foreign,
	)

	probe := &table{write: shard.Probe("sink", now, until), base: open}
	of := func(changes ...change) shard.Row { return with(with(open, probeUntil(until)), changes...) }
	probe.add(
		allowed("when the circuit's time is over and the last prober's too", of()),
		allowed("where nobody probed yet", of(), probeUntil(0)),
		refused("when the circuit is closed", openUntil(0)),
		refused("while the circuit is open", openUntil(until)),
		refused("in the last microsecond of the circuit's time", openUntil(now)),
		refused("while another one probes", probeUntil(until)),
		refused("in the last microsecond of another one's probe", probeUntil(now)),
		foreign,
	)

	shut := &table{write: shard.Close("sink", until, now), base: with(open, probeUntil(until))}
	shut.add(
		allowed("to the prober: the circuit is closed, and since when is noted", shard.Row{LastWrite: now}),
		refused("to a prober whose time another one took", probeUntil(until+1)),
		refused("to a prober who took the time of another one", probeUntil(until-1)),
		refused("when the circuit opened anew meanwhile", probeUntil(0)),
		foreign,
	)
	return append(append(trip.cases, probe.cases...), shut.cases...)
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
		refused("while another run goes on", lease(until)),
		refused("in the last microsecond of another run", lease(now)),
		refused("within the interval", ranAt(now.Add(-second)+1)),
		foreign,
	)

	going := shard.Row{Owner: token, LeaseUntil: until, RanAt: at, Cursor: "3:x"}
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
	return append(start.cases, end.cases...)
}
