package shardtest

import (
	"fmt"
	"slices"

	"github.com/lullhq/lull/internal/shard"
)

// waiting is a row on which nobody works.
var waiting = shard.Row{
	VersionClass: shard.ClassInt, Pending: k2, Committed: k1, CommittedOp: shard.Put, Claimed: k1, Dead: k1,
	BurstStart: begin,
	Flight:     "flight", LeaseUntil: at, LastWrite: begin, Refusals: 3, LastError: "throttled",
}

func parkCases() []Case {
	b := &table{write: shard.Park("", k2, now, expires, waiting), base: waiting}
	after := with(waiting, pending(""), burst(0), dead(k2), func(r *shard.Row) { r.Flight, r.ExpiresAt = "", expires })
	of := func(changes ...change) shard.Row { return with(after, changes...) }
	b.add(
		allowed("when it is pending: the row is settled", after),
		allowed("where nothing was committed", of(committed("")), committed("")),
		refused("when it was committed", committed(k2)),
		refused("when a newer version was committed", committed(k3)),
		refused("when a newer version is pending: it has another form", pending(k3)),
		refused("when an older version is pending", pending(k1)),
		refused("when nothing is pending", pending("")),
		leased(of),
		foreign,
	)
	return b.cases
}

func parkNotPendingCases() []Case {
	base := with(waiting, pending(k1))
	b := &table{write: shard.Park("", k2, now, expires, base), base: base}
	of := func(changes ...change) shard.Row { return with(with(base, dead(k2)), changes...) }
	b.add(
		allowed("when only an older version is pending, which goes on waiting", of()),
		allowed("where nothing was committed", of(committed("")), committed("")),
		allowed("where nothing is pending any more", of(pending("")), pending("")),
		refused("when it was committed", committed(k2)),
		refused("when a newer version was committed", committed(k3)),
		refused("when it is pending: the row would never settle", pending(k2)),
		refused("when a newer version is pending", pending(k3)),
		leased(of),
		foreign,
	)

	b.write = shard.Park("", k2, now, expires, shard.Row{})
	b.cases = append(b.cases, Case{
		Name: "is allowed where there is no row, and gives it a time to expire", Write: b.write, Allowed: true,
		After: shard.Row{Dead: k2, ExpiresAt: expires},
	})
	settled := shard.Row{Committed: k1, ExpiresAt: expires - 1}
	b.cases = append(b.cases, Case{
		Name: "is allowed in a settled row, whose time to expire stays", Write: b.write, Allowed: true,
		Before: settled, After: with(settled, dead(k2)),
	})
	return b.cases
}

func redriveCases() []Case {
	b := &table{
		write: shard.Redrive("", k2, now),
		base: shard.Row{
			VersionClass: shard.ClassInt, Committed: k1, Pending: k1, Dead: k2, LeaseUntil: at,
			ExpiresAt: expires,
		},
	}
	of := func(changes ...change) shard.Row { return with(with(b.base, dead("")), changes...) }
	b.add(
		allowed("when nobody works on the version: the mark goes", of()),
		allowed("where nothing is pending", of(pending("")), pending("")),
		allowed("where a newer version is pending", of(pending(k3)), pending(k3)),
		refused("while it is pending: somebody works on it", pending(k2)),
		refused("when another version is marked", dead(k3)),
		refused("when an older version is marked", dead(k1)),
		refused("when none is marked", dead("")),
		leased(of),
		foreign,
	)
	return b.cases
}

func reassertCases() []Case {
	b := &table{
		write: shard.Reassert(shard.Bid{Key: k2, Token: token, Now: now, Until: until}),
		base: shard.Row{
			VersionClass: shard.ClassInt, Committed: k2, CommittedOp: shard.Delete, LastWrite: at,
			ExpiresAt: expires,
		},
	}
	of := func(changes ...change) shard.Row { return with(with(b.base, owner(token), lease(until)), changes...) }
	b.add(
		allowed("when the delete is still the newest: the lease is ours", of()),
		allowed("where its own version stands pending", of(pending(k2)), pending(k2)),
		refused("when a newer version waits: it will be written anyway", pending(k3)),
		refused("when a newer version is committed", func(r *shard.Row) { r.Committed = k3 }),
		refused("when an older version is committed", func(r *shard.Row) { r.Committed = k1 }),
		refused("when the commit was not a delete", func(r *shard.Row) { r.CommittedOp = shard.Put }),
		refused("when the commit was an operation that we do not know", func(r *shard.Row) { r.CommittedOp = "archive" }),
		refused("before the time of the last write, by a clock that is late", lastWrite(now+1)),
		refused("when the last write is as late as this one: the fence must grow",
			func(r *shard.Row) { r.LastWrite = now }),
		allowed("where nothing was written yet by this clock", of(func(r *shard.Row) { r.LastWrite = 0 }),
			func(r *shard.Row) { r.LastWrite = 0 }),
		leased(func(...change) shard.Row { return of() }),
		foreign,
	)
	b.ahead(func(fence shard.Micros) shard.Write {
		return shard.Reassert(shard.Bid{Key: k2, Token: token, Now: now, Until: until, Fence: fence})
	}, of())
	return b.cases
}

func reassertedCases() []Case {
	b := &table{
		write: shard.Reasserted(shard.Lease{Key: k2, Token: token, At: now}),
		base: shard.Row{
			VersionClass: shard.ClassInt, Committed: k2, CommittedOp: shard.Delete, LastWrite: at, Owner: token,
			LeaseUntil: until, ExpiresAt: expires,
		},
	}
	done := with(b.base, owner(""), lease(0), func(r *shard.Row) { r.LastWrite = now })
	b.add(
		allowed("under our lease: its fence is the last write", done),
		owned,
		foreign,
	)
	return b.cases
}

func raiseCases() []Case {
	copied := shard.InSink{Key: k2, Fence: shard.Fence(at)}
	read := shard.Row{
		VersionClass: shard.ClassInt, Pending: k1, Committed: k1, CommittedOp: shard.Delete, Claimed: k1,
		ClaimedWas: k1,
		Dead:       k1, BurstStart: begin, Flight: "flight", Owner: other, LeaseUntil: begin + 2, LastWrite: begin + 1,
		Attempts: 2, Refusals: 3, LastError: "throttled", Content: content1,
	}
	raised := shard.Row{
		VersionClass: shard.ClassInt, Committed: k2, CommittedOp: shard.Put, Dead: k1,
		LastWrite: at, ExpiresAt: expires,
	}
	full := &table{write: shard.Raise(read, copied, now, expires), base: read}
	full.add(
		allowed("as it was read, and settles the row: the next fence is above the copy's", raised),
		allowed("in a row without a class, which it gets", raised, class(0)),
		allowed("where nothing was committed", raised, committed("")),
		allowed("where another version was parked meanwhile", with(raised, dead(k3)), dead(k3)),
		refused("for versions of another class", class(shard.ClassTime)),
		refused("for versions of another class, which sorts before it", class(shard.Class('a'))),
		refused("when the same version is committed", committed(k2)),
		refused("when a newer version is committed", committed(k3)),
		foreign,
	)
	bare := &table{write: shard.Raise(shard.Row{}, copied, now, expires)}
	bare.add(allowed("where there is no row: it makes one", with(raised, dead(""))))
	for _, a := range []shard.Attr{
		shard.AttrPending, shard.AttrClaimed, shard.AttrOwner, shard.AttrLeaseUntil, shard.AttrLastWrite,
	} {
		changes(full, bare, read, a)
	}
	for _, late := range []struct {
		name string
		end  shard.Micros
	}{{"while the row is leased", until}, {"in the last microsecond in which a late request may be applied", now}} {
		leased := with(read, lease(late.end))
		b := &table{write: shard.Raise(leased, copied, now, expires), base: leased}
		b.add(refused(late.name))
		full.cases = append(full.cases, b.cases...)
	}
	for _, above := range []struct {
		name        string
		read, after shard.Row
	}{
		{
			"and leaves what a newer version waits for", with(read, pending(k3)),
			with(raised, pending(k3), burst(begin), func(r *shard.Row) { r.Flight, r.ExpiresAt = "flight", 0 }),
		},
		{
			"and leaves a newer version that was claimed: it may be in the sink", with(read, claimed(k3)),
			with(raised, claimed(k3), claimedWas(k1)),
		},
		{"and keeps a fence of the row that is greater", with(read, lastWrite(at+1)), with(raised, lastWrite(at+1))},
		{"and keeps the end of a lease that is greater", with(read, lease(at+2)), with(raised, lastWrite(at+2))},
	} {
		b := &table{write: shard.Raise(above.read, copied, now, expires), base: above.read}
		b.add(allowed(above.name, above.after))
		full.cases = append(full.cases, b.cases...)
	}
	return append(full.cases, bare.cases...)
}

func resetCases() []Case {
	b := &table{
		write: shard.Reset("", k2, k1, now),
		base: shard.Row{
			VersionClass: shard.ClassInt, Committed: k2, CommittedOp: shard.Delete, Dead: k3, LastWrite: at,
			ExpiresAt: expires,
		},
	}
	done := with(b.base, committed(k1), dead(k2))
	b.add(
		allowed("where nobody works on the document: the last write stays, for the fence", done),
		allowed("and forgets what the sink's bytes are", done, contents(content2)),
		allowed("where a lease ended", with(done, lease(at)), lease(at)),
		allowed("where a lease ended and its owner is still there", with(done, owner(other), lease(at)), owner(other),
			lease(at)),
		refused("where nothing is committed", committed("")),
		refused("when a newer version is committed than the operator saw", committed(k3)),
		refused("when an older version is committed than the operator saw", committed(k1)),
		refused("while a newer version waits", pending(k3)),
		refused("while an older version waits, which no row should show", pending(k1)),
		refused("while a claim may be in the sink", claimed(k3)),
		refused("while the row is leased", lease(until)),
		refused("in the last microsecond of a lease", lease(now)),
		foreign,
	)
	above := &table{write: shard.Reset("", k2, k3, now), base: b.base}
	above.add(refused("to a version above the committed one"))
	same := &table{write: shard.Reset("", k2, k2, now), base: b.base}
	same.add(refused("to the committed version itself"))
	far := &table{write: shard.Reset("", k3, k1, now), base: b.base}
	far.add(refused("when a version between the two is committed"))
	return slices.Concat(b.cases, above.cases, same.cases, far.cases)
}

func collectCases() []Case {
	settled := shard.Row{
		VersionClass: shard.ClassInt, Pending: k1, Committed: k2, CommittedOp: shard.Put, Claimed: k2, Dead: k1,
		BurstStart: begin, Owner: other,
		LeaseUntil: at, LastWrite: begin, ExpiresAt: expires,
	}
	attrs := []shard.Attr{
		shard.AttrCommitted, shard.AttrPending, shard.AttrClaimed, shard.AttrDead, shard.AttrOwner,
		shard.AttrBurstStart,
		shard.AttrLastWrite, shard.AttrExpiresAt,
	}
	var all []Case
	full := &table{write: shard.Collect(settled, now), base: settled}
	full.add(
		allowed("as it was read: the row is gone", shard.Row{}),
		refused("while the row is leased", lease(until)),
		refused("in the last microsecond of a lease", lease(now)),
		allowed("where no lease was ever taken", shard.Row{}, lease(0)),
		refused("for a row of a newer schema", schema(shard.SchemaVersion+1)),
		allowed("for a row that says its schema", shard.Row{}, schema(shard.SchemaVersion)),
	)
	bare := &table{
		write: shard.Collect(shard.Row{VersionClass: shard.ClassInt}, now),
		base:  shard.Row{VersionClass: shard.ClassInt},
	}
	bare.add(allowed("where nothing but the class was read", shard.Row{}))
	for _, a := range attrs {
		changes(full, bare, settled, a)
	}
	all = append(all, full.cases...)
	return append(all, bare.cases...)
}

// changes are the cases of an attribute that must be as it was read: full was read with it, bare
// without.
func changes(full, bare *table, read shard.Row, a shard.Attr) {
	v, _ := read.Get(a)
	changed := v
	changed.Num++
	changed.Text += "x"
	before := v
	before.Num--
	before.Text = "\x00"
	if v.Kind == shard.KindNumber {
		changed.Text, before.Text = "", ""
	} else {
		changed.Num, before.Num = 0, 0
	}
	setTo := func(v shard.Value) change { return func(r *shard.Row) { r.Set(a, v) } }
	full.add(
		refused(fmt.Sprintf("when %s grew since it was read", a), setTo(changed)),
		refused(fmt.Sprintf("when %s shrank since it was read", a), setTo(before)),
		refused(fmt.Sprintf("when %s went since it was read", a), setTo(shard.Value{})),
	)
	bare.add(refused(fmt.Sprintf("when %s came since it was read", a), setTo(v)))
}
