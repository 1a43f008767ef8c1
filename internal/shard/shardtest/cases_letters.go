package shardtest

import (
	"fmt"

	"github.com/lullhq/lull/internal/shard"
)

// waiting is a row on which nobody works.
var waiting = shard.Row{
	VersionClass: shard.ClassInt, Pending: k2, Committed: k1, CommittedOp: shard.Put, Claimed: k1, Dead: k1,
	BurstStart: begin,
	Flight:     "flight", LeaseUntil: at, LastWrite: begin, Refusals: 3, LastError: "throttled",
}

func parkCases() []Case {
	b := &book{write: shard.Park("", k2, now, expires, waiting), base: waiting}
	after := with(waiting, pending(""), burst(0), dead(k2), func(r *shard.Row) { r.Flight, r.ExpiresAt = "", expires })
	of := func(changes ...change) shard.Row { return with(after, changes...) }
	b.allowed("when it is pending: the row is settled", after)
	b.allowed("where nothing was committed", of(committed("")), committed(""))
	b.refused("when it was committed", committed(k2))
	b.refused("when a newer version was committed", committed(k3))
	b.refused("when a newer version is pending: it has another form", pending(k3))
	b.refused("when an older version is pending", pending(k1))
	b.refused("when nothing is pending", pending(""))
	b.leased(of)
	b.foreign()
	return b.cases
}

func parkNotPendingCases() []Case {
	base := with(waiting, pending(k1))
	b := &book{write: shard.Park("", k2, now, expires, base), base: base}
	of := func(changes ...change) shard.Row { return with(with(base, dead(k2)), changes...) }
	b.allowed("when only an older version is pending, which goes on waiting", of())
	b.allowed("where nothing was committed", of(committed("")), committed(""))
	b.allowed("where nothing is pending any more", of(pending("")), pending(""))
	b.refused("when it was committed", committed(k2))
	b.refused("when a newer version was committed", committed(k3))
	b.refused("when it is pending: the row would never settle", pending(k2))
	b.refused("when a newer version is pending", pending(k3))
	b.leased(of)
	b.foreign()

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
	b := &book{
		write: shard.Redrive("", k2, now),
		base: shard.Row{
			VersionClass: shard.ClassInt, Committed: k1, Pending: k1, Dead: k2, LeaseUntil: at,
			ExpiresAt: expires,
		},
	}
	of := func(changes ...change) shard.Row { return with(with(b.base, dead("")), changes...) }
	b.allowed("when nobody works on the version: the mark goes", of())
	b.allowed("where nothing is pending", of(pending("")), pending(""))
	b.allowed("where a newer version is pending", of(pending(k3)), pending(k3))
	b.refused("while it is pending: somebody works on it", pending(k2))
	b.refused("when another version is marked", dead(k3))
	b.refused("when an older version is marked", dead(k1))
	b.refused("when none is marked", dead(""))
	b.leased(of)
	b.foreign()
	return b.cases
}

func reassertCases() []Case {
	b := &book{
		write: shard.Reassert("", k2, token, now, until),
		base: shard.Row{
			VersionClass: shard.ClassInt, Committed: k2, CommittedOp: shard.Delete, LastWrite: at,
			ExpiresAt: expires,
		},
	}
	of := func(changes ...change) shard.Row { return with(with(b.base, owner(token), lease(until)), changes...) }
	b.allowed("when the delete is still the newest: the lease is ours", of())
	b.allowed("where its own version stands pending", of(pending(k2)), pending(k2))
	b.refused("when a newer version waits: it will be written anyway", pending(k3))
	b.refused("when a newer version is committed", func(r *shard.Row) { r.Committed = k3 })
	b.refused("when an older version is committed", func(r *shard.Row) { r.Committed = k1 })
	b.refused("when the commit was no delete", func(r *shard.Row) { r.CommittedOp = shard.Put })
	b.refused("when the commit was an operation that we do not know", func(r *shard.Row) { r.CommittedOp = "archive" })
	b.refused("before the time of the last write, by a clock that is late", lastWrite(now+1))
	b.refused("when the last write is as late as this one: the fence must grow",
		func(r *shard.Row) { r.LastWrite = now })
	b.allowed("where nothing was written yet by this clock", of(func(r *shard.Row) { r.LastWrite = 0 }),
		func(r *shard.Row) { r.LastWrite = 0 })
	b.leased(func(...change) shard.Row { return of() })
	b.foreign()
	return b.cases
}

func reassertedCases() []Case {
	b := &book{
		write: shard.Reasserted(shard.Lease{Key: k2, Token: token, At: now}),
		base: shard.Row{
			VersionClass: shard.ClassInt, Committed: k2, CommittedOp: shard.Delete, LastWrite: at, Owner: token,
			LeaseUntil: until, ExpiresAt: expires,
		},
	}
	done := with(b.base, owner(""), lease(0), func(r *shard.Row) { r.LastWrite = now })
	b.allowed("under our lease: its fence is the last write", done)
	b.owned()
	b.foreign()
	return b.cases
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
	full := &book{write: shard.Collect(settled, now), base: settled}
	full.allowed("as it was read: the row is gone", shard.Row{})
	full.refused("while the row is leased", lease(until))
	full.refused("in the last microsecond of a lease", lease(now))
	full.allowed("where no lease was ever taken", shard.Row{}, lease(0))
	full.refused("for a row of a newer schema", schema(shard.SchemaVersion+1))
	full.allowed("for a row that says its schema", shard.Row{}, schema(shard.SchemaVersion))
	bare := &book{
		write: shard.Collect(shard.Row{VersionClass: shard.ClassInt}, now),
		base:  shard.Row{VersionClass: shard.ClassInt},
	}
	bare.allowed("where nothing but the class was read", shard.Row{})
	for _, a := range attrs {
		v, _ := settled.Get(a)
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
		full.refused(fmt.Sprintf("when %s grew since it was read", a), setTo(changed))
		full.refused(fmt.Sprintf("when %s shrank since it was read", a), setTo(before))
		full.refused(fmt.Sprintf("when %s went since it was read", a), setTo(shard.Value{}))
		bare.refused(fmt.Sprintf("when %s came since it was read", a), setTo(v))
	}
	all = append(all, full.cases...)
	return append(all, bare.cases...)
}
