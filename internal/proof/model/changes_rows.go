// SPDX-License-Identifier: Apache-2.0

package model

import "slices"

// Versions 1 and 3 have the same bytes.
func keeping() []Change {
	return []Change{
		{
			Name: "claim-keeps-content", What: "CLAIM does not remove content, although the sink's bytes may change",
			Rules: Rules{ClaimKeepsContent: true}, Watch: OldStays, Held: OldStays | Lost,
			Bounds: Bounds{
				Messages: One(1, 2, 3), Execs: 1, Batch: 1, Same: Keys(1, 3), Fickle: Keys(2),
				Budget: Budget{Crashes: 1},
			},
		},
		{
			Name:  "content-unbound",
			What:  "content is the digest of the bytes alone, and a build without KEEP commits another version",
			Rules: Rules{ContentUnbound: true}, Watch: Damage,
			Bounds: Bounds{Messages: One(1, 2, 3), Execs: 1, Batch: 1, Same: Keys(1, 3), Older: Keys(2)},
		},
		{
			Name:  "keep-ignores-claimed",
			What:  "KEEP runs while a write by a build without KEEP may be under way",
			Rules: Rules{KeepIgnoresClaimed: true}, Watch: Damage,
			Bounds: Bounds{
				Messages: One(1, 2, 3), Execs: 2, Batch: 1, Same: Keys(1, 3), Older: Keys(2),
				Budget: Budget{Crashes: 1},
			},
		},
		{
			Name: "image-ignores-claimed",
			What: "loaded bytes are compared with the row before CLAIM, although a build without KEEP may be writing " +
				"(the row shows `claimed`)",
			Rules: Rules{ImageIgnoresClaimed: true}, Watch: Damage | Untrue | OldStays,
			Bounds: Bounds{
				Messages: One(1, 2, 3), Execs: 1, Batch: 1, References: true, Same: Keys(1, 3), Older: Keys(2),
				Budget: Budget{Crashes: 1},
			},
		},
		{
			Name: "keep-over-a-delete", What: "KEEP treats a delete as the version before the delete",
			Rules: Rules{KeepOverDelete: true}, Watch: Damage | Untrue,
			Bounds: Bounds{
				Messages: One(1, 2, 3), Execs: 1, Batch: 1, Same: Keys(1, 2, 3), Deletes: Keys(2),
			},
		},
		{
			Name:  "content-restored",
			What:  "the table is restored without a new generation: its rows match bytes that the sink no longer has",
			Rules: Rules{ContentRestored: true}, Watch: OldStays, Held: OldStays,
			Bounds: Bounds{
				Messages: slices.Concat(One(1, 2, 3), Spares(3)), Execs: 1, Batch: 1, Same: Keys(1, 3), Clocks: true,
				Budget: Budget{Restores: 1},
			},
		},
	}
}

func ageing() []Change {
	parked := Bounds{
		Messages: slices.Concat(One(1, 2), Spares(1)), Execs: 2, Batch: 1,
		Budget: Budget{Deadlines: 1, Redrives: 1, Prunes: 1},
	}
	return []Change{
		{
			Name:  "prune-beside-a-parked-letter",
			What:  "without the age guard, prune or TTL deletes a row that a dead letter or scheduled event still needs",
			Rules: Rules{NoAgeGuard: true}, Watch: Damage, Bounds: parked,
		},
		{
			Name: "prune-by-state-alone", What: "prune deletes rows of any age",
			Rules: Rules{PruneByState: true}, Watch: Damage,
			Bounds: Bounds{Messages: One(1, 2), Execs: 2, Batch: 1, Budget: Budget{Prunes: 1}},
		},
		{
			Name:  "redrive-after-the-row-is-gone",
			What:  "a redrive after the row was deleted sends a copy without lull-first-sent",
			Rules: Rules{RedriveHidesAge: true}, Watch: Damage, Bounds: parked,
		},
		{
			Name: "age-guard-by-no-row", What: "the age guard asks for \"no row\" instead of \"nothing committed\"",
			Rules: Rules{AgeGuardByRow: true}, Watch: Damage,
			Bounds: Bounds{
				Messages: slices.Concat(One(1, 2, 3), Spares(1)), Execs: 1, Batch: 1, Poison: Keys(3),
				Budget: Budget{Deadlines: 1, Redrives: 1, Prunes: 1},
			},
		},
	}
}

func deadLetters() []Change {
	return []Change{
		{
			Name: "redrive-deletes-the-letter", What: "redrive deletes the parked item after sending",
			Rules: Rules{RedriveDeletesLetter: true}, Watch: Damage,
			Bounds: Bounds{
				Messages: slices.Concat(One(2, 3), Spares(2)), Execs: 2, Batch: 1, Poison: Keys(2, 3),
				Budget: Budget{Redrives: 1},
			},
		},
		{
			Name: "redrive-at-any-time", What: "an operator redrives k while the row has a lease or k is pending",
			Rules: Rules{RedriveAtAnyTime: true}, Watch: Hidden,
			Bounds: Bounds{
				Messages: slices.Concat(One(1), Spares(1)), Execs: 2, Batch: 1, Poison: Keys(1),
				Budget: Budget{Redrives: 1},
			},
		},
		{
			Name: "dead-from-a-stale-read", What: "an eventually consistent read that shows dead = k is believed",
			Rules: Rules{DeadFromStaleRead: true}, Watch: Damage | Hidden,
			Bounds: Bounds{
				Messages: slices.Concat(One(1), Spares(1)), Execs: 1, Batch: 1, Poison: Keys(1),
				Budget: Budget{Redrives: 1, Stale: 1},
			},
		},
		{
			Name: "park-ignores-the-lease", What: "a message is acknowledged although a live lease refused its PARK",
			Rules: Rules{ParkIgnoresLease: true}, Stuck: true,
			Bounds: Bounds{
				Messages: One(1), Execs: 1, Batch: 1, Poison: Keys(1),
				Budget: Budget{Crashes: 2, Duplicates: 1, Moves: 1},
			},
		},
	}
}

func restoring() []Change {
	stopped := Bounds{
		Messages: slices.Concat(One(1, 2), Spares(1)), Execs: 1, Batch: 1, Clocks: true, Stopped: true,
		Budget: Budget{Restores: 1, Crashes: 1, Duplicates: 1},
	}
	beside := Bounds{
		Messages: slices.Concat(One(1, 2), Spares(2)), Execs: 2, Batch: 1, Clocks: true,
		Budget: Budget{Restores: 1, Crashes: 1},
	}
	return []Change{
		{
			Name: "restored-and-not-raised", What: "the table is restored, and nothing raises its rows",
			Rules: Rules{NoRaise: true}, Watch: WentBack, Bounds: stopped,
		},
		{
			Name: "raise-without-looking", What: "RAISE does not check that the row is still as it was read",
			Rules: Rules{RaiseBlindly: true}, Watch: FalseRaise, Held: FalseRaise, Bounds: beside,
		},
		{
			Name:  "raise-unsettled",
			What:  "the sink's copy is read while a request under the row's last lease may still arrive",
			Rules: Rules{RaiseUnsettled: true}, Watch: FalseRaise, Held: FalseRaise, Bounds: beside,
		},
	}
}

func resetting() []Change {
	return []Change{
		{
			Name: "reset-deletes-the-row", What: "RESET deletes the row, and with it the time of the last write",
			Rules: Rules{ResetDeletes: true}, Watch: SinkNewer,
			Bounds: Bounds{
				Messages: slices.Concat(One(1, 3), Spares(1)), Execs: 1, Batch: 1, Clocks: true, Absurd: Keys(3),
				Budget: Budget{Resets: 1, Crashes: 1},
			},
		},
		{
			Name:  "reset-without-looking",
			What:  "RESET does not check that the committed version is the one that the operator saw",
			Rules: Rules{ResetBlindly: true}, Watch: WentBack,
			Bounds: Bounds{
				Messages: slices.Concat(One(1, 2, 3), Spares(1)), Execs: 1, Batch: 1, Absurd: Keys(2),
				Budget: Budget{Resets: 1},
			},
		},
		{
			Name: "reset-under-a-lease", What: "RESET does not check that the lease is free, and ends the lease",
			Rules: Rules{ResetUnderLease: true}, Watch: TwoWriters,
			Bounds: Bounds{
				Messages: slices.Concat(One(1, 2, 3), Spares(1)), Execs: 2, Batch: 1, Sink: Plain, Absurd: Keys(2),
				Budget: Budget{Resets: 1},
			},
		},
		{
			Name:  "reset-marks-dead",
			What:  "RESET marks the withdrawn version as dead, and the next dead letter overwrites the mark",
			Rules: Rules{ResetMarksDead: true}, Watch: TakenBack, Held: All &^ Lost, // v1 was stale, and v2 dies
			Bounds: Bounds{
				Messages: slices.Concat(One(1, 2, 3), Spares(3)), Execs: 1, Batch: 1, Absurd: Keys(3), Poison: Keys(2),
				Budget: Budget{Resets: 1, Duplicates: 1},
			},
		},
		{
			Name: "reset-remembers-one", What: "the row remembers only the version that was withdrawn last",
			Rules: Rules{ResetRemembersOne: true}, Watch: TakenBack,
			Bounds: Bounds{
				Messages: slices.Concat(One(1, 2, 3), Spares(2, 3)), Execs: 1, Batch: 1, Absurd: Keys(2, 3),
				Budget: Budget{Resets: 2, Duplicates: 2},
			},
		},
		{
			Name:  "reset-drops-below",
			What:  "RESET drops withdrawn versions below its floor, and a lower RESET makes them new again",
			Rules: Rules{ResetDropsBelow: true}, Watch: TakenBack,
			Bounds: Bounds{
				Messages: slices.Concat(One(1, 2, 3), Spares(1, 2)), Execs: 1, Batch: 1, Absurd: Keys(2, 3),
				Floors: true,
				Budget: Budget{Resets: 3, Duplicates: 1},
			},
		},
		{
			Name:  "admit-ignores-taken",
			What:  "ADMIT does not check whether a reset withdrew the version; CLAIM does",
			Rules: Rules{AdmitIgnoresTaken: true}, Stuck: true,
			Bounds: Bounds{
				Messages: slices.Concat(One(1, 3), Spares(3)), Execs: 1, Batch: 1, Absurd: Keys(3),
				Budget: Budget{Resets: 1, Duplicates: 1},
			},
		},
		{
			Name:  "index-ignores-taken",
			What:  "index and CLAIM do not check whether a reset withdrew the version; ADMIT does",
			Rules: Rules{IndexIgnoresTaken: true}, Watch: TakenBack,
			Bounds: Bounds{
				Messages: slices.Concat(One(1, 2, 3), Spares(2)), Execs: 2, Batch: 1, Absurd: Keys(2),
				Budget: Budget{Resets: 1, Duplicates: 1},
			},
		},
	}
}
