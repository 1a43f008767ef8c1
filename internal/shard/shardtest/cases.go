// SPDX-License-Identifier: Apache-2.0

package shardtest

import (
	"slices"
	"time"

	"github.com/lullhq/lull/internal/shard"
)

// These are the constants of all cases. The writes of the cases are about k2.
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
	third   shard.Token  = "fedcba9876543210" // sorts after token, while other sorts before token
	now     shard.Micros = 1_777_888_800_000_000
	at                   = now - 700_000 // when the lease was claimed
	until                = now + 13_000_000
	begin                = now - 5_000_000 // when the burst began
	expires int64        = 1_781_000_000
	second               = time.Second
)

func key(version string) shard.OrderKey {
	v, err := shard.ParseVersion(shard.ClassInt, version)
	if err != nil {
		panic(err) // happens only if a constant above is wrong
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

// nothing removes every attribute, so that the row is absent.
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

// allowed makes the case that the write succeeds on base with some changes. after is the resulting
// row.
func allowed(name string, after shard.Row, changes ...change) row {
	return func(write shard.Write, base shard.Row) []Case {
		return []Case{{
			Name: "is allowed " + name, Write: write, Before: with(base, changes...), Allowed: true, After: after,
		}}
	}
}

// refused makes the case that the write is refused on base because of these changes.
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
		refused("when an operator took the version back", taken(k2)),
		refused("when an operator took the version back, together with others", taken(k1, k2, k3)),
		allowed("if other versions were taken back", with(write.Apply(base), taken(k1, k3)), taken(k1, k3)),
	)
}

// leased tests the clause "no lease_until or lease_until < :now".
func leased(after func(...change) shard.Row) row {
	return func(write shard.Write, base shard.Row) []Case {
		return cases(write, base,
			refused("while the row is leased", owner(other), lease(until)),
			refused("in the last microsecond of a lease", owner(other), lease(now)),
			allowed("after a lease that has expired", after(owner(other), lease(now-1)), owner(other), lease(now-1)),
			allowed("if no lease was ever taken", after(lease(0)), lease(0)),
		)
	}
}

// owned tests the clause "owner = :token".
func owned(write shard.Write, base shard.Row) []Case {
	return cases(write, base,
		refused("to a claim that lost its lease to another claim", owner(other)),
		refused("to a claim that lost its lease to a third claim", owner(third)),
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
