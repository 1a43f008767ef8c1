// SPDX-License-Identifier: Apache-2.0

package shardtest

import (
	"slices"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/shard"
)

// held is the row of the document that has the lease ours.
var held = shard.Row{
	VersionClass: shard.ClassInt, Pending: k2, Committed: k1, CommittedOp: shard.Delete, Claimed: k2, ClaimedWas: k1,
	Dead: k1, BurstStart: begin,
	Flight: "flight", Owner: token, LeaseUntil: until, LastWrite: begin, Attempts: 2, Refusals: 3,
	LastError: "throttled",
}

var ours = shard.Lease{Key: k2, Token: token, At: at}

func commitCases() []Case {
	after := shard.Row{
		VersionClass: shard.ClassInt, Committed: k2, CommittedOp: shard.Put, Dead: k1, LastWrite: now,
		ExpiresAt: expires,
	}
	known := ours
	known.Content = content2
	return slices.Concat(cases(shard.Commit(ours, shard.Put, now, expires, held), held,
		allowed("to the owner: the burst ends", after),
		allowed("if nothing was committed before", after, committed(""), operation("")),
		allowed("if nothing is pending any more", after, pending("")),
		allowed("if only an older version is pending", after, pending(k1)),
		refused("when a newer version is pending: the write then has another form", pending(k3)),
		refused("when the version was committed", committed(k2)),
		refused("when a newer version was committed", committed(k3)),
		owned,
		foreign,
	), cases(shard.Commit(known, shard.Put, now, expires, held), held,
		allowed("and remembers the bytes", with(after, contents(content2)), contents(content1)),
	), cases(shard.Commit(known, shard.Delete, now, expires, held), held,
		allowed("and remembers no bytes of a delete", with(after, operation(shard.Delete)),
			contents(content1)),
	), cases(shard.Commit(ours, shard.Delete, at-1, expires, held), held,
		allowed("and forgets the bytes of another version", with(after, lastWrite(at), operation(shard.Delete)),
			contents(content1)),
		allowed("with the claim's time if the clock went back, and notes the delete",
			with(after, lastWrite(at), operation(shard.Delete))),
	))
}

func commitNewerCases() []Case {
	base := with(held, pending(k3))
	after := shard.Row{
		VersionClass: shard.ClassInt, Pending: k3, Committed: k2, CommittedOp: shard.Put, Dead: k1, BurstStart: now,
		Flight:    "flight",
		LastWrite: now,
	}
	return cases(shard.Commit(ours, shard.Put, now, expires, base), base,
		allowed("to the owner: a new burst begins", after),
		allowed("and forgets the bytes of another version", after, contents(content1)),
		allowed("if nothing was committed before", after, committed(""), operation("")),
		refused("when no newer version is pending: the burst would never end", pending(k2)),
		refused("when only an older version is pending", pending(k1)),
		refused("when nothing is pending", pending("")),
		refused("when the version was committed", committed(k2)),
		refused("when a newer version was committed", committed(k3)),
		owned,
		foreign,
	)
}

// generation is the generation of the sink in which KEEP recognises the document.
const generation = "opensearch content 4f5c"

var (
	document = []byte(`{"title":"Vienna"}`)
	content1 = shard.ContentOf(generation, k1, document) // content of k1, which had the same bytes as k2
	content2 = shard.ContentOf(generation, k2, document)
	kept     = shard.Kept{
		Key: k2, Now: now, Cap: now - shard.Micros(30*second/time.Microsecond), Expires: expires,
		Generation: generation, Document: document,
	}
	recognised = shard.Row{
		VersionClass: shard.ClassInt, Pending: k2, Committed: k1, CommittedOp: shard.Put, Dead: k1, BurstStart: begin,
		Flight: "flight", LastWrite: begin, Content: content1,
	}
)

// keep returns the KEEP for an image whose content is recognised.
func keep(image shard.Row) shard.Write {
	w, ok := shard.Keep(kept, image)
	if !ok {
		panic("nothing is recognised") // happens only if a row above is wrong
	}
	return w
}

// unchanged tests the clauses that both forms of KEEP share.
func unchanged(write shard.Write, base shard.Row) []Case {
	done := write.Apply(base)
	return cases(write, base,
		allowed("if nothing was parked", with(done, dead("")), dead("")),
		allowed("if another version was parked", with(done, dead(k3)), dead(k3)),
		allowed("after a lease that has expired", with(done, owner(other), lease(now-1)), owner(other), lease(now-1)),
		refused("when another version was committed since", committed(key("0"))),
		refused("when nothing is committed", committed("")),
		refused("when a newer version was committed since", committed(k3)),
		refused("when a delete was committed", operation(shard.Delete)),
		refused("when an unknown operation was committed", operation("touch")),
		refused("when the sink has other bytes", contents("\x00"+content1[1:])),
		refused("when the sink has any other bytes", contents("\xff"+content1[1:])),
		refused("when the sink's content is unknown", contents("")),
		refused("when an older version was claimed: it may be in the sink", claimed(k1)),
		refused("when the version was claimed: it may be in the sink", claimed(k2)),
		refused("when a newer version was claimed: it may be in the sink", claimed(k3)),
		refused("while the row is leased", owner(other), lease(until)),
		refused("in the last microsecond of a lease", owner(other), lease(now)),
		refused("when the dead letter of the version is stored", dead(k2)),
		takenBack,
		refused("when nothing is pending", pending("")),
		refused("when only an older version is pending", pending(k1)),
		foreign,
	)
}

func keepCases() []Case {
	return cases(keep(recognised), recognised,
		allowed("if the sink has these bytes: the burst ends, and nothing was written", shard.Row{
			VersionClass: shard.ClassInt, Committed: k2, CommittedOp: shard.Put, Dead: k1, LastWrite: begin,
			Content: content2, ExpiresAt: expires,
		}),
		refused("when a newer version is pending: the write then has another form", pending(k3)),
		unchanged,
	)
}

func keepNewerCases() []Case {
	base := with(recognised, pending(k3), burst(kept.Cap))
	return cases(keep(base), base,
		allowed("at the cap: a new burst begins",
			with(base, committed(k2), contents(content2), burst(now))),
		refused("before the cap", burst(kept.Cap+1)),
		refused("when no newer version is pending: the burst would never end", pending(k2)),
		unchanged,
	)
}

func releaseCases() []Case {
	after := with(held, owner(""), lease(at), attempts(0), lastError("throttled: 429"))
	return slices.Concat(cases(shard.Release(ours, "throttled: 429", false), held,
		allowed("to the owner; the claimed version stays, and the lease's time remains a bound for the next fence", after),
		owned,
		foreign,
	), cases(shard.Release(ours, "", true), held,
		allowed("and counts a refusal", with(after, refusals(4), lastError("unknown"))),
		allowed("and counts the first refusal", with(after, refusals(1), lastError("unknown")), refusals(0)),
		owned,
	), cases(shard.Release(ours, strings.Repeat("ä", 150), false), held,
		allowed("and cuts a long error at 200 bytes", with(after, lastError(strings.Repeat("ä", 100)))),
	), cases(shard.Release(ours, "x"+strings.Repeat("ä", 150), false), held,
		allowed("and cuts a long error between characters",
			with(after, lastError("x"+strings.Repeat("ä", 99)))),
	), cases(shard.Release(oursAhead, "throttled: 429", false), held,
		allowed("and ends a lease whose fence last_write remembers", with(after, lease(0))),
	))
}

// oursAhead is a lease on a row whose fences are ahead of the clock. last_write holds the fence of
// this lease.
var oursAhead = shard.Lease{Key: k2, Token: token, At: fenceAhead, Ahead: true}

func rejectCases() []Case {
	base := held
	after := shard.Row{
		VersionClass: shard.ClassInt, Committed: k1, CommittedOp: shard.Delete, Claimed: k1, Dead: k2, LeaseUntil: at,
		LastWrite: begin,
		LastError: "mapping", ExpiresAt: expires,
	}
	first := with(held, claimedWas(shard.Lowest))
	return slices.Concat(cases(shard.Reject(ours, "mapping", expires, held), base,
		allowed("to the owner: claimed goes back, the version is parked, the burst ends", after),
		refused("when a newer version is pending: the write then has another form", pending(k3)),
		refused("when an older version is pending", pending(k1)),
		refused("when nothing is pending", pending("")),
		owned,
		foreign,
	), cases(shard.Reject(ours, "mapping", expires, first), first,
		allowed("and forgets the claim if it was the first", with(after, claimed(""))),
	), cases(shard.Reject(oursAhead, "mapping", expires, held), held,
		allowed("and ends a lease whose fence last_write remembers", with(after, lease(0))),
	))
}

func rejectNotPendingCases() []Case {
	base := with(held, pending(k3))
	after := shard.Row{
		VersionClass: shard.ClassInt, Pending: k3, Committed: k1, CommittedOp: shard.Delete, Claimed: k1, Dead: k2,
		BurstStart: begin,
		Flight:     "flight", LeaseUntil: at, LastWrite: begin, LastError: "mapping",
	}
	first := with(base, claimedWas(shard.Lowest))
	return slices.Concat(cases(shard.Reject(ours, "mapping", expires, base), base,
		allowed("to the owner: the newer version keeps waiting", after),
		allowed("if an older version is pending", with(after, pending(k1)), pending(k1)),
		allowed("if nothing is pending", with(after, pending("")), pending("")),
		refused("when the version is pending: its burst would never end", pending(k2)),
		owned,
		foreign,
	), cases(shard.Reject(ours, "mapping", expires, first), first,
		allowed("and forgets the claim if it was the first", with(after, claimed(""))),
	))
}
