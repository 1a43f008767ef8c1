// SPDX-License-Identifier: Apache-2.0

package model

import "slices"

// Change is one change to the design, with the smallest bounds in which it breaks something. The
// design itself holds in the same bounds. A test checks both statements.
type Change struct {
	Name   string // also the name of the file with its story
	What   string
	Rules  Rules
	Bounds Bounds
	Watch  Broken // the damage at the end of the story
	Stuck  bool   // the story ends in a state that cannot settle any more

	Against Rules  // the rules that hold in the same bounds; the zero value is the design
	Held    Broken // what Against is checked for; zero means All and Watch
}

func (c Change) held() Broken {
	if c.Held != 0 {
		return c.Held
	}
	return All | c.Watch
}

// Changes returns the changes that docs/model.md lists.
func Changes() []Change {
	return slices.Concat(acknowledging(), claiming(), ending(), writing(), ageing(), deadLetters(), restoring(),
		resetting(), keeping(), beyond())
}

// All sinks that need the lease are plain in these changes, unless the change says otherwise.

func acknowledging() []Change {
	return []Change{
		{
			Name: "acknowledge-superseded", What: "acknowledge v because pending > v",
			Rules: Rules{AckSuperseded: true}, Watch: Damage,
			Bounds: Bounds{Messages: One(1, 3), Execs: 1, Batch: 1, Poison: Keys(3)},
		},
		{
			Name:  "delete-superseded",
			What:  "index deletes the message of v because pending > v, and does not let it leave the flight",
			Rules: Rules{DeleteSuperseded: true}, Watch: Damage,
			Bounds: Bounds{Messages: One(1, 3), Execs: 2, Batch: 1, Poison: Keys(3)},
		},
		{
			Name:  "leave-for-ever",
			What:  "v leaves its flight whenever a newer version is pending, also after the cap",
			Rules: Rules{LeaveForEver: true}, Stuck: true,
			Bounds: Bounds{
				Messages: One(1, 2, 3), Execs: 2, Batch: 1, Poison: Keys(2, 3), LateAdmits: true, Orphans: true,
				Budget: Budget{Crashes: 1},
			},
		},
		{
			Name: "acknowledge-at-hold", What: "acknowledge at hold",
			Rules: Rules{AckAtHold: true}, Watch: Damage,
			Bounds: Bounds{Messages: One(1), Execs: 1, Batch: 1, Budget: Budget{Crashes: 1}},
		},
		{
			Name: "delete-before-write", What: "delete before write",
			Rules: Rules{DeleteBeforeWrite: true}, Watch: Damage,
			Bounds: Bounds{Messages: One(1), Execs: 1, Batch: 1, Budget: Budget{Crashes: 2}},
		},
		{
			Name: "delete-before-commit", What: "delete before commit",
			Rules: Rules{DeleteBeforeCommit: true}, Stuck: true,
			Bounds: Bounds{Messages: One(1), Execs: 1, Batch: 1, Budget: Budget{Crashes: 1}},
		},
	}
}

func claiming() []Change {
	return []Change{
		{
			Name:  "cap-without-claimed",
			What:  "after the cap, CLAIM asks only for committed < k, and not for claimed",
			Rules: Rules{CapIgnoresClaimed: true}, Watch: Damage,
			Bounds: Bounds{Messages: One(1, 2), Execs: 2, Batch: 1, Budget: Budget{Crashes: 1}},
		},
		{
			Name:  "cap-without-claimed-delete",
			What:  "after the cap, CLAIM does not ask for claimed, and v2 is a delete",
			Rules: Rules{CapIgnoresClaimed: true}, Watch: Resurrected,
			Bounds: Bounds{Messages: One(1, 2), Execs: 2, Batch: 1, Deletes: Keys(2), Budget: Budget{Crashes: 1}},
		},
		{
			Name: "owner-is-the-flight", What: "the owner of a lease is the flight or the execution",
			Rules: Rules{TokenOfFlight: true}, Watch: Damage,
			Bounds: Bounds{Messages: One(1, 2), Execs: 3, Batch: 1, Sink: Plain, Budget: Budget{Duplicates: 1}},
		},
		{
			Name: "token-per-invocation", What: "one token for each invocation, not for each claim",
			Rules: Rules{TokenOfInvocation: true}, Watch: Damage,
			Bounds: Bounds{
				Messages: One(1, 2), Execs: 2, Batch: 2, Sink: Plain,
				Budget: Budget{Crashes: 1, Throttles: 1},
			},
		},
		{
			Name: "claimed-kept-in-hand", What: "REJECT restores claimed from an earlier read of the row",
			Rules: Rules{ClaimedInHand: true}, Watch: Damage,
			Bounds: Bounds{Messages: One(1, 2, 3), Execs: 3, Batch: 1, Poison: Keys(3), Budget: Budget{Crashes: 2}},
		},
		{
			Name:  "claimed-was-missing",
			What:  "claimed_was is missing at REJECT, after two rejected versions in a row",
			Rules: Rules{ClaimedWasOnlyAtFirst: true}, Stuck: true,
			Bounds: Bounds{
				Messages: slices.Concat(One(2, 3), Spares(2, 3)), Execs: 2, Batch: 1, Poison: Keys(2, 3),
				Budget: Budget{Crashes: 1},
			},
		},
		{
			Name: "no-lease", What: "no lease",
			Rules: Rules{NoLease: true}, Watch: Damage,
			Bounds: Bounds{Messages: One(1, 2), Execs: 2, Batch: 1, Sink: Plain},
		},
		{
			Name: "lease-shorter-than-the-write", What: "the lease is shorter than the write",
			Rules: Rules{LeaseShorterThanWrite: true}, Watch: Damage,
			Bounds: Bounds{Messages: One(1, 2), Execs: 2, Batch: 1, Sink: Plain},
		},
		{
			Name:  "fence-ahead-forgotten",
			What:  "a row's fences are ahead of every clock, and only a commit remembers a claim's fence",
			Rules: Rules{AheadForgotten: true}, Watch: Damage,
			Bounds: Bounds{
				Messages: One(1, 2), Execs: 2, Batch: 1, Clocks: true, Ahead: true, Budget: Budget{Crashes: 1},
			},
		},
		{
			Name: "load-before-the-claim", What: "payloads by reference are loaded before CLAIM",
			Rules: Rules{LoadBeforeClaim: true}, Watch: BodyBack,
			Bounds: Bounds{
				Messages: One(1, 2), Execs: 2, Batch: 1, References: true,
				Budget: Budget{Crashes: 1, Duplicates: 1},
			},
		},
		{
			Name: "stale-taken", What: "fetched payloads: index writes a state that is older than its event",
			Rules: Rules{StaleTaken: true}, Watch: OldContent,
			Bounds: Bounds{Messages: One(1, 2), Execs: 1, Batch: 1, References: true, Budget: Budget{Lags: 1}},
			Held:   All &^ BodyBack,
		},
		{
			Name:  "stale-if-newer",
			What:  "fetched payloads: the state is compared with the committed version, not with the event's version",
			Rules: Rules{StaleIfNewer: true}, Watch: OldContent,
			Bounds: Bounds{Messages: One(1, 3), Execs: 1, Batch: 1, References: true, Budget: Budget{Lags: 1}},
			Held:   All &^ BodyBack,
		},
		{
			Name:  "missing-deletes",
			What:  "fetched payloads: if the source shows nothing, the document is deleted at once",
			Rules: Rules{MissingDeletes: true}, Watch: OldContent,
			Bounds: Bounds{Messages: One(1), Execs: 1, Batch: 1, References: true, Budget: Budget{Lags: 1}},
			Held:   All &^ BodyBack,
		},
		{
			Name: "request-after-the-lease", What: "a request that the sink applies after the lease",
			Rules: Rules{LateRequest: true}, Watch: Damage,
			Bounds: Bounds{Messages: One(1, 2), Execs: 2, Batch: 1, Sink: Plain, Budget: Budget{Crashes: 1}},
		},
		{
			Name:  "request-after-a-forgotten-delete",
			What:  "a request that a sink applies after the lease, and after it forgot a delete",
			Rules: Rules{LateRequest: true}, Watch: Resurrected,
			Bounds: Bounds{
				Messages: One(1, 2), Execs: 2, Batch: 1, Sink: Forgetful, Deletes: Keys(2),
				Budget: Budget{Crashes: 1},
			},
		},
	}
}

func ending() []Change {
	return []Change{
		{
			Name: "commit-without-owner", What: "commit without owner",
			Rules: Rules{CommitWithoutOwner: true}, Watch: Damage,
			Bounds: Bounds{Messages: One(1, 2, 3), Execs: 3, Batch: 1, Sink: Plain, Budget: Budget{Duplicates: 1}},
		},
		{
			Name:  "commit-newer-form",
			What:  "COMMIT uses its \"newer waiting\" form although no newer version is pending",
			Rules: Rules{CommitAlwaysNewer: true}, Stuck: true,
			Bounds: Bounds{Messages: One(1), Execs: 1, Batch: 1},
		},
		{
			Name: "release-resets-claimed", What: "RELEASE sets claimed to committed",
			Rules: Rules{ReleaseResetsClaimed: true}, Watch: Damage,
			Bounds: Bounds{Messages: One(1, 2), Execs: 2, Batch: 1, Budget: Budget{Crashes: 1, Throttles: 1}},
		},
		{
			Name:  "second-request-under-one-claim",
			What:  "after an unknown outcome, a second request under the claim is refused, and index sends RELEASE",
			Rules: Rules{SecondRequest: true}, Watch: Damage,
			Bounds: Bounds{
				Messages: One(1, 2), Execs: 2, Batch: 1, Sink: Plain,
				Budget: Budget{Crashes: 1, Throttles: 1},
			},
		},
		{
			Name:  "copy-under-the-claim",
			What:  "a copy of the committed document carries the claim's fence, not the document's fence",
			Rules: Rules{CopyUnderTheClaim: true}, Watch: Damage,
			Bounds: Bounds{
				Messages: One(1, 2, 3), Execs: 2, Batch: 1, Poison: Keys(3), Budget: Budget{Crashes: 2},
			},
		},
		{
			Name:  "sample-is-new",
			What:  "a copy of a document without a lease carries a new fence, not the document's fence",
			Rules: Rules{SampleIsNew: true}, Watch: Damage,
			Bounds: Bounds{Messages: One(1, 2), Execs: 2, Batch: 1, Budget: Budget{Samples: 1}},
		},
		{
			Name:  "copy-is-released",
			What:  "index sends RELEASE although a copy of the committed document has no answer",
			Rules: Rules{CopyIsReleased: true}, Watch: Damage,
			Bounds: Bounds{
				Messages: One(1, 2, 3), Execs: 2, Batch: 1, Sink: Plain, Poison: Keys(2), Budget: Budget{Crashes: 1},
			},
		},
		{
			Name:  "release-erases-lease-until",
			What:  "RELEASE removes lease_until, and clocks differ by more than the lease",
			Rules: Rules{ReleaseErasesLease: true}, Watch: Damage,
			Bounds: Bounds{
				Messages: One(1, 2), Execs: 2, Batch: 1, Clocks: true,
				Budget: Budget{Crashes: 1, Throttles: 1},
			},
		},
		{
			Name: "pending-stays-at-a-dead-version", What: "a dead version stays pending",
			Rules: Rules{DeadStaysPending: true}, Stuck: true,
			Bounds: Bounds{Messages: One(1), Execs: 1, Batch: 1, Poison: Keys(1)},
		},
	}
}

func writing() []Change {
	return []Change{
		{
			Name:  "upstream-number-as-external-version",
			What:  "the external version is the upstream's number, and the epoch is raised",
			Rules: Rules{UpstreamVersion: true}, Watch: OldStays,
			Bounds: Bounds{
				Messages: One(1, 2), Execs: 2, Batch: 1,
				Names: [MaxKey + 1]string{"", "version 3 of epoch 1", "version 1 of epoch 2", "version 2 of epoch 2"},
			},
		},
		{
			Name: "key-without-digest", What: "the order key has no digest, and two versions are equal",
			Rules: Rules{KeyWithoutDigest: true}, Watch: Damage,
			Bounds: Bounds{
				Messages: One(2, 3), Execs: 1, Batch: 1,
				Names: [MaxKey + 1]string{"", "v1", "v2 (payload a)", "v2 (payload b)"},
			},
		},
		{
			Name: "open-acknowledged", What: "an outage write acknowledges its message",
			Rules: Rules{OpenAcknowledges: true}, Watch: Lost, Held: Lost | OldStays,
			Bounds: Bounds{Messages: One(1, 2), Execs: 1, Batch: 1, Budget: Budget{Outages: 1}},
		},
		{
			Name:  "open-over-a-forgotten-delete",
			What:  "after an outage write, lull does not write a newer delete again",
			Rules: Rules{NoReassert: true}, Watch: OldStays, Held: Lost | OldStays,
			Bounds: Bounds{
				Messages: One(1, 2), Execs: 1, Batch: 1, Sink: Forgetful, Deletes: Keys(2),
				Budget: Budget{Outages: 1},
			},
		},
		{
			Name:  "reassert-at-once",
			What:  "lull writes deletes again as soon as the table is back, while an earlier claim is still under way",
			Rules: Rules{ReassertAtOnce: true}, Watch: OldStays, Held: Lost | OldStays,
			Bounds: Bounds{
				Messages: One(1, 2, 3), Execs: 2, Batch: 1, Sink: Forgetful, Deletes: Keys(2, 3),
				Budget: Budget{Outages: 1},
			},
		},
		{
			Name:  "open-turn-lost",
			What:  "the turn that made an outage write dies, and the next turn assumes that nothing was written",
			Rules: Rules{OpenTurnForgets: true}, Watch: OldStays, Held: Lost | OldStays,
			Bounds: Bounds{
				Messages: One(1, 2), Execs: 1, Batch: 1, Sink: Forgetful, Deletes: Keys(2),
				Budget: Budget{Outages: 1, Crashes: 1},
			},
		},
		{
			Name:  "open-flight-lost",
			What:  "an open flight is lost, and prune deletes its manifest because its event is done",
			Rules: Rules{OpenLostForgets: true}, Watch: OldStays, Held: Lost | OldStays,
			Bounds: Bounds{
				Messages: One(1, 2), Execs: 1, Batch: 1, Sink: Forgetful, Deletes: Keys(2),
				Budget: Budget{Outages: 1, Crashes: 1},
			},
		},
	}
}

// beyond returns the changes that no earlier check of the protocol had.
func beyond() []Change {
	return []Change{
		{
			Name: "park-without-form-two", What: "PARK has only its first form",
			Rules: Rules{NoSecondPark: true}, Stuck: true,
			Bounds: Bounds{
				Messages: slices.Concat(One(1), Spares(1)), Execs: 1, Batch: 1,
				Budget: Budget{Crashes: 2, Moves: 2, Redrives: 1, Deadlines: 1},
			},
		},
		{
			Name:  "prune-without-condition",
			What:  "prune deletes a row without the condition \"unchanged since read\"",
			Rules: Rules{PruneUnguarded: true}, Watch: Damage,
			Bounds: Bounds{Messages: One(1, 2, 3), Execs: 2, Batch: 1, Budget: Budget{Prunes: 1}},
		},
		{
			Name:  "riders-unjudged-by-age",
			What:  "only ADMIT's condition has the age guard, not the older versions of the batch",
			Rules: Rules{RidersUnjudged: true}, Watch: Damage,
			Bounds: Bounds{
				Messages: slices.Concat(One(1, 2, 3), Spares(1)), Execs: 1, Batch: 2,
				Budget: Budget{Deadlines: 1, Redrives: 1, Prunes: 1},
			},
		},
		{
			Name: "delete-by-one-event", What: "a message with several events is deleted when one of them is done",
			Rules: Rules{DeleteByOneEvent: true}, Watch: Damage,
			Bounds: Bounds{Messages: []Message{{Keys: Keys(1, 2)}}, Execs: 1, Batch: 1, Poison: Keys(2)},
		},
		{
			Name:  "delete-before-the-other-document",
			What:  "a message is deleted when one event is done, and another document's event is not",
			Rules: Rules{DeleteByOneEvent: true}, Watch: Unjustified,
			Bounds: Bounds{Messages: []Message{{Keys: Keys(1), Other: true}}, Execs: 1, Batch: 1},
		},
		{
			Name: "admit-highest-only",
			What: "receive tries ADMIT for the highest version of a document only, although it is a dead letter, " +
				"and index leaves the versions behind it to redelivery",
			Rules: Rules{AdmitHighestOnly: true, LeaveBehindDead: true}, Stuck: true,
			Bounds: Bounds{Messages: []Message{{Keys: Keys(1, 2)}}, Execs: 1, Batch: 1, Poison: Keys(2)},
		},
		{
			Name: "leave-behind-a-dead-version",
			What: "index leaves the versions behind a dead one to redelivery: two dead versions of a message " +
				"alternate, because dead holds one key",
			Rules: Rules{LeaveBehindDead: true}, Stuck: true,
			Bounds: Bounds{
				Messages: []Message{{Keys: Keys(1, 2, 3)}}, Execs: 1, Batch: 1, Poison: Keys(2, 3),
				NoCap: true,
			},
		},
		{
			Name:  "aged-while-pending",
			What:  "no PARK after too_old_to_judge: a message outlives row retention while its own version is pending",
			Rules: Rules{AgedUnparked: true}, Stuck: true,
			Bounds: Bounds{
				Messages: slices.Concat(One(1), Spares(1)), Execs: 2, Batch: 1,
				Budget: Budget{Crashes: 1, Ages: 1},
			},
		},
		{
			Name:  "done-not-remembered",
			What:  "only the row says which events of a message are done, although dead holds one key",
			Rules: Rules{DoneForgotten: true}, Stuck: true,
			Bounds: Bounds{Messages: []Message{{Keys: Keys(1, 2)}}, Execs: 2, Batch: 1, Poison: Keys(1, 2)},
		},
	}
}
