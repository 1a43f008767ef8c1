// SPDX-License-Identifier: Apache-2.0

package command

import (
	"testing"

	"github.com/lullhq/lull/internal/simulation/cost"
)

func TestCostEstimatesTheBillOfTheSettings(t *testing.T) {
	t.Parallel()
	a := lull(t, "", "cost", "--json", "--load", "0.5")
	a.want(t, "cost", exitOK)
	e := parsed[cost.Estimate](t, a)
	if e.Floor.Total <= 0 || e.Ceiling.Total <= e.Floor.Total || e.Events != 0.5*3600*24*30 {
		t.Errorf("%v events for $%v to %v", e.Events, e.Floor.Total, e.Ceiling.Total)
	}
	for _, wrong := range [][]string{
		{"--load", "1e9"}, {"--load", "NaN"}, {"--burst", "0"}, {"--hours", "25"}, {"--config", "nothing.yaml"}, {"x"},
	} {
		lull(t, "", append([]string{"cost"}, wrong...)...).want(t, wrong[0], exitUsage)
	}
}
