// SPDX-License-Identifier: Apache-2.0

package model

import "slices"

// Holding is a set of bounds in which the design holds: nothing breaks, and nothing is stuck.
type Holding struct {
	Name   string
	Rules  Rules // the design, except in holdings for proposals
	Bounds Bounds
	Watch  Broken
	Large  bool // the exploration takes minutes, not milliseconds
}

// Holdings returns the bounds in which the design was explored to the end.
func Holdings() []Holding {
	faults := Budget{Crashes: 1, Duplicates: 1}
	h := []Holding{
		{Name: "two versions, two receivers, a crash, two duplicates", Bounds: Bounds{
			Messages: One(1, 2), Execs: 2, Receivers: 2, Batch: 2, Budget: Budget{Crashes: 1, Duplicates: 2},
		}},
		{Name: "three versions, a crash, a throttled request", Bounds: Bounds{
			Messages: One(1, 2, 3), Execs: 2, Batch: 3, Budget: Budget{Crashes: 1, Throttles: 1},
		}},
		{Name: "three flights of one version, started twice", Bounds: Bounds{
			Messages: slices.Concat(One(1, 2), Spares(1)), Execs: 3, Batch: 1, Budget: faults,
		}},
		{Name: "v3 is poison", Bounds: Bounds{
			Messages: One(1, 2, 3), Execs: 2, Batch: 2, Poison: Keys(3), Budget: Budget{Crashes: 1},
		}},
		{Name: "v2 is poison, a sink without versions", Bounds: Bounds{
			Messages: One(1, 2, 3), Execs: 2, Batch: 1, Sink: Plain, Poison: Keys(2), Budget: Budget{Crashes: 1},
		}},
		{Name: "copies written for other documents, a sink that forgets deletes", Bounds: Bounds{
			Messages: One(1, 2, 3), Execs: 2, Batch: 1, Sink: Forgetful, Deletes: Keys(2), Poison: Keys(3),
			Budget: Budget{Crashes: 1, Samples: 2},
		}},
		{Name: "v2 is poison, moved because of its receive count, redriven", Bounds: Bounds{
			Messages: slices.Concat(One(1, 2), Spares(2)), Execs: 2, Batch: 1, Poison: Keys(2),
			Budget: Budget{Crashes: 1, Moves: 1, Redrives: 1},
		}},
		{Name: "dead deadlines and both forms of PARK", Bounds: Bounds{
			Messages: slices.Concat(One(1, 2), Spares(1)), Execs: 2, Batch: 1,
			Budget: Budget{Crashes: 1, Deadlines: 1, Moves: 1, Redrives: 1},
		}},
		{Name: "a sink without versions", Bounds: Bounds{
			Messages: One(1, 2), Execs: 2, Batch: 2, Sink: Plain,
			Budget: Budget{Crashes: 2, Duplicates: 1, Throttles: 1},
		}},
		{Name: "a sink that forgets deletes", Bounds: Bounds{
			Messages: One(1, 2, 3), Execs: 2, Batch: 1, Sink: Forgetful, Deletes: Keys(2), Budget: Budget{Crashes: 1},
		}},
		{Name: "clocks that differ by any amount", Bounds: Bounds{
			Messages: One(1, 2), Execs: 2, Batch: 1, Clocks: true,
			Budget: Budget{Crashes: 1, Duplicates: 1, Throttles: 1},
		}},
		{Name: "fences ahead of every clock", Bounds: Bounds{
			Messages: One(1, 2), Execs: 2, Batch: 1, Clocks: true, Ahead: true,
			Budget: Budget{Crashes: 1, Duplicates: 1, Throttles: 1},
		}},
		{Name: "fences ahead of every clock, a poison version", Bounds: Bounds{
			Messages: One(1, 2, 3), Execs: 2, Batch: 1, Clocks: true, Ahead: true, Poison: Keys(3),
			Budget: Budget{Crashes: 1},
		}},
		{Name: "rows deleted by prune, dead letters redriven afterwards", Bounds: Bounds{
			Messages: slices.Concat(One(1, 2), Spares(1)), Execs: 2, Batch: 2, Deletes: Keys(2),
			Budget: Budget{Deadlines: 1, Redrives: 1, Prunes: 1, Duplicates: 1},
		}},
		{Name: "rows deleted by prune while old messages still wait", Bounds: Bounds{
			Messages: One(1, 2, 3), Execs: 2, Batch: 2, Poison: Keys(3), Latecomers: true,
			Budget: Budget{Prunes: 1, Crashes: 1},
		}},
		{Name: "equal versions with different payloads", Bounds: Bounds{
			Messages: slices.Concat(One(2, 3), Spares(2, 3)), Execs: 2, Batch: 2, Budget: faults,
		}},
		{Name: "messages with several events of one document", Bounds: Bounds{
			Messages: []Message{{Keys: Keys(1, 3)}, {Keys: Keys(2)}}, Execs: 2, Batch: 2, Poison: Keys(3),
			Budget: Budget{Crashes: 1},
		}},
		{Name: "messages with two poison events of one document", Bounds: Bounds{
			Messages: slices.Concat([]Message{{Keys: Keys(2, 3)}}, One(1), Spares(2, 3)), Execs: 2, Batch: 1,
			Poison: Keys(2, 3),
			Budget: Budget{Crashes: 1},
		}},
		{Name: "a message with a good version and two poison ones", Bounds: Bounds{
			Messages: slices.Concat([]Message{{Keys: Keys(1, 2, 3)}}, One(1)), Execs: 2, Batch: 2, Poison: Keys(2, 3),
			NoCap:  true,
			Budget: Budget{Crashes: 1, Throttles: 1},
		}},
		{Name: "two messages that share a good version, each with a poison one", Bounds: Bounds{
			Messages: []Message{{Keys: Keys(1, 3)}, {Keys: Keys(1, 2)}}, Execs: 2, Batch: 2, Poison: Keys(2, 3),
			NoCap:  true,
			Budget: Budget{Crashes: 1, Throttles: 1},
		}},
		{Name: "messages with an event of another document", Bounds: Bounds{
			Messages: []Message{{Keys: Keys(1), Other: true}, {Keys: Keys(2)}}, Execs: 2, Batch: 2, Budget: faults,
		}},
		{Name: "item errors until the dead letter", Bounds: Bounds{
			Messages: slices.Concat(One(1, 2), Spares(2)), Execs: 2, Batch: 2, Stubborn: Keys(2), MaxRefusals: 2,
			Budget: Budget{Crashes: 1, Throttles: 1},
		}},
		{Name: "two rejected versions in a row, one with an unknown outcome", Bounds: Bounds{
			Messages: slices.Concat(One(1, 2, 3), Spares(2, 3)), Execs: 3, Batch: 1, Poison: Keys(2, 3),
			Budget: Budget{Crashes: 1},
		}},
		{Name: "table down, written open", Watch: Lost | OldStays, Bounds: Bounds{
			Messages: One(1, 2), Execs: 2, Batch: 1, Sink: Forgetful, Deletes: Keys(2),
			Budget: Budget{Outages: 1, Crashes: 1},
		}},
		{Name: "the table restored, all functions stopped until rows are raised", Bounds: Bounds{
			Messages: slices.Concat(One(1, 2), Spares(1)), Execs: 2, Batch: 1, Clocks: true, Stopped: true,
			Budget: Budget{Restores: 1, Crashes: 1, Duplicates: 1},
		}},
		{Name: "the table restored, and rows raised beside live traffic", Watch: FalseRaise, Bounds: Bounds{
			Messages: slices.Concat(One(1, 2), Spares(2)), Execs: 2, Batch: 1, Clocks: true,
			Budget: Budget{Restores: 1, Crashes: 1},
		}},
		{Name: "an absurd version reset", Bounds: Bounds{
			Messages: slices.Concat(One(1, 3), Spares(1)), Execs: 2, Batch: 1, Clocks: true, Absurd: Keys(3),
			Budget: Budget{Resets: 1, Crashes: 1},
		}},
		{Name: "an absurd version reset beside a newer one, a sink without versions", Bounds: Bounds{
			Messages: slices.Concat(One(1, 2, 3), Spares(1)), Execs: 2, Batch: 1, Sink: Plain, Absurd: Keys(2),
			Budget: Budget{Resets: 1, Crashes: 1},
		}},
		// Versions that arrived while v3 was committed were stale: the upstream has to send them
		// again.
		{Name: "an absurd version reset, and poison versions beside its copy", Watch: All &^ Lost, Bounds: Bounds{
			Messages: slices.Concat(One(1, 2, 3), Spares(2, 3)), Execs: 2, Batch: 1, Absurd: Keys(3), Poison: Keys(2),
			Budget: Budget{Resets: 1, Duplicates: 1, Redrives: 1},
		}},
		{Name: "two absurd versions reset", Bounds: Bounds{
			Messages: slices.Concat(One(1, 2, 3), Spares(1, 2, 3)), Execs: 1, Batch: 1, Absurd: Keys(2, 3),
			Budget: Budget{Resets: 2, Crashes: 1, Duplicates: 1},
		}},
		{Name: "two absurd versions, with high and low resets", Bounds: Bounds{
			Messages: slices.Concat(One(1, 2, 3), Spares(1, 2, 3)), Execs: 1, Batch: 1, Absurd: Keys(2, 3),
			Floors: true,
			Budget: Budget{Resets: 3, Crashes: 1, Duplicates: 1},
		}},
		{Name: "payloads by reference", Bounds: Bounds{
			Messages: One(1, 2), Execs: 2, Batch: 1, References: true,
			Budget: Budget{Crashes: 1, Duplicates: 1, Throttles: 1},
		}},
		{Name: "payloads by reference, a sink without versions", Bounds: Bounds{
			Messages: slices.Concat(One(1, 2), Spares(2)), Execs: 2, Batch: 1, References: true, Sink: Plain,
			Budget: Budget{Crashes: 1, Duplicates: 1, Throttles: 1},
		}},
		{Name: "fetched from lagging replicas", Watch: All &^ BodyBack, Bounds: Bounds{
			Messages: One(1, 2), Execs: 2, Batch: 1, References: true,
			Budget: Budget{Crashes: 1, Throttles: 1, Lags: 2},
		}},
		{Name: "fetched from lagging replicas, a sink without versions", Watch: All &^ BodyBack, Bounds: Bounds{
			Messages: slices.Concat(One(1, 3), Spares(3)), Execs: 2, Batch: 1, References: true, Sink: Plain,
			Budget: Budget{Crashes: 1, Duplicates: 1, Lags: 2},
		}},
		{Name: "fetched, and deleted by then without an event", Watch: All &^ BodyBack, Bounds: Bounds{
			Messages: One(
				1,
				2,
				3,
			), Execs: 2, Batch: 1, References: true, Gone: Keys(2), Budget: Budget{Crashes: 1, Lags: 1},
		}},
		{Name: "fetched, and deleted by then with an event", Watch: All &^ BodyBack, Bounds: Bounds{
			Messages: One(1, 2), Execs: 2, Batch: 1, References: true, Gone: Keys(2), Deletes: Keys(2), Sink: Forgetful,
			Budget: Budget{Crashes: 1, Lags: 2, Throttles: 1},
		}},
		{Name: "fetched, v1 and v3 have the same bytes, and v2 does not exist", Watch: All &^ BodyBack, Bounds: Bounds{
			Messages: One(1, 2, 3), Execs: 2, Batch: 1, References: true, Gone: Keys(2), Same: Keys(1, 3),
			Budget: Budget{Crashes: 1, Lags: 1},
		}},
		{Name: "v1 and v3 have the same bytes", Bounds: Bounds{
			Messages: One(1, 2, 3), Execs: 2, Batch: 1, Same: Keys(1, 3), Budget: faults,
		}},
		{Name: "v1 and v3 have the same bytes, v2 is a delete; a sink without versions", Bounds: Bounds{
			Messages: One(1, 2, 3), Execs: 2, Batch: 1, Same: Keys(1, 3), Deletes: Keys(2), Sink: Plain,
			Budget: Budget{Crashes: 1, Throttles: 1},
		}},
		{Name: "v1 and v3 have the same bytes, v2 is poison", Bounds: Bounds{
			Messages: One(1, 2, 3), Execs: 2, Batch: 2, Same: Keys(1, 3), Poison: Keys(2),
			Budget: Budget{Crashes: 1, Throttles: 1},
		}},
		{Name: "v1 and v3 have the same bytes, a build without KEEP writes v2", Bounds: Bounds{
			Messages: One(1, 2, 3), Execs: 2, Batch: 1, Same: Keys(1, 3), Older: Keys(2), Budget: Budget{Crashes: 1},
		}},
		{Name: "v2 and v3 have the same bytes, rows are deleted by prune, dead letters redriven", Bounds: Bounds{
			Messages: slices.Concat(One(1, 2, 3), Spares(3)), Execs: 2, Batch: 1, Same: Keys(2, 3),
			Budget: Budget{Deadlines: 1, Redrives: 1, Prunes: 1},
		}},
		{Name: "v1 and v3 have the same bytes, clocks apart", Bounds: Bounds{
			Messages: One(1, 2, 3), Execs: 2, Batch: 1, Same: Keys(1, 3), Clocks: true, Budget: Budget{Crashes: 1},
		}},
		{Name: "v1 and v3 have the same bytes, loaded under the lease", Bounds: Bounds{
			Messages: One(1, 2, 3), Execs: 2, Batch: 1, References: true, Same: Keys(1, 3),
			Budget: Budget{Crashes: 1, Duplicates: 1},
		}},
		{Name: "loaded under the lease, a sink without versions, a build without KEEP writes v2", Bounds: Bounds{
			Messages: One(1, 2, 3), Execs: 2, Batch: 1, References: true, Same: Keys(1, 3), Older: Keys(2), Sink: Plain,
			Budget: Budget{Crashes: 1},
		}},
		{Name: "v1 and v2 have the same bytes, v2 was committed by KEEP, v3 is poison", Bounds: Bounds{
			Messages: One(1, 2, 3), Execs: 2, Batch: 1, Same: Keys(1, 2), Poison: Keys(3), Budget: Budget{Crashes: 1},
		}},
		{Name: "an older image shows a version as dead", Bounds: Bounds{
			Messages: slices.Concat(One(1, 2), Spares(1, 2)), Execs: 2, Batch: 1, Poison: Keys(2),
			Budget: Budget{Stale: 1, Redrives: 1},
		}},
	}
	return append(h, largeHoldings()...)
}

func largeHoldings() []Holding {
	six := slices.Concat(One(1, 2, 3), Spares(1, 2, 3))
	return []Holding{
		{Name: "three versions, two crashes, two duplicates", Large: true, Bounds: Bounds{
			Messages: One(1, 2, 3), Execs: 2, Batch: 2, Budget: Budget{Crashes: 2, Duplicates: 2, Throttles: 1},
		}},
		{Name: "three flights, two crashes, two duplicates", Large: true, Bounds: Bounds{
			Messages: One(1, 2, 3), Execs: 3, Batch: 2, Budget: Budget{Crashes: 2, Duplicates: 2},
		}},
		{Name: "two receivers with three versions", Large: true, Bounds: Bounds{
			Messages: One(1, 2, 3), Execs: 2, Receivers: 2, Batch: 3,
			Budget: Budget{Crashes: 1, Duplicates: 2, Throttles: 1},
		}},
		{Name: "six messages, without versions at the sink", Large: true, Bounds: Bounds{
			Messages: six, Execs: 2, Batch: 2, Sink: Plain, Budget: Budget{Crashes: 1, Duplicates: 2, Throttles: 1},
		}},
		{Name: "a sink without versions, two crashes, two duplicates", Large: true, Bounds: Bounds{
			Messages: One(1, 2, 3), Execs: 2, Batch: 2, Sink: Plain,
			Budget: Budget{Crashes: 2, Duplicates: 2, Throttles: 1},
		}},
		{Name: "a sink that forgets deletes, two crashes", Large: true, Bounds: Bounds{
			Messages: One(1, 2, 3), Execs: 2, Batch: 2, Sink: Forgetful, Deletes: Keys(2),
			Budget: Budget{Crashes: 2, Duplicates: 1, Throttles: 1},
		}},
		{Name: "clocks apart, two crashes", Large: true, Bounds: Bounds{
			Messages: One(1, 2, 3), Execs: 2, Batch: 1, Clocks: true,
			Budget: Budget{Crashes: 2, Duplicates: 1, Throttles: 1},
		}},
		{Name: "poison v3, dead letters moved and redriven", Large: true, Bounds: Bounds{
			Messages: slices.Concat(One(1, 2, 3), Spares(3)), Execs: 2, Batch: 2, Poison: Keys(3),
			Budget: Budget{Crashes: 1, Duplicates: 1, Moves: 1, Redrives: 1},
		}},
		{Name: "poison v2, dead letters moved and redriven", Large: true, Bounds: Bounds{
			Messages: slices.Concat(One(1, 2, 3), Spares(2)), Execs: 2, Batch: 2, Poison: Keys(2),
			Budget: Budget{Crashes: 1, Duplicates: 1, Moves: 1, Redrives: 1},
		}},
		{Name: "prune with everything that is old", Large: true, Bounds: Bounds{
			Messages: slices.Concat(One(1, 2, 3), Spares(1)), Execs: 2, Batch: 2, Poison: Keys(3), Sink: Forgetful,
			Deletes: Keys(2),
			Budget:  Budget{Prunes: 1, Redrives: 1, Deadlines: 1, Crashes: 1},
		}},
		{Name: "several events, two crashes", Large: true, Bounds: Bounds{
			Messages: []Message{{Keys: Keys(1, 3)}, {Keys: Keys(2, 3)}}, Execs: 2, Batch: 2, Poison: Keys(3),
			Budget: Budget{Crashes: 2, Duplicates: 1, Throttles: 1},
		}},
		{Name: "two poison versions above a good one, two crashes", Large: true, Bounds: Bounds{
			Messages: slices.Concat([]Message{{Keys: Keys(1, 2, 3)}}, One(1)), Execs: 2, Batch: 2, Poison: Keys(2, 3),
			NoCap:  true,
			Budget: Budget{Crashes: 2, Throttles: 1},
		}},
		{Name: "item errors and crashes", Large: true, Bounds: Bounds{
			Messages: slices.Concat(One(1, 2, 3), Spares(3)), Execs: 2, Batch: 2, Stubborn: Keys(3), MaxRefusals: 3,
			Budget: Budget{Crashes: 1, Duplicates: 1},
		}},
	}
}
