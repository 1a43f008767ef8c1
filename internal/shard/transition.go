// SPDX-License-Identifier: Apache-2.0

package shard

// Transition names a write of the protocol, in one of its forms. The zero Transition means a write
// that is not part of the protocol.
type Transition byte

// The transitions of a document's row are first. After them are the transitions of lull's own rows
// ([HealthRow], [RunRow], [ObjectRow]).
const (
	ADMIT Transition = iota + 1
	CLAIM
	CLAIMAgain // the version was claimed before and not committed
	COMMIT
	COMMITNewerWaiting // a newer version is pending: its burst starts now
	KEEP
	KEEPNewerWaiting // a newer version is pending: its burst starts now
	RELEASE
	REJECT
	REJECTNotPending // another version is pending, or no version
	PARK
	PARKNotPending
	REDRIVE
	REASSERT
	REASSERTED
	RAISE
	RESET
	COLLECT

	TRIP
	PROBE
	CLOSE
	CUT
	SPEND
	SPENDFirst // flights have taken no time beyond now
	YIELD
	SEND
	SENDFirst // the documents sent so far use no time beyond now
	PAUSE
	RESUME
	REBUILD
	MISS
	SEAL
	UNSEAL
	REBUILT
	STARTRUN
	SAVERUN
	ENDRUN
	ADVANCE

	transitions // the number of transitions, including the zero Transition
)

var transitionNames = [transitions]string{
	0: "OTHER", ADMIT: "ADMIT", CLAIM: "CLAIM", CLAIMAgain: "CLAIM again", COMMIT: "COMMIT",
	COMMITNewerWaiting: "COMMIT, newer waiting", KEEP: "KEEP", KEEPNewerWaiting: "KEEP, newer waiting",
	RELEASE: "RELEASE", REJECT: "REJECT",
	REJECTNotPending: "REJECT, not pending", PARK: "PARK", PARKNotPending: "PARK, not pending",
	REDRIVE: "REDRIVE", REASSERT: "REASSERT", REASSERTED: "REASSERTED", RAISE: "RAISE",
	RESET: "RESET", COLLECT: "COLLECT",
	TRIP: "TRIP", PROBE: "PROBE", CLOSE: "CLOSE", CUT: "CUT", SPEND: "SPEND", SPENDFirst: "SPEND first",
	YIELD: "YIELD", SEND: "SEND", SENDFirst: "SEND first",
	PAUSE: "PAUSE", RESUME: "RESUME",
	REBUILD: "REBUILD", MISS: "MISS", SEAL: "SEAL", UNSEAL: "UNSEAL", REBUILT: "REBUILT",
	STARTRUN: "START RUN", SAVERUN: "SAVE RUN", ENDRUN: "END RUN",
	ADVANCE: "ADVANCE",
}

// Transitions lists every transition of the protocol.
func Transitions() []Transition {
	all := make([]Transition, 0, transitions-1)
	for t := ADMIT; t < transitions; t++ {
		all = append(all, t)
	}
	return all
}

// String returns the name for logs, scenarios and counts. Code compares transitions, never names.
func (t Transition) String() string { return transitionNames[t] }

// Base returns the transition without its form, such as COMMIT for [COMMITNewerWaiting].
func (t Transition) Base() Transition {
	switch t {
	case CLAIMAgain, COMMITNewerWaiting, KEEPNewerWaiting, REJECTNotPending, PARKNotPending, SPENDFirst, SENDFirst:
		return t - 1
	}
	return t
}

// EndsLease reports whether the transition ends the lease of a document. If such a write is late,
// it must be refused, because another claim may have the lease.
func (t Transition) EndsLease() bool {
	switch t.Base() {
	case COMMIT, RELEASE, REJECT, REASSERTED, RAISE:
		return true
	}
	return false
}
