package sim

import (
	"slices"
	"testing"

	"github.com/lullhq/lull/internal/journal"
)

// mostWorlds is how many seeds the swarm has to get everywhere: the rarest place is a few hundred
// worlds away, and every change moves it.
const mostWorlds = 3000

// A simulator that no longer gets anywhere would pass every test. These are the places that its
// swarm must come by.
func TestTheSwarmGetsAround(t *testing.T) {
	t.Parallel()
	if raceEnabled || testing.Short() {
		t.Skip("hundreds of worlds")
	}
	steps := []journal.Step{
		journal.Skipped, journal.Admitted, journal.Held, journal.Stale, journal.Duplicate, journal.AlreadyDead,
		journal.DeadLettered, journal.Scheduled,
		journal.Failed, journal.Launched, journal.LaunchLost, journal.Superseded, journal.Waiting, journal.LeftFlight,
		journal.LeftSuperseded,
		journal.Claimed, journal.Committed,
		journal.Released, journal.Rejected, journal.OutcomeUnknown, journal.Deleted, journal.DeleteLost,
		journal.Extended, journal.Away, journal.Slowed,
		journal.Continued, journal.Ended, journal.CircuitOpened, journal.CircuitClosed, journal.RowRefused,
		journal.Unreachable, journal.Parked, journal.Dropped, journal.SinkConfiguration,
		journal.Returned, journal.Redriven, journal.Enqueued, journal.Conflict, journal.Blocked,
	}
	writes := []string{
		"ADMIT", "CLAIM", "CLAIM again", "COMMIT", "COMMIT, newer waiting", "RELEASE", "REJECT", "REJECT, not pending",
		"PARK", "PARK, not pending",
		"TRIP", "PROBE", "CLOSE", "CUT", "SPEND", "SPEND first", "REDRIVE", "START RUN", "END RUN",
	}
	for seed := uint64(1); seed <= mostWorlds && len(steps)+len(writes) > 0; seed++ {
		w := build(t, seed, Swarm)
		report(t, w.Run(), Swarm)
		steps = slices.DeleteFunc(steps, func(s journal.Step) bool { return w.oracle.alarms[s] > 0 })
		writes = slices.DeleteFunc(writes, func(name string) bool { return w.counts.Writes[name] > 0 })
	}
	if len(steps)+len(writes) > 0 {
		t.Errorf("%d worlds never got to %q and %q", mostWorlds, steps, writes)
	}
}
