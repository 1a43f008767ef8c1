// SPDX-License-Identifier: Apache-2.0

package shardtest

import (
	"slices"
	"time"

	"github.com/lullhq/lull/internal/shard"
)

func admitCases(aged bool) []Case {
	a := shard.Admission{Key: k2, Class: shard.ClassInt, Flight: "flight-2", Now: now, Aged: aged}
	times, grouped := a, a
	times.Class, grouped.Group = shard.ClassTime, "tenant-2"
	base := shard.Row{
		VersionClass: shard.ClassInt, Pending: k1, Committed: k1, CommittedOp: shard.Put, Claimed: k1, Dead: k1,
		BurstStart: begin,
		Flight:     "flight-1", LastWrite: at, Attempts: 2, Refusals: 3, LastError: "throttled", ExpiresAt: expires,
	}
	after := shard.Row{
		VersionClass: shard.ClassInt, Pending: k2, Committed: k1, CommittedOp: shard.Put, Claimed: k1, Dead: k1,
		BurstStart: begin,
		Flight:     "flight-2", LastWrite: at,
	}
	all := cases(shard.Admit(a), base,
		allowed("when everything that the row knows is older; the burst continues, the errors of the older version are "+
			"removed",
			after),
		allowed("when nothing is pending: a burst begins", with(after, burst(now)), pending(""), burst(0)),
		allowed("if no version was ever parked", with(after, dead("")), dead("")),
		allowed("if a newer version was parked", with(after, dead(k3)), dead(k3)),
		allowed("in a row without a class, and gives it a class", after, class(0)),
		allowed("while the row is leased: the newer version waits for its turn", with(after, owner(other), lease(until)),
			owner(other), lease(until)),
		allowed("of a message without a group: the row keeps its group", with(after, group("tenant-1")), group("tenant-1")),
	)
	all = append(all, cases(shard.Admit(grouped), base,
		allowed("of a message in a group: the row gets the group", with(after, group("tenant-2"))),
		allowed("of a message in another group", with(after, group("tenant-2")), group("tenant-1")),
	)...)
	committedBefore := []row{
		allowed("if nothing was committed", with(after, committed("")), committed("")),
		allowed("if there is no row",
			shard.Row{VersionClass: shard.ClassInt, Pending: k2, BurstStart: now, Flight: "flight-2"}, nothing),
	}
	if aged {
		for i := range all {
			all[i].Name += ", and the row can judge an old message"
		}
		committedBefore = []row{refused("for an old message if nothing was committed", committed(""))}
	}
	inRun := a
	inRun.Key = again
	return slices.Concat(all, cases(shard.Admit(a), base, committedBefore...), cases(shard.Admit(a), base,
		refused("when the version is already pending", pending(k2)),
		refused("when a newer version is pending", pending(k3)),
		refused("when the version was committed", committed(k2)),
		refused("when a newer version was committed", committed(k3)),
		refused("when the dead letter of the version is stored", dead(k2)),
		takenBack,
		refused("when the row's versions are of another class", class(shard.ClassSeq)),
		foreign,
	), cases(shard.Admit(inRun), base,
		refused("in a resync run when an operator took the event back", taken(k2)),
		allowed("in a resync run if the same one was taken back with other content",
			with(shard.Admit(inRun).Apply(base), taken(k2[:len(k2)-1]+"\x09")), taken(k2[:len(k2)-1]+"\x09")),
	), cases(shard.Admit(times), base,
		refused("when the row's versions are of any other class", class(shard.ClassSeq)),
	))
}

func claimCases(again bool) []Case {
	bid := shard.Bid{
		Key: k2, Token: token, Now: now, Until: until, Cap: now - shard.Micros(30*second/time.Microsecond),
		MinInterval: second, Again: again,
	}
	// Without a minimum interval, only the fence orders the writes.
	unpaced, far := bid, bid
	unpaced.MinInterval, far.Fence = 0, fenceAhead
	base := shard.Row{
		VersionClass: shard.ClassInt, Pending: k2, Committed: k1, CommittedOp: shard.Delete, Claimed: k1, Dead: k1,
		BurstStart: begin,
		Flight:     "flight", Owner: other, LeaseUntil: now - 1, LastWrite: now.Add(-second), Attempts: 1,
		Refusals:  3,
		LastError: "throttled",
	}
	was, lowest := k1, shard.Lowest
	if again {
		base.Claimed, was, lowest = k2, k2, k2
	}
	after := with(base, owner(token), lease(until), claimed(k2), claimedWas(was), attempts(2))
	of := func(changes ...change) shard.Row { return with(after, changes...) }

	claimedBefore := []row{
		allowed("if nothing was claimed before; the row notes the claim", of(claimedWas(lowest)), claimed("")),
		allowed("and notes the version claimed before, whatever the row has noted", of(claimedWas(k1)), claimedWas(shard.Lowest)),
		refused("when the version was claimed before", claimed(k2)),
	}
	if again {
		claimedBefore = []row{
			allowed("and keeps the note of the version claimed before the first claim", of(claimedWas(k1)), claimedWas(k1)),
			refused("if only an older version was claimed", claimed(k1)),
			refused("if nothing was claimed", claimed("")),
		}
	}
	return slices.Concat(cases(shard.Claim(bid), base,
		allowed("when the version is pending and everything else is older", after),
		allowed("and forgets which bytes the sink has", after, contents(content1)),
		allowed("if nothing was committed", of(committed("")), committed("")),
		allowed("if nothing was parked", of(dead("")), dead("")),
		allowed("if another version was parked", of(dead(k3)), dead(k3)),
		allowed("if no lease was ever taken", of(), owner(""), lease(0)),
		allowed("after a RELEASE in the past", of(), owner(""), lease(at)),
		allowed("if nothing was ever written", of(lastWrite(0)), lastWrite(0)),
		allowed("for the first time", of(attempts(1)), attempts(0)),
		allowed("at the cap though a newer version is pending", of(pending(k3), burst(bid.Cap)), pending(k3),
			burst(bid.Cap)),
		allowed("beyond the cap though a newer version is pending", of(pending(k3), burst(bid.Cap-1)), pending(k3),
			burst(bid.Cap-1)),
	), cases(shard.Claim(bid), base, claimedBefore...), cases(shard.Claim(bid), base,
		refused("when a newer version was claimed: it may be in the sink", claimed(k3)),
		refused("when the version was committed", committed(k2)),
		refused("when a newer version was committed", committed(k3)),
		refused("when the dead letter of the version is stored", dead(k2)),
		takenBack,
		refused("when nothing is pending", pending(""), burst(bid.Cap)),
		refused("when only an older version is pending", pending(k1), burst(bid.Cap)),
		refused("before the cap when a newer version is pending", pending(k3), burst(bid.Cap+1)),
		refused("when a newer version is pending and no burst is noted", pending(k3), burst(0)),
		refused("while the row is leased", lease(until)),
		refused("in the last microsecond of a lease", lease(now)),
		refused("in the microsecond of the last write: the fence would not grow", lastWrite(now)),
		refused("within the minimum interval after the last write", lastWrite(now.Add(-second)+1)),
		foreign,
	), cases(shard.Claim(unpaced), base,
		allowed("a microsecond after the last write if no interval is asked for", of(lastWrite(now-1)),
			lastWrite(now-1)),
		refused("in the microsecond of the last write if no interval is asked for", lastWrite(now)),
		refused("before the time of the last write, by a clock that is behind", lastWrite(now+1)),
	), aheadCases(shard.Claim(far), base, after), cases(shard.Claim(far), with(base, lastWrite(ahead)),
		allowed("with a fence ahead, if a RELEASE is ahead and the last write is not", of(lastWrite(fenceAhead)),
			owner(""), lease(ahead), lastWrite(now.Add(-second))),
		allowed("with a fence ahead, if nothing was written yet", of(lastWrite(fenceAhead)), owner(""),
			lease(ahead), lastWrite(0)),
		refused("with a fence ahead within the minimum interval after the last write", owner(""), lease(ahead),
			lastWrite(now.Add(-second)+1)),
		refused("with a fence ahead, if the last write is near enough to wait for", owner(""), lease(ahead),
			lastWrite(now.Add(shard.MaxAhead))),
	))
}

// ahead is a fence that a clock ahead of this one wrote, and fenceAhead is the next fence.
const (
	ahead      = now + 30*24*3600*1_000_000
	fenceAhead = ahead + 1
)

// aheadCases tests a write that takes a lease on a row whose fences are ahead of the clock.
func aheadCases(write shard.Write, base, after shard.Row) []Case {
	base.LastWrite, after.LastWrite = ahead, fenceAhead
	return cases(write, base,
		allowed("with a fence ahead: last_write remembers it", after),
		allowed("with a fence ahead, after a lease that has expired", after, owner(other), lease(now-1)),
		allowed("with a fence ahead, if the noted lease has no owner", after, owner(""), lease(ahead)),
		allowed("with a fence ahead, if no lease is noted", after, owner(""), lease(0)),
		refused("with a fence ahead while another claim has the lease", owner(other), lease(until)),
		refused("with a fence ahead in the last microsecond of a lease", owner(other), lease(now)),
		refused("with a fence ahead that another claim has used", lastWrite(fenceAhead)),
		refused("with a fence ahead that another claim gave back", owner(""), lease(fenceAhead)),
		foreign,
	)
}
