// SPDX-License-Identifier: Apache-2.0

package shardtest

import (
	"fmt"
	"slices"

	"github.com/lullhq/lull/internal/shard"
)

// waiting is a row without a lease, with k2 pending.
var waiting = shard.Row{
	VersionClass: shard.ClassInt, Pending: k2, Committed: k1, CommittedOp: shard.Put, Claimed: k1, Dead: k1,
	BurstStart: begin,
	Flight:     "flight", LeaseUntil: at, LastWrite: begin, Refusals: 3, LastError: "throttled",
}

func parkCases() []Case {
	after := with(waiting, pending(""), burst(0), dead(k2), flight(""), expiresAt(expires))
	of := func(changes ...change) shard.Row { return with(after, changes...) }
	return cases(shard.Park("", k2, now, expires, waiting), waiting,
		allowed("when the version is pending: the burst ends", after),
		allowed("if nothing was committed", of(committed("")), committed("")),
		refused("when the version was committed", committed(k2)),
		refused("when a newer version was committed", committed(k3)),
		refused("when a newer version is pending: the write then has another form", pending(k3)),
		refused("when an older version is pending", pending(k1)),
		refused("when nothing is pending", pending("")),
		leased(of),
		foreign,
	)
}

func parkNotPendingCases() []Case {
	base := with(waiting, pending(k1))
	of := func(changes ...change) shard.Row { return with(with(base, dead(k2)), changes...) }
	absent, settled := shard.Row{}, shard.Row{Committed: k1, ExpiresAt: expires - 1}
	return slices.Concat(cases(shard.Park("", k2, now, expires, base), base,
		allowed("when only an older version is pending, which keeps waiting", of()),
		allowed("if nothing was committed", of(committed("")), committed("")),
		allowed("if nothing is pending any more", of(pending("")), pending("")),
		refused("when the version was committed", committed(k2)),
		refused("when a newer version was committed", committed(k3)),
		refused("when the version is pending: its burst would never end", pending(k2)),
		refused("when a newer version is pending", pending(k3)),
		leased(of),
		foreign,
	), cases(shard.Park("", k2, now, expires, absent), absent,
		allowed("if there is no row, and gives it a time to expire", shard.Row{Dead: k2, ExpiresAt: expires}),
	), cases(shard.Park("", k2, now, expires, absent), settled,
		allowed("in a row without a burst, whose time to expire does not change", with(settled, dead(k2))),
		refused("when an older version became pending since the row was read: that row must not expire", pending(k1)),
	))
}

func redriveCases() []Case {
	base := shard.Row{
		VersionClass: shard.ClassInt, Committed: k1, Pending: k1, Dead: k2, LeaseUntil: at,
		ExpiresAt: expires,
	}
	of := func(changes ...change) shard.Row { return with(with(base, dead("")), changes...) }
	return cases(shard.Redrive("", k2, now), base,
		allowed("when no invocation works on the version; the mark is removed", of()),
		allowed("if nothing is pending", of(pending("")), pending("")),
		allowed("if a newer version is pending", of(pending(k3)), pending(k3)),
		refused("while the version is pending: an invocation works on it", pending(k2)),
		refused("when another version is marked", dead(k3)),
		refused("when an older version is marked", dead(k1)),
		refused("when no version is marked", dead("")),
		leased(of),
		foreign,
	)
}

func reassertCases() []Case {
	base := shard.Row{
		VersionClass: shard.ClassInt, Committed: k2, CommittedOp: shard.Delete, LastWrite: at,
		ExpiresAt: expires,
	}
	of := func(changes ...change) shard.Row { return with(with(base, owner(token), lease(until)), changes...) }
	bid := shard.Bid{Key: k2, Token: token, Now: now, Until: until}
	far := bid
	far.Fence = fenceAhead
	return slices.Concat(cases(shard.Reassert(bid), base,
		allowed("when the delete is still the newest: the lease is ours", of()),
		allowed("if the version of the delete is pending", of(pending(k2)), pending(k2)),
		refused("when a newer version waits: it will be written anyway", pending(k3)),
		refused("when a newer version is committed", committed(k3)),
		refused("when an older version is committed", committed(k1)),
		refused("when the commit was not a delete", operation(shard.Put)),
		refused("when the commit was an operation that is not known", operation("archive")),
		refused("before the time of the last write, by a clock that is behind", lastWrite(now+1)),
		refused("when the last write has the time of this write: the fence must grow", lastWrite(now)),
		allowed("if nothing was written yet by this clock", of(lastWrite(0)), lastWrite(0)),
		leased(func(...change) shard.Row { return of() }),
		foreign,
	), aheadCases(shard.Reassert(far), base, of()))
}

func reassertedCases() []Case {
	base := shard.Row{
		VersionClass: shard.ClassInt, Committed: k2, CommittedOp: shard.Delete, LastWrite: at, Owner: token,
		LeaseUntil: until, ExpiresAt: expires,
	}
	done := with(base, owner(""), lease(0), lastWrite(now))
	return cases(shard.Reasserted(shard.Lease{Key: k2, Token: token, At: now}), base,
		allowed("under our lease: its fence is the last write", done),
		owned,
		foreign,
	)
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
	raise := func(read shard.Row) shard.Write { return shard.Raise(read, copied, now, expires) }
	on := func(read shard.Row, rows ...row) []Case { return cases(raise(read), read, rows...) }
	return slices.Concat(on(read,
		allowed("if the row is unchanged, and ends the burst: the next fence is above the copy's", raised),
		allowed("in a row without a class, and gives it a class", raised, class(0)),
		allowed("if nothing was committed", raised, committed("")),
		allowed("if another version was parked in the meantime", with(raised, dead(k3)), dead(k3)),
		refused("for versions of another class", class(shard.ClassTime)),
		refused("for versions of another class, which sorts before it", class(shard.Class('a'))),
		refused("when the same version is committed", committed(k2)),
		refused("when a newer version is committed", committed(k3)),
		takenBack,
		foreign,
	), on(with(read, lease(until)),
		refused("while the row is leased"),
	), on(with(read, lease(now)),
		refused("in the last microsecond in which a late request may be applied"),
	), on(with(read, pending(k3)),
		allowed("and keeps the burst of a newer version",
			with(raised, pending(k3), burst(begin), flight("flight"), expiresAt(0))),
	), on(with(read, claimed(k3)),
		allowed("and leaves a newer version that was claimed: it may be in the sink",
			with(raised, claimed(k3), claimedWas(k1))),
	), on(with(read, lastWrite(at+1)),
		allowed("and keeps a fence of the row that is greater", with(raised, lastWrite(at+1))),
	), on(with(read, lease(at+2)),
		allowed("and keeps the end of a lease that is greater", with(raised, lastWrite(at+2))),
	), on(shard.Row{},
		allowed("if there is no row, and makes a row", with(raised, dead(""))),
	), changes(raise, read, shard.Row{},
		shard.AttrPending, shard.AttrClaimed, shard.AttrOwner, shard.AttrLeaseUntil, shard.AttrLastWrite,
	))
}

func resetCases() []Case {
	base := shard.Row{
		VersionClass: shard.ClassInt, Committed: k2, CommittedOp: shard.Delete, Dead: k3, LastWrite: at,
		ExpiresAt: expires,
	}
	done := with(base, committed(k1), taken(k2))
	reset := func(read shard.Row) shard.Write { return shard.Reset(read, k1, now) }
	higher, twice := with(base, taken(k1, k3)), with(base, committed(k3), taken(k2))
	var below []shard.OrderKey // as many as a row remembers beside k3
	for i := range shard.MaxTakenBack - 1 {
		below = append(below, k0[:len(k0)-1]+shard.OrderKey(rune('a'+i)))
	}
	lower, full := with(base, taken(k0, k3)), with(base, taken(append(slices.Clone(below), k3)...))
	tombstone, covered := with(base, committed(final)), with(base, dead(k1))
	return slices.Concat(cases(reset(base), base,
		allowed("if no invocation works on the document: the last write stays, for the fence", done),
		allowed("and forgets the bytes of the sink", done, contents(content2)),
		allowed("if a lease ended", with(done, lease(at)), lease(at)),
		allowed("if a lease has ended but still has an owner", with(done, owner(other), lease(at)), owner(other),
			lease(at)),
		refused("if nothing is committed", committed("")),
		refused("when a newer version is committed than the operator saw", committed(k3)),
		refused("when an older version is committed than the operator saw", committed(k1)),
		refused("while a newer version waits", pending(k3)),
		refused("while an older version waits, which no row should have", pending(k1)),
		refused("while a claimed version may be in the sink", claimed(k3)),
		refused("while the row is leased", lease(until)),
		refused("in the last microsecond of a lease", lease(now)),
		refused("when a version was taken back since the row was read", taken(k3)),
		foreign,
	), cases(reset(higher), higher,
		allowed("and remembers the versions taken back before, except the floor's version", with(done, taken(k2, k3))),
	), cases(reset(lower), lower,
		allowed("and remembers versions below the floor: the next floor may be lower", with(done, taken(k0, k2, k3))),
	), cases(reset(full), full,
		allowed("and forgets the oldest version below the floor, if the list is full",
			with(done, taken(append(below[1:], k2, k3)...))),
	), cases(reset(twice), twice,
		allowed("twice: both versions are remembered", with(done, taken(k2, k3))),
	), cases(reset(tombstone), tombstone,
		allowed("of a tombstone, whose version is not remembered: the document may be forgotten again", with(done, taken(), dead(""))),
	), cases(shard.Reset(base, k3, now), base,
		refused("to a version above the committed one"),
	), cases(shard.Reset(base, k2, now), base,
		refused("to the committed version itself"),
	), cases(reset(with(base, committed(k3))), base,
		refused("when a version between the two is committed"),
	), cases(reset(covered), covered,
		allowed("and forgets a dead version below the committed one: its dead letter may be gone", with(done, dead(""))),
	), changes(reset, higher, with(base, dead(k1)), shard.AttrTakenBack, shard.AttrDead))
}

func giveBackCases() []Case {
	base := shard.Row{
		VersionClass: shard.ClassInt, Pending: k2, Committed: k1, CommittedOp: shard.Put,
		TakenBack: shard.KeySetOf(k2, k3),
		Owner:     other, LeaseUntil: until,
	}
	give := func(read shard.Row) shard.Write { return shard.GiveBack(read, k2) }
	alone := with(base, taken(k2))
	return slices.Concat(cases(give(base), base,
		allowed("if it returns a version, also while the document is written", with(base, taken(k3))),
		foreign,
	), cases(give(alone), alone,
		allowed("if it returns the only version", with(base, taken())),
	), changes(give, base, with(base, committed(""), taken()), shard.AttrCommitted, shard.AttrTakenBack))
}

func collectCases() []Case {
	settled := shard.Row{
		VersionClass: shard.ClassInt, Pending: k1, Committed: k2, CommittedOp: shard.Put, Claimed: k2, Dead: k1,
		BurstStart: begin, Owner: other,
		LeaseUntil: at, LastWrite: begin, ExpiresAt: expires,
	}
	bare := shard.Row{VersionClass: shard.ClassInt}
	collect := func(read shard.Row) shard.Write { return shard.Collect(read, now) }
	return slices.Concat(cases(collect(settled), settled,
		allowed("if the row is unchanged; the row is deleted", shard.Row{}),
		refused("while the row is leased", lease(until)),
		refused("in the last microsecond of a lease", lease(now)),
		allowed("if no lease was ever taken", shard.Row{}, lease(0)),
		refused("for a row of a newer schema", schema(shard.SchemaVersion+1)),
		allowed("for a row that says its schema", shard.Row{}, schema(shard.SchemaVersion)),
	), cases(collect(bare), bare,
		allowed("if nothing but the class was read", shard.Row{}),
	), changes(collect, settled, bare,
		shard.AttrCommitted, shard.AttrPending, shard.AttrClaimed, shard.AttrDead, shard.AttrOwner,
		shard.AttrBurstStart, shard.AttrLastWrite, shard.AttrExpiresAt,
	))
}

// changes tests attributes that must not have changed since the row was read. The row read has a
// value for each of them, and the row bare has none.
func changes(write func(read shard.Row) shard.Write, read, bare shard.Row, attrs ...shard.Attr) []Case {
	var all []Case
	for _, a := range attrs {
		v, _ := read.Get(a)
		more, less := v, v
		switch v.Kind {
		case shard.KindNumber:
			more.Num, less.Num = v.Num+1, v.Num-1
		case shard.KindKeySet:
			keys := shard.KeySet(v.Text).Keys()
			more.Text = string(shard.KeySetOf(append(keys, "\xff")...))
			less.Text = string(shard.KeySetOf(keys[:len(keys)-1]...))
		default:
			more.Text, less.Text = v.Text+"x", "\x00"
		}
		to := func(v shard.Value) change { return func(r *shard.Row) { r.Set(a, v) } }
		all = slices.Concat(all, cases(write(read), read,
			refused(fmt.Sprintf("when %s grew since the row was read", a), to(more)),
			refused(fmt.Sprintf("when %s shrank since the row was read", a), to(less)),
			refused(fmt.Sprintf("when %s was removed since the row was read", a), to(shard.Value{})),
		), cases(write(bare), bare,
			refused(fmt.Sprintf("when %s was added since the row was read", a), to(v)),
		))
	}
	return all
}
