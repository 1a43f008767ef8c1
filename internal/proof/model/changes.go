package model

import "slices"

// Change is one change to the design, with the smallest bounds in which it breaks something. The
// design itself holds in the same bounds. A test checks both.
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

// Changes returns the rows of the table in docs/model.md, in the same order.
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
			Name: "delete-superseded", What: "index deletes v instead of letting it leave, because pending > v",
			Rules: Rules{DeleteSuperseded: true}, Watch: Damage,
			Bounds: Bounds{Messages: One(1, 3), Execs: 2, Batch: 1, Poison: Keys(3)},
		},
		{
			Name:  "leave-for-ever",
			What:  "v leaves its flight each time that it returns behind a newer pending version, the cap or not",
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
			Name: "cap-without-claimed", What: "cap override with committed < k alone (no claimed)",
			Rules: Rules{CapIgnoresClaimed: true}, Watch: Damage,
			Bounds: Bounds{Messages: One(1, 2), Execs: 2, Batch: 1, Budget: Budget{Crashes: 1}},
		},
		{
			Name: "cap-without-claimed-delete", What: "the same, where v2 is a delete",
			Rules: Rules{CapIgnoresClaimed: true}, Watch: Resurrected,
			Bounds: Bounds{Messages: One(1, 2), Execs: 2, Batch: 1, Deletes: Keys(2), Budget: Budget{Crashes: 1}},
		},
		{
			Name: "owner-is-the-flight", What: "owner = flight or execution",
			Rules: Rules{TokenOfFlight: true}, Watch: Damage,
			Bounds: Bounds{Messages: One(1, 2), Execs: 3, Batch: 1, Sink: Plain, Budget: Budget{Duplicates: 1}},
		},
		{
			Name: "token-per-invocation", What: "token per invocation instead of per claim",
			Rules: Rules{TokenOfInvocation: true}, Watch: Damage,
			Bounds: Bounds{
				Messages: One(1, 2), Execs: 2, Batch: 2, Sink: Plain,
				Budget: Budget{Crashes: 1, Throttles: 1},
			},
		},
		{
			Name: "claimed-kept-in-hand", What: "previous claimed kept in hand from an earlier read",
			Rules: Rules{ClaimedInHand: true}, Watch: Damage,
			Bounds: Bounds{Messages: One(1, 2, 3), Execs: 3, Batch: 1, Poison: Keys(3), Budget: Budget{Crashes: 2}},
		},
		{
			Name: "claimed-was-missing", What: "claimed_was missing at REJECT (two rejected versions in a row)",
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
			Name: "lease-shorter-than-the-write", What: "lease shorter than the write",
			Rules: Rules{LeaseShorterThanWrite: true}, Watch: Damage,
			Bounds: Bounds{Messages: One(1, 2), Execs: 2, Batch: 1, Sink: Plain},
		},
		{
			Name:  "fence-ahead-forgotten",
			What:  "a claim on a row whose fences lie ahead takes the next fence, and only its commit remembers it",
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
			Name: "stale-taken", What: "pulled: an answer that is older than its event is written",
			Rules: Rules{StaleTaken: true}, Watch: OldContent,
			Bounds: Bounds{Messages: One(1, 2), Execs: 1, Batch: 1, References: true, Budget: Budget{Lags: 1}},
			Held:   All &^ BodyBack,
		},
		{
			Name:  "stale-if-newer",
			What:  "pulled: the version of the answer is compared with the committed one, not with the event's",
			Rules: Rules{StaleIfNewer: true}, Watch: OldContent,
			Bounds: Bounds{Messages: One(1, 3), Execs: 1, Batch: 1, References: true, Budget: Budget{Lags: 1}},
			Held:   All &^ BodyBack,
		},
		{
			Name: "missing-deletes", What: "pulled: where the source shows nothing, the document is deleted at once",
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
			Name: "request-after-a-forgotten-delete", What: "the same with a sink that forgot the delete",
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
			Name: "commit-newer-form", What: "COMMIT's \"newer waiting\" form with no newer pending",
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
			What:  "a second request under one claim after an unknown one, then a definite refusal, RELEASE",
			Rules: Rules{SecondRequest: true}, Watch: Damage,
			Bounds: Bounds{
				Messages: One(1, 2), Execs: 2, Batch: 1, Sink: Plain,
				Budget: Budget{Crashes: 1, Throttles: 1},
			},
		},
		{
			Name: "copy-under-the-claim", What: "a copy of the committed document carries the claim's fence, not its own",
			Rules: Rules{CopyUnderTheClaim: true}, Watch: Damage,
			Bounds: Bounds{
				Messages: One(1, 2, 3), Execs: 2, Batch: 1, Poison: Keys(3), Budget: Budget{Crashes: 2},
			},
		},
		{
			Name: "sample-is-new", What: "a copy of a document that is not leased carries a new fence, not its own",
			Rules: Rules{SampleIsNew: true}, Watch: Damage,
			Bounds: Bounds{Messages: One(1, 2), Execs: 2, Batch: 1, Budget: Budget{Samples: 1}},
		},
		{
			Name: "copy-is-released", What: "RELEASE although a copy of the committed document has no answer",
			Rules: Rules{CopyIsReleased: true}, Watch: Damage,
			Bounds: Bounds{
				Messages: One(1, 2, 3), Execs: 2, Batch: 1, Sink: Plain, Poison: Keys(2), Budget: Budget{Crashes: 1},
			},
		},
		{
			Name:  "release-erases-lease-until",
			What:  "lease_until erased by RELEASE, clocks further apart than the lease",
			Rules: Rules{ReleaseErasesLease: true}, Watch: Damage,
			Bounds: Bounds{
				Messages: One(1, 2), Execs: 2, Batch: 1, Clocks: true,
				Budget: Budget{Crashes: 1, Throttles: 1},
			},
		},
		{
			Name: "pending-stays-at-a-dead-version", What: "pending left at a dead version",
			Rules: Rules{DeadStaysPending: true}, Stuck: true,
			Bounds: Bounds{Messages: One(1), Execs: 1, Batch: 1, Poison: Keys(1)},
		},
	}
}

func writing() []Change {
	return []Change{
		{
			Name: "upstream-number-as-external-version", What: "external version = the upstream's number, epoch raised",
			Rules: Rules{UpstreamVersion: true}, Watch: OldStays,
			Bounds: Bounds{
				Messages: One(1, 2), Execs: 2, Batch: 1,
				Names: [MaxKey + 1]string{"", "version 3 of epoch 1", "version 1 of epoch 2", "version 2 of epoch 2"},
			},
		},
		{
			Name: "key-without-digest", What: "version without digest as the key, equal versions",
			Rules: Rules{KeyWithoutDigest: true}, Watch: Damage,
			Bounds: Bounds{
				Messages: One(2, 3), Execs: 1, Batch: 1,
				Names: [MaxKey + 1]string{"", "v1", "v2 (payload a)", "v2 (payload b)"},
			},
		},
		{
			Name: "open-acknowledged", What: "table down, write open, message acknowledged",
			Rules: Rules{OpenAcknowledges: true}, Watch: Lost, Held: Lost | OldStays,
			Bounds: Bounds{Messages: One(1, 2), Execs: 1, Batch: 1, Budget: Budget{Outages: 1}},
		},
		{
			Name: "open-over-a-forgotten-delete", What: "the same, message kept, with a forgotten delete",
			Rules: Rules{NoReassert: true}, Watch: OldStays, Held: Lost | OldStays,
			Bounds: Bounds{
				Messages: One(1, 2), Execs: 1, Batch: 1, Sink: Forgetful, Deletes: Keys(2),
				Budget: Budget{Outages: 1},
			},
		},
		{
			Name:  "reassert-at-once",
			What:  "deletes re-asserted as soon as the table is back, while a claim from before is still under way",
			Rules: Rules{ReassertAtOnce: true}, Watch: OldStays, Held: Lost | OldStays,
			Bounds: Bounds{
				Messages: One(1, 2, 3), Execs: 2, Batch: 1, Sink: Forgetful, Deletes: Keys(2, 3),
				Budget: Budget{Outages: 1},
			},
		},
		{
			Name:  "open-turn-lost",
			What:  "the turn that wrote open dies, and the next one takes the first turn for nothing written",
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
			Name: "park-without-form-two", What: "PARK in its first form only",
			Rules: Rules{NoSecondPark: true}, Stuck: true,
			Bounds: Bounds{
				Messages: slices.Concat(One(1), Spares(1)), Execs: 1, Batch: 1,
				Budget: Budget{Crashes: 2, Moves: 2, Redrives: 1, Deadlines: 1},
			},
		},
		{
			Name: "prune-without-condition", What: "prune deletes what it read without \"if unchanged since read\"",
			Rules: Rules{PruneUnguarded: true}, Watch: Damage,
			Bounds: Bounds{Messages: One(1, 2, 3), Execs: 2, Batch: 1, Budget: Budget{Prunes: 1}},
		},
		{
			Name:  "riders-unjudged-by-age",
			What:  "the age guard in ADMIT's condition only, not over the older versions of the batch",
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
			Name: "delete-before-the-other-document", What: "the same, where the other event is another document's",
			Rules: Rules{DeleteByOneEvent: true}, Watch: Unjustified,
			Bounds: Bounds{Messages: []Message{{Keys: Keys(1), Other: true}}, Execs: 1, Batch: 1},
		},
		{
			Name: "admit-highest-only",
			What: "receive tries ADMIT for the highest version of a document only, although it is a dead letter, " +
				"and index leaves what is behind it to redelivery",
			Rules: Rules{AdmitHighestOnly: true, LeaveBehindDead: true}, Stuck: true,
			Bounds: Bounds{Messages: []Message{{Keys: Keys(1, 2)}}, Execs: 1, Batch: 1, Poison: Keys(2)},
		},
		{
			Name: "leave-behind-a-dead-version",
			What: "index leaves the versions behind a dead one to redelivery: two dead versions of a message take " +
				"turns (dead holds one key)",
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
			What:  "which events of a message are done is judged by the row alone (dead holds one key)",
			Rules: Rules{DoneForgotten: true}, Stuck: true,
			Bounds: Bounds{Messages: []Message{{Keys: Keys(1, 2)}}, Execs: 2, Batch: 1, Poison: Keys(1, 2)},
		},
	}
}
