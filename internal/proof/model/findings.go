// SPDX-License-Identifier: Apache-2.0

package model

import "slices"

// Findings returns properties that the design does not promise. Findings were found by asking for
// more than the design promises. Each finding has its story. If a change to the design helps,
// Against holds that change in the same bounds.
func Findings() []Change {
	return []Change{
		{
			Name: "finding-refused-after-applied",
			What: "a version that was applied without an answer is then refused for good: REJECT lets an older version " +
				"over it",
			Watch: Damage, Against: Rules{BlockAfterUnknown: true},
			Bounds: Bounds{
				Messages: slices.Concat(One(1, 2), Spares(2)), Execs: 2, Batch: 1, Fickle: Keys(2),
				Budget: Budget{Crashes: 1},
			},
		},
		{
			Name:  "finding-refusals-of-another-version",
			What:  "refusals belong to the row: refusals of one version count against the next version",
			Watch: EarlyDeath, Against: Rules{RefusalsOfVersion: true},
			Bounds: Bounds{
				Messages: slices.Concat(One(1, 2), Spares(2)), Execs: 2, Batch: 1, MaxRefusals: 2,
				Budget: Budget{Refusals: 2},
			},
		},
		{
			Name: "finding-late-admit",
			What: "an ADMIT without an answer arrives after its version and an older one were rejected: dead holds " +
				"one key",
			Stuck: true,
			Bounds: Bounds{
				Messages: One(1, 2), Execs: 2, Batch: 1, Poison: Keys(1, 2), LateAdmits: true,
				Budget: Budget{Crashes: 1},
			},
		},
		{
			Name: "finding-throttled-between-two-dead-versions",
			What: "without the dead deadline: v is throttled, a newer version is rejected, and then v itself: " +
				"v keeps older versions out, although it was never applied",
			Rules: Rules{NoDeadline: true}, Stuck: true, Against: Rules{NoDeadline: true, ReleaseRestores: true},
			Bounds: Bounds{
				Messages: []Message{{Keys: Keys(1, 2, 3)}}, Execs: 1, Batch: 1, Poison: Keys(2, 3),
				Budget: Budget{Throttles: 1},
			},
		},
		{
			Name: "finding-admitted-twice",
			What: "a message with two dead versions is delivered twice at once: a dead version is pending again " +
				"when the message is deleted (dead holds one key)",
			Stuck: true,
			Bounds: Bounds{
				Messages: []Message{{Keys: Keys(1, 2, 3)}}, Execs: 2, Batch: 1, Poison: Keys(2, 3),
				NoCap: true, Budget: Budget{Crashes: 1, Duplicates: 1},
			},
		},
		{
			Name: "finding-redrive-overtaken",
			What: "a REJECT arrives between the two steps of a redrive: the dead letter says redriven, although nothing " +
				"is on its way",
			Watch: Hidden,
			Bounds: Bounds{
				Messages: slices.Concat(One(2, 3), Spares(2)), Execs: 2, Batch: 1, Poison: Keys(2, 3),
				Budget: Budget{Redrives: 1},
			},
		},
		{
			Name: "finding-blocked-by-a-dead-version",
			What: "without the dead deadline: a version that was claimed twice, with a newer rejected version " +
				"in between, keeps older versions out for ever",
			Rules: Rules{NoDeadline: true}, Stuck: true,
			Bounds: Bounds{
				Messages: slices.Concat(One(1, 2, 3), Spares(2, 3)), Execs: 3, Batch: 1, Poison: Keys(2, 3),
				Budget: Budget{Crashes: 1},
			},
		},
		{
			Name: "finding-reference-after-its-lease",
			What: "clocks differ by more than the guard: a payload by reference is loaded after its lease, and a write " +
				"with a higher fence and an older content follows it",
			Rules: Rules{LeaseShorterThanWrite: true}, Watch: BodyBack,
			Bounds: Bounds{
				Messages: One(1, 2), Execs: 2, Batch: 1, References: true, Budget: Budget{Duplicates: 1},
			},
		},
		{
			Name: "finding-content-ahead-goes-back",
			What: "lagging replicas: a content that is newer than its event is replaced by the content of the next " +
				"event, which is older, until the event of the newer content follows",
			Watch: BodyBack,
			Bounds: Bounds{
				Messages: One(1, 2, 3), Execs: 1, Batch: 1, References: true, Budget: Budget{Lags: 1},
			},
		},
	}
}
