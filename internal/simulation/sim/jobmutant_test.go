// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/proof/tree"
	"github.com/lullhq/lull/internal/shard"
)

// jobMutants are rules of the job runner that a change might leave out.
var jobMutants = []struct {
	name, change string
	edits        jobEdits
}{
	{
		"save without the owner", "SAVE RUN does not ask for the owner",
		editingRuns(shard.SAVERUN, func(w *shard.Write) { without(w, shard.AttrOwner) }),
	},
	{
		"end without the owner", "END RUN does not ask for the owner",
		editingRuns(shard.ENDRUN, func(w *shard.Write) { without(w, shard.AttrOwner) }),
	},
	{
		"the end keeps the owner", "END RUN leaves the owner and the lease",
		editingRuns(shard.ENDRUN, func(w *shard.Write) { keeping(w, shard.AttrOwner, shard.AttrLeaseUntil) }),
	},
	{
		"start twice", "START RUN does not ask when the last lease began",
		editingRuns(shard.STARTRUN, func(w *shard.Write) { without(w, shard.AttrRanAt) }),
	},
	{
		"copies left", "a step of backfill goes on beside a copy that has begun", jobEdits{backfill: func(err error) error {
			if err != nil && strings.Contains(err.Error(), "its copy has begun") {
				return nil
			}
			return err
		}},
	},
}

func editingRuns(of shard.Transition, edit func(w *shard.Write)) jobEdits {
	return jobEdits{store: func(s shard.Store) shard.Store { return editedStore{s, only(of), edit} }}
}

func TestEveryMutantOfAJobIsNoticed(t *testing.T) {
	t.Parallel()
	if testing.Short() || raceEnabled {
		t.Skip("hundreds of worlds")
	}
	var table strings.Builder
	table.WriteString("| mutant | what it changes | first caught as |\n|---|---|---|\n")
	for _, m := range jobMutants {
		r := caught(t, 300, func(seed uint64) *World {
			w, _ := filling(t, seed, m.edits)
			return w
		})
		fmt.Fprintf(&table, "| %s | %s | %s |\n", m.name, m.change, r.Violations[0].Rule)
	}
	for _, m := range resyncMutants {
		r := caught(t, 100, func(seed uint64) *World {
			w, _ := resynced(t, seed, m.edits, m.made)
			return w
		})
		rule, _, _ := strings.Cut(r.Violations[0].Rule, ": ") // without the event
		fmt.Fprintf(&table, "| %s | %s | %s |\n", m.name, m.change, rule)
	}
	tree.Generated(t, "internal/simulation/sim/testdata/mutants.md", "job mutants", table.String(), *update)
}
