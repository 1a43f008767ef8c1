// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// TestSmallMachinesHoldAndTheirChangesFall explores the circuit breaker, minInterval, group sizes,
// a rebuild and the runner of jobs.
func TestSmallMachinesHoldAndTheirChangesFall(t *testing.T) {
	t.Parallel()
	for _, c := range append(Cases(), JobCases()...) {
		t.Run(c.Machine+" "+c.What, func(t *testing.T) {
			t.Parallel()
			got := c.Run()
			if c.Name == "" {
				if len(got.Lines) > 0 || !got.Full {
					t.Fatalf("the design falls: %s\n%s", got.Summary, strings.Join(got.Lines, "\n"))
				}
				return
			}
			if len(got.Lines) == 0 {
				t.Fatalf("the change holds: %s", got.Summary)
			}
			end := "Stuck: this never settles."
			if got.Broken != 0 {
				end = fmt.Sprintf("Broken: %s.", got.Broken)
			}
			golden(t, filepath.Join("testdata", c.Name+".txt"),
				fmt.Sprintf("Change: %s.\n\n%s\n\n%s\n", c.What, strings.Join(got.Lines, "\n"), end))
		})
	}
}
