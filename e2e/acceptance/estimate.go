// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// The price of the domain that a run makes, in dollars an hour: one t3.small.search and 10 GB of
// gp3 in us-east-1 (aws.amazon.com/opensearch-service/pricing, read in November 2026).
const domainHour = 0.036 + 10*0.122/730

// aroundLoad is how long a run takes beside the load: the domain, two deploys, tests, destroy.
const aroundLoad = 75 * time.Minute

const hoursOfMonth = 730

// estimate returns what a run costs, in dollars. `lull cost` says what the load costs in a month.
// The tests and the deploys send fewer events than the load, so the load's price is paid for the
// whole time.
func (r *runner) estimate(ctx context.Context) (float64, time.Duration, error) {
	lull := filepath.Join(r.g.Work, "lull")
	out, err := exec.CommandContext(ctx, lull, "cost", "--load", strconv.Itoa(r.rate), "--json").Output()
	if err != nil {
		return 0, 0, fmt.Errorf("estimate the cost of the load: %w", err)
	}
	takes := r.length + aroundLoad
	dollars, err := ceiling(out)
	if err != nil {
		return 0, 0, err
	}
	dollars *= takes.Hours() / hoursOfMonth
	if r.search == "" {
		dollars += domainHour * takes.Hours()
	}
	return dollars, takes, nil
}

// ceiling returns the total of the more expensive column of `lull cost`, in dollars a month.
func ceiling(answer []byte) (float64, error) {
	var cost struct{ Ceiling struct{ Total float64 } }
	if err := json.Unmarshal(answer, &cost); err != nil {
		return 0, fmt.Errorf("read the answer of lull cost: %w", err)
	}
	if cost.Ceiling.Total <= 0 {
		return 0, errors.New("the answer of lull cost has no ceiling.total")
	}
	return cost.Ceiling.Total, nil
}

// announce prints what the run will do, where, for how long, and its price.
func (r *runner) announce(ctx context.Context) error {
	where := "the emulator " + r.backend
	if r.backend == onAWS {
		dollars, takes, err := r.estimate(ctx)
		if err != nil {
			return err
		}
		r.state.Dollars = dollars
		where = fmt.Sprintf("account %s, region %s: about %s and $%.2f, by list prices of us-east-1",
			r.g.AccountID, r.g.Account.Region, takes.Round(time.Minute), dollars)
	}
	fmt.Fprintf(r.out, "acceptance of the stack %s in %s.\n", r.stack, where)
	fmt.Fprintf(r.out, "It deploys the stack, tests it, sends %d events a second for %s with kills and a deploy, and removes it.\n",
		r.rate, r.length)
	return nil
}
