// SPDX-License-Identifier: Apache-2.0

package model

// Rules are the rules of the protocol. The zero value is the design. Each field is one change to
// the design, and docs/model.md lists most of them under what they break.
type Rules struct {
	// Acknowledging messages.
	AckSuperseded      bool // receive acknowledges version v because a newer version is pending
	AckAtHold          bool // receive acknowledges the messages that it holds
	DeleteBeforeWrite  bool // index deletes messages after CLAIM, before the write
	DeleteBeforeCommit bool // index deletes messages after the sink's answer, before COMMIT
	DeleteByOneEvent   bool // a message is deleted when one of its events is done
	DoneForgotten      bool // the flight does not remember which events are done: only the row says so
	AdmitHighestOnly   bool // receive tries ADMIT for the highest version only, even if it is a dead letter
	LeaveBehindDead    bool // behind a dead version, index leaves the older versions to redelivery
	DeleteSuperseded   bool // index deletes the message of version v because a newer version is pending
	LeaveForEver       bool // a version leaves whenever a newer one is pending, and the cap never allows a claim

	// The claim of a document.
	CapIgnoresClaimed     bool // after the cap, CLAIM asks only for committed < k
	NoLease               bool // CLAIM does not check that the lease is free
	LeaseShorterThanWrite bool // a lease may end while its owner writes
	LateRequest           bool // the sink may apply a request after the lease of the request has ended
	TokenOfFlight         bool // the owner of a lease is the id of the flight
	TokenOfInvocation     bool // one token serves all claims of an invocation
	SecondRequest         bool // after an unknown outcome index sends a second request under the same claim
	UpstreamVersion       bool // the external version is the upstream's number, and a 409 counts as done
	ClaimedInHand         bool // REJECT restores `claimed` from the row that was read before the claim
	ClaimedWasOnlyAtFirst bool // CLAIM again does not set claimed_was
	CopyUnderTheClaim     bool // the copy of a committed document carries the fence of the claim
	SampleIsNew           bool // the copy of a document that is not leased carries a new fence
	CopyIsReleased        bool // index sends RELEASE although the copy has no answer yet
	AheadForgotten        bool // a claim whose fence is not its time does not change last_write
	LoadBeforeClaim       bool // payloads by reference are loaded before their document is claimed

	// Payloads that are loaded by reference.
	StaleTaken     bool // index writes a loaded state that is older than its event
	StaleIfNewer   bool // index writes a loaded state that is older than its event but newer than the committed version
	MissingDeletes bool // if the source shows nothing, index deletes the document at once

	// The writes that end a claim.
	CommitWithoutOwner   bool // COMMIT asks only for committed < k
	CommitAlwaysNewer    bool // COMMIT uses its "newer waiting" form although no newer version is pending
	ReleaseResetsClaimed bool // RELEASE sets claimed to committed
	ReleaseErasesLease   bool // RELEASE removes lease_until
	DeadStaysPending     bool // REJECT and PARK leave a dead version pending

	// KEEP: the sink already has the bytes, so index commits without a write.
	ClaimKeepsContent  bool // CLAIM does not remove content
	ContentUnbound     bool // content is the digest of the bytes alone, without the committed version
	KeepIgnoresClaimed bool // KEEP does not check whether a write may be under way
	KeepOverDelete     bool // KEEP treats a delete as a version with bytes
	// ImageIgnoresClaimed: index trusts the row before CLAIM about the sink's bytes although that
	// row has `claimed`.
	ImageIgnoresClaimed bool
	ContentRestored     bool // a restored table keeps its generation, so that the content of its rows still counts

	// Order keys.
	KeyWithoutDigest bool // the last two versions have the same order key

	// Dead letters.
	ParkIgnoresLease     bool // receive and dlq acknowledge a message whose PARK a live lease refused
	NoSecondPark         bool // PARK has only its first form
	NoDeadline           bool // a version that a blocked version keeps out has no dead deadline
	DeadFromStaleRead    bool // index trusts an eventually consistent read that shows dead = k
	RedriveDeletesLetter bool // redrive deletes the parked item after sending
	RedriveAtAnyTime     bool // redrive checks no condition
	AgedUnparked         bool // no PARK follows the dead letter of a message that is too old to judge

	// Old messages and old rows.
	NoAgeGuard      bool // old messages are judged like new ones
	AgeGuardByRow   bool // the age guard asks for "no row" instead of "nothing committed"
	RidersUnjudged  bool // only ADMIT's condition has the age guard, not the other versions of the batch
	RedriveHidesAge bool // copies made by redrive do not carry lull-first-sent
	PruneByState    bool // prune deletes rows of any age
	PruneUnguarded  bool // prune deletes rows without a condition

	// Outages of the table.
	OpenAcknowledges bool // an outage write acknowledges its message
	NoReassert       bool // lull does not write deletes again after an outage
	ReassertAtOnce   bool // lull writes deletes again while invocations that began in the outage still run
	OpenTurnForgets  bool // an open flight whose first turn finds the table reachable assumes that nothing was written
	OpenLostForgets  bool // prune deletes the manifest of a lost open flight once its event is done

	// A table restored to an earlier image.
	NoRaise        bool // the restored rows are not raised
	RaiseBlindly   bool // RAISE does not check that the row is still as it was read
	RaiseUnsettled bool // the copy is read although a request under the row's last lease may still arrive

	// A reset by an operator.
	ResetDeletes    bool // RESET deletes the row, together with the time of the last write
	ResetBlindly    bool // RESET does not check that the committed version is the one that the operator saw
	ResetUnderLease bool // RESET does not check that the lease is free, and ends the lease

	ResetMarksDead    bool // RESET marks the withdrawn version as dead, and the next dead letter overwrites the mark
	ResetRemembersOne bool // the row remembers only the version that was withdrawn last
	ResetDropsBelow   bool // RESET drops withdrawn versions below its floor; a lower RESET makes them new again
	AdmitIgnoresTaken bool // ADMIT does not check whether a reset withdrew the version
	IndexIgnoresTaken bool // index and CLAIM do not check whether a reset withdrew the version

	// Refusals by the sink.
	RefusalsOfVersion bool // proposed: the refusals of one version do not count against another version
	ReleaseRestores   bool // proposed: RELEASE of a claim in the first form sets claimed back to claimed_was
	BlockAfterUnknown bool // proposed: CLAIM again after a claim without an answer sets claimed_was = k
}
