package model

// Rules are the protocol. The zero value is the design; each field is one change to it, most of
// them rows of the table in docs/model.md, where it says what each one breaks.
type Rules struct {
	// Acknowledging.
	AckSuperseded      bool // receive acknowledges v because pending > v
	AckAtHold          bool // receive acknowledges what it holds
	DeleteBeforeWrite  bool // index deletes after CLAIM
	DeleteBeforeCommit bool // index deletes after the sink's answer
	DeleteByOneEvent   bool // a message goes when one of its events is done
	DoneForgotten      bool // what is done is judged by the row alone, not remembered by the flight
	AdmitHighestOnly   bool // receive tries ADMIT for the highest version only, even if it is a dead letter
	LeaveBehindDead    bool // index leaves the versions behind a dead one to redelivery
	DeleteSuperseded   bool // index deletes v because pending > v
	LeaveForEver       bool // v leaves its flight each time that pending > v, and the cap lets nothing be claimed

	// The claim.
	CapIgnoresClaimed     bool // at the cap committed < k is enough
	NoLease               bool // CLAIM does not ask for the lease
	LeaseShorterThanWrite bool // a lease may end while its owner writes
	LateRequest           bool // the sink may apply a request after its lease
	TokenOfFlight         bool // owner is the flight's id
	TokenOfInvocation     bool // one token for all claims of an invocation
	SecondRequest         bool // after an unknown outcome the same claim sends once more
	UpstreamVersion       bool // the external version is the upstream's number, a 409 counts as done
	ClaimedInHand         bool // REJECT restores claimed from what was read before the claim
	ClaimedWasOnlyAtFirst bool // CLAIM again does not set claimed_was
	CopyUnderTheClaim     bool // the copy of a committed document carries the claim's own fence
	SampleIsNew           bool // the copy of a document that is not leased carries a new fence
	CopyIsReleased        bool // RELEASE although the copy has no answer
	AheadForgotten        bool // a claim whose fence is not its time leaves last_write as it is
	LoadBeforeClaim       bool // payloads by reference are loaded before their document is claimed

	// What is loaded.
	StaleTaken     bool // an answer that is older than its event is written
	StaleIfNewer   bool // ... if it is newer than what is committed
	MissingDeletes bool // where the source shows nothing, the document is deleted at once

	// The end of a claim.
	CommitWithoutOwner   bool // COMMIT asks for committed < k alone
	CommitAlwaysNewer    bool // COMMIT in its "newer waiting" form with no newer pending
	ReleaseResetsClaimed bool // RELEASE sets claimed to committed
	ReleaseErasesLease   bool // RELEASE removes lease_until
	DeadStaysPending     bool // REJECT and PARK leave pending at a dead version

	// KEEP.
	ClaimKeepsContent  bool // CLAIM leaves content
	ContentUnbound     bool // content is the digest of the bytes alone, not of the committed version with them
	KeepIgnoresClaimed bool // KEEP does not ask whether a write may be under way
	KeepOverDelete     bool // KEEP takes a delete for a version with bytes
	// The row before CLAIM is believed about the sink's bytes although it shows `claimed`.
	ImageIgnoresClaimed bool
	ContentRestored     bool // the generation stays when the table is restored: its rows' content counts

	// Versions.
	KeyWithoutDigest bool // the last two versions are one order key

	// Dead letters.
	ParkIgnoresLease     bool // a PARK that a live lease refused is acknowledged
	NoSecondPark         bool // PARK has its first form only
	NoDeadline           bool // no dead deadline for a version that a blocked one keeps out
	DeadFromStaleRead    bool // dead = k is believed from an eventually consistent read
	RedriveDeletesLetter bool // the parked item is deleted after sending
	RedriveAtAnyTime     bool // a redrive asks for nothing
	AgedUnparked         bool // no PARK follows too_old_to_judge

	// Age.
	NoAgeGuard      bool // aged messages are judged like others
	AgeGuardByRow   bool // "no row" instead of "nothing committed"
	RidersUnjudged  bool // the age guard stands in ADMIT's condition only, not over the others of the batch
	RedriveHidesAge bool // copies do not carry lull-first-sent
	PruneByState    bool // rows are collected whatever their age
	PruneUnguarded  bool // prune deletes without a condition

	// Outages of the table.
	OpenAcknowledges bool // written open, acknowledged
	NoReassert       bool // deletes are not re-asserted after an outage
	ReassertAtOnce   bool // ... they are, but while invocations that saw it still live
	OpenTurnForgets  bool // an open flight whose first turn finds the table back takes nothing for written
	OpenLostForgets  bool // prune deletes the manifest of a lost open flight once its event is done

	// A table restored to an earlier image.
	NoRaise        bool // rows stay as they were restored
	RaiseBlindly   bool // RAISE does not ask whether the row is as it was read
	RaiseUnsettled bool // the copy is read although a request under the row's last lease may arrive

	// A reset by an operator.
	ResetDeletes    bool // it deletes the row, with the time of the last write
	ResetBlindly    bool // it does not ask whether the committed version is the one that the operator saw
	ResetUnderLease bool // it does not ask for the lease, and ends it

	ResetMarksDead    bool // what it takes back is remembered as dead, which the next dead letter overwrites
	ResetRemembersOne bool // the row remembers only the version that was taken back last
	ResetDropsBelow   bool // it drops versions below its floor, because they are stale: until a lower reset
	AdmitIgnoresTaken bool // ADMIT does not ask what was taken back
	IndexIgnoresTaken bool // index and CLAIM do not ask what was taken back

	// Refusals.
	RefusalsOfVersion bool // proposed: a version's refusals do not count against another one
	ReleaseRestores   bool // proposed: RELEASE of a claim in the first form sets claimed back to claimed_was
	BlockAfterUnknown bool // proposed: CLAIM again after a claim without an answer sets claimed_was = k
}
