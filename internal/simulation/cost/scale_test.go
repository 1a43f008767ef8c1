// SPDX-License-Identifier: Apache-2.0

package cost

import (
	"fmt"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/proof/tree"
)

// AWS's default quotas of one account in a large region, a second. docs/scale.md names their pages.
const (
	newTableWrites = 4_000  // of a new table on demand, which grows with use
	tableWrites    = 40_000 // of one table
	accountStarts  = 6_000  // Express executions
	accountRuns    = 1_000  // functions at once
	inFlight       = 120_000
)

// The page of sizes has the bill and the use of each quota at three loads.
func TestThePageOfSizes(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("six simulations, two of 100,000 events")
	}
	rows := []string{
		"stacks", "a million events, two pollers at least, $", "a million events, five pollers at least, $", "a month, $",
		fmt.Sprintf("messages in flight a queue, of %d", inFlight),
		fmt.Sprintf("row writes a second and table, of %d (%d when new)", tableWrites, newTableWrites),
		fmt.Sprintf("Express executions started a second, of %d", accountStarts),
		fmt.Sprintf("functions that run at once, at most, of %d", accountRuns),
	}
	loads := []float64{500, 5_000, 50_000}
	for _, rate := range loads {
		l := fast()
		l.Rate = rate
		e := estimate(t, defaults(), l)
		in := func(name string) float64 {
			for _, i := range e.Ceiling.Items {
				if i.What == name {
					return i.Count
				}
			}
			t.Fatalf("no line %q", name)
			return 0
		}
		seconds := 30 * 24 * time.Hour.Seconds()
		c := defaults()
		hold := float64(c.Queues.MaxInFlight) / c.Room(c.DefaultCollection) // seconds
		for i, v := range []float64{
			float64(e.Parts), e.Floor.PerMillion, e.Ceiling.PerMillion, e.Ceiling.Total, rate / float64(e.Parts) * hold,
			in("write units") / seconds / float64(e.Parts), in("Express executions") / seconds,
			in("GB-seconds") / seconds / 0.5, // no function has less memory than receive
		} {
			form := " | %.0f"
			if i == 1 || i == 2 {
				form = " | %.2f"
			}
			rows[i] += fmt.Sprintf(form, v)
		}
	}
	text := "| events a second | 500 | 5,000 | 50,000 |\n|---|---|---|---|\n"
	for _, r := range rows {
		text += "| " + r + " |\n"
	}
	t.Log(text)
	tree.Generated(t, "docs/scale.md", "sizes", text, *update)
}
