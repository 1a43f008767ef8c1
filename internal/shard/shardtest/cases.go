package shardtest

import (
	"slices"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/shard"
)

// The constants of all cases. The writes are about k2.
var (
	k0 = key("0")
	k1 = key("1")
	k2 = key("2")
	k3 = key("3")
	// again is k2 in a resync run, and final is the key of a forgotten document.
	again = run(k2)
	final = tombstone()
)

const (
	token   shard.Token  = "4f5c1d0e9b8a7766"
	other   shard.Token  = "0123456789abcdef"
	third   shard.Token  = "fedcba9876543210" // sorts after token, while other sorts before it
	now     shard.Micros = 1_777_888_800_000_000
	at                   = now - 700_000 // when the lease was claimed
	until                = now + 13_000_000
	begin                = now - 5_000_000 // of the burst
	expires int64        = 1_781_000_000
	second               = time.Second
)

func key(version string) shard.OrderKey {
	v, err := shard.ParseVersion(shard.ClassInt, version)
	if err != nil {
		panic(err) // only if a constant above is wrong
	}
	k, err := shard.NewOrderKey(shard.Parts{Version: v, Digest: shard.Digest{1, 2, 3, 4, 5, 6, 7, 8}})
	if err != nil {
		panic(err)
	}
	return k
}

func run(k shard.OrderKey) shard.OrderKey {
	p, err := k.Parts()
	if err != nil {
		panic(err)
	}
	p.Run = shard.Run{7}
	if k, err = shard.NewOrderKey(p); err != nil {
		panic(err)
	}
	return k
}

func tombstone() shard.OrderKey {
	p, err := k1.Parts()
	if err != nil {
		panic(err)
	}
	k, err := shard.Final(p.Version)
	if err != nil {
		panic(err)
	}
	return k
}

type change = func(*shard.Row)

// with returns a copy of a row with some changes.
func with(r shard.Row, changes ...change) shard.Row {
	for _, c := range changes {
		c(&r)
	}
	return r
}

// text returns a change of an attribute that is a text, a key or bytes.
func text[T ~string](a shard.Attr) func(T) change {
	return func(v T) change { return func(r *shard.Row) { r.Set(a, shard.Value{Text: string(v)}) } }
}

// number returns a change of an attribute that is a number or a time.
func number[T ~int64](a shard.Attr) func(T) change {
	return func(v T) change { return func(r *shard.Row) { r.Set(a, shard.Value{Num: int64(v)}) } }
}

// These functions change one attribute each.
var (
	pending    = text[shard.OrderKey](shard.AttrPending)
	committed  = text[shard.OrderKey](shard.AttrCommitted)
	claimed    = text[shard.OrderKey](shard.AttrClaimed)
	claimedWas = text[shard.OrderKey](shard.AttrClaimedWas)
	dead       = text[shard.OrderKey](shard.AttrDead)
	taken      = func(keys ...shard.OrderKey) change {
		return func(r *shard.Row) { r.TakenBack = shard.KeySetOf(keys...) }
	}
	operation   = text[shard.Operation](shard.AttrCommittedOp)
	contents    = text[shard.Content](shard.AttrContent)
	owner       = text[shard.Token](shard.AttrOwner)
	flight      = text[string](shard.AttrFlight)
	group       = text[string](shard.AttrGroup)
	lastError   = text[string](shard.AttrLastError)
	pausedBy    = text[string](shard.AttrPausedBy)
	pausedWhy   = text[string](shard.AttrPausedWhy)
	rebuildOf   = text[string](shard.AttrRebuildOf)
	rebuildInto = text[string](shard.AttrRebuildInto)
	cursor      = text[string](shard.AttrCursor)
	lease       = number[shard.Micros](shard.AttrLeaseUntil)
	lastWrite   = number[shard.Micros](shard.AttrLastWrite)
	burst       = number[shard.Micros](shard.AttrBurstStart)
	openUntil   = number[shard.Micros](shard.AttrOpenUntil)
	probeUntil  = number[shard.Micros](shard.AttrProbeUntil)
	rateAt      = number[shard.Micros](shard.AttrRateAt)
	paidUntil   = number[shard.Micros](shard.AttrPaidUntil)
	sentUntil   = number[shard.Micros](shard.AttrSentUntil)
	pausedAt    = number[shard.Micros](shard.AttrPausedAt)
	rebuiltAt   = number[shard.Micros](shard.AttrRebuildAt)
	sealed      = number[shard.Micros](shard.AttrRebuildSeal)
	ranAt       = number[shard.Micros](shard.AttrRanAt)
	schema      = number[int64](shard.AttrSchema)
	attempts    = number[int64](shard.AttrAttempts)
	refusals    = number[int64](shard.AttrRefusals)
	expiresAt   = number[int64](shard.AttrExpiresAt)
	level       = number[int64](shard.AttrLevel)
	rate        = number[int64](shard.AttrRate)
	rateTop     = number[int64](shard.AttrRateTop)
	paid        = number[int64](shard.AttrPaid)
	missed      = number[int64](shard.AttrRebuildMissed)
)

func class(c shard.Class) change { return func(r *shard.Row) { r.VersionClass = c } }

// nothing makes the row absent.
func nothing(r *shard.Row) { *r = shard.Row{} }

// row makes cases from a write and from a row on which that write is allowed.
type row func(write shard.Write, base shard.Row) []Case

// cases returns the cases of one write, which is allowed on base.
func cases(write shard.Write, base shard.Row, rows ...row) []Case {
	var all []Case
	for _, r := range rows {
		all = append(all, r(write, base)...)
	}
	return all
}

// allowed is the case that the write succeeds on base with some changes, and leaves after.
func allowed(name string, after shard.Row, changes ...change) row {
	return func(write shard.Write, base shard.Row) []Case {
		return []Case{{
			Name: "is allowed " + name, Write: write, Before: with(base, changes...), Allowed: true, After: after,
		}}
	}
}

// refused is the case that the write is refused on base because of these changes.
func refused(name string, changes ...change) row {
	return func(write shard.Write, base shard.Row) []Case {
		return []Case{{Name: "is refused " + name, Write: write, Before: with(base, changes...)}}
	}
}

// foreign tests the clause with which every condition begins.
func foreign(write shard.Write, base shard.Row) []Case {
	return cases(write, base,
		refused("for a row of a newer schema", schema(shard.SchemaVersion+1)),
		allowed("for a row that says its schema", with(write.Apply(base), schema(shard.SchemaVersion)),
			schema(shard.SchemaVersion)),
	)
}

// takenBack tests the clause "k is not in taken_back".
func takenBack(write shard.Write, base shard.Row) []Case {
	return cases(write, base,
		refused("when an operator took it back", taken(k2)),
		refused("when an operator took it back, together with others", taken(k1, k2, k3)),
		allowed("if other versions were taken back", with(write.Apply(base), taken(k1, k3)), taken(k1, k3)),
	)
}

// leased tests the clause "no lease_until or lease_until < :now".
func leased(after func(...change) shard.Row) row {
	return func(write shard.Write, base shard.Row) []Case {
		return cases(write, base,
			refused("while the row is leased", owner(other), lease(until)),
			refused("in the last microsecond of a lease", owner(other), lease(now)),
			allowed("after a lease that ran out", after(owner(other), lease(now-1)), owner(other), lease(now-1)),
			allowed("if no lease was ever taken", after(lease(0)), lease(0)),
		)
	}
}

// owned tests the clause "owner = :token".
func owned(write shard.Write, base shard.Row) []Case {
	return cases(write, base,
		refused("to a claim that lost its lease to another", owner(other)),
		refused("to a claim that lost its lease to a third one", owner(third)),
		refused("if the lease has no owner any more", owner("")),
	)
}

// Cases returns, for all writes of the protocol, rows that they must accept and rows that they must
// refuse.
func Cases() []Case {
	all := slices.Concat(
		admitCases(false), admitCases(true), claimCases(false), claimCases(true), commitCases(), commitNewerCases(),
		keepCases(), keepNewerCases(),
		releaseCases(), rejectCases(), rejectNotPendingCases(), parkCases(), parkNotPendingCases(), redriveCases(),
		reassertCases(), reassertedCases(), raiseCases(), resetCases(), giveBackCases(),
		collectCases(), healthCases(), budgetCases(), rebuildCases(), runCases(), objectCases(),
	)
	seen := map[string]bool{}
	for i := range all {
		for seen[all[i].Title()] {
			all[i].Name += " too"
		}
		seen[all[i].Title()] = true
	}
	return all
}

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
		allowed("in a row without a class, which it gets", after, class(0)),
		allowed("while the row is leased: the newer version waits for its turn", with(after, owner(other), lease(until)),
			owner(other), lease(until)),
		allowed("of a message without a group: the row keeps its own", with(after, group("tenant-1")), group("tenant-1")),
	)
	all = append(all, cases(shard.Admit(grouped), base,
		allowed("of a message in a group: the row has it", with(after, group("tenant-2"))),
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
		refused("when it is pending already", pending(k2)),
		refused("when a newer version is pending", pending(k3)),
		refused("when it was committed", committed(k2)),
		refused("when a newer version was committed", committed(k3)),
		refused("when its dead letter is stored", dead(k2)),
		takenBack,
		refused("when the row's versions are of another class", class(shard.ClassSeq)),
		foreign,
	), cases(shard.Admit(inRun), base,
		refused("in a resync run when an operator took its event back", taken(k2)),
		allowed("in a resync run if the same one was taken back with other content",
			with(shard.Admit(inRun).Apply(base), taken(k2[:len(k2)-1]+"\x09")), taken(k2[:len(k2)-1]+"\x09")),
	), cases(shard.Admit(times), base,
		refused("when the row's versions are of another class, whichever", class(shard.ClassSeq)),
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
		allowed("if nothing was claimed before; it notes the claim", of(claimedWas(lowest)), claimed("")),
		allowed("and notes the version claimed before, whatever is noted", of(claimedWas(k1)), claimedWas(shard.Lowest)),
		refused("when it was claimed before", claimed(k2)),
	}
	if again {
		claimedBefore = []row{
			allowed("and keeps the note of the version claimed before the first claim", of(claimedWas(k1)), claimedWas(k1)),
			refused("if only an older version was claimed", claimed(k1)),
			refused("if nothing was claimed", claimed("")),
		}
	}
	return slices.Concat(cases(shard.Claim(bid), base,
		allowed("when it is pending and everything else is older", after),
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
		refused("when it was committed", committed(k2)),
		refused("when a newer version was committed", committed(k3)),
		refused("when its dead letter is stored", dead(k2)),
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
		refused("before the time of the last write, by a clock that is late", lastWrite(now+1)),
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

// A fence that a clock ahead of this one wrote, and the next one.
const (
	ahead      = now + 30*24*3600*1_000_000
	fenceAhead = ahead + 1
)

// aheadCases tests a write that takes a lease on a row whose fences lie ahead of the clock.
func aheadCases(write shard.Write, base, after shard.Row) []Case {
	base.LastWrite, after.LastWrite = ahead, fenceAhead
	return cases(write, base,
		allowed("with a fence ahead: last_write remembers it", after),
		allowed("with a fence ahead, after a lease that ran out", after, owner(other), lease(now-1)),
		allowed("with a fence ahead, if the lease whose end is noted has no owner", after, owner(""), lease(ahead)),
		allowed("with a fence ahead, if no end of a lease is noted", after, owner(""), lease(0)),
		refused("with a fence ahead while another claim has the lease", owner(other), lease(until)),
		refused("with a fence ahead in the last microsecond of a lease", owner(other), lease(now)),
		refused("with a fence ahead that another claim has used", lastWrite(fenceAhead)),
		refused("with a fence ahead that another claim gave back", owner(""), lease(fenceAhead)),
		foreign,
	)
}

// held is a row that the lease ours belongs to.
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
		allowed("to the owner: the row is settled", after),
		allowed("if nothing was committed before", after, committed(""), operation("")),
		allowed("if nothing is pending any more", after, pending("")),
		allowed("if only an older version is pending", after, pending(k1)),
		refused("when a newer version is pending: it has another form", pending(k3)),
		refused("when it was committed", committed(k2)),
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
		refused("when nothing newer is pending: the row would never settle", pending(k2)),
		refused("when only an older version is pending", pending(k1)),
		refused("when nothing is pending", pending("")),
		refused("when it was committed", committed(k2)),
		refused("when a newer version was committed", committed(k3)),
		owned,
		foreign,
	)
}

// A document that KEEP recognises, in this generation of the sink.
const generation = "opensearch content 4f5c"

var (
	document = []byte(`{"title":"Vienna"}`)
	content1 = shard.ContentOf(generation, k1, document) // the content of k1, which had the same bytes as k2
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

// keep returns KEEP for an image whose content is recognised.
func keep(image shard.Row) shard.Write {
	w, ok := shard.Keep(kept, image)
	if !ok {
		panic("nothing is recognised") // only if a row above is wrong
	}
	return w
}

// unchanged tests the clauses that both forms of KEEP share.
func unchanged(write shard.Write, base shard.Row) []Case {
	done := write.Apply(base)
	return cases(write, base,
		allowed("if nothing was parked", with(done, dead("")), dead("")),
		allowed("if another version was parked", with(done, dead(k3)), dead(k3)),
		allowed("after a lease that ran out", with(done, owner(other), lease(now-1)), owner(other), lease(now-1)),
		refused("when another version was committed since", committed(key("0"))),
		refused("when nothing is committed", committed("")),
		refused("when a newer version was committed since", committed(k3)),
		refused("when a delete was committed", operation(shard.Delete)),
		refused("when an operation was committed that is not known", operation("touch")),
		refused("when the sink has other bytes", contents("\x00"+content1[1:])),
		refused("when the sink has other bytes, whichever", contents("\xff"+content1[1:])),
		refused("when the sink's content is unknown", contents("")),
		refused("when an older version was claimed: it may be in the sink", claimed(k1)),
		refused("when it was claimed: it may be in the sink", claimed(k2)),
		refused("when a newer version was claimed: it may be in the sink", claimed(k3)),
		refused("while the row is leased", owner(other), lease(until)),
		refused("in the last microsecond of a lease", owner(other), lease(now)),
		refused("when its dead letter is stored", dead(k2)),
		takenBack,
		refused("when nothing is pending", pending("")),
		refused("when only an older version is pending", pending(k1)),
		foreign,
	)
}

func keepCases() []Case {
	return cases(keep(recognised), recognised,
		allowed("if the sink has these bytes: the row is settled, and nothing was written", shard.Row{
			VersionClass: shard.ClassInt, Committed: k2, CommittedOp: shard.Put, Dead: k1, LastWrite: begin,
			Content: content2, ExpiresAt: expires,
		}),
		refused("when a newer version is pending: it has another form", pending(k3)),
		unchanged,
	)
}

func keepNewerCases() []Case {
	base := with(recognised, pending(k3), burst(kept.Cap))
	return cases(keep(base), base,
		allowed("at the cap: a new burst begins",
			with(base, committed(k2), contents(content2), burst(now))),
		refused("before the cap", burst(kept.Cap+1)),
		refused("when nothing newer is pending: the row would never settle", pending(k2)),
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

// oursAhead is a lease on a row whose fences lie ahead: last_write holds its fence.
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
		allowed("to the owner: claimed goes back, the version is parked, the row is settled", after),
		refused("when a newer version is pending: it has another form", pending(k3)),
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
		refused("when it is pending: the row would never settle", pending(k2)),
		owned,
		foreign,
	), cases(shard.Reject(ours, "mapping", expires, first), first,
		allowed("and forgets the claim if it was the first", with(after, claimed(""))),
	))
}
