// SPDX-License-Identifier: Apache-2.0

package config

import "fmt"

// capacityRules check the provisioned capacity of the table.
var capacityRules = []Rule{
	{
		"capacity-order",
		"With table.billing: provisioned, no min of a capacity is above its max.",
		checkCapacityOrder,
	},
	{
		"capacity-rate",
		"With table.billing: provisioned, table.writes.max is at least queues.expectedRate for each sink.",
		checkCapacityRate,
	},
}

func checkCapacityOrder(c *Config, f *checker) {
	if c.Table.Billing != Provisioned {
		return
	}
	for _, n := range c.Table.Capacities() {
		if n.Min > n.Max {
			f.fault(n.Name+".min", n.Min, fmt.Sprintf("is more than the %s.max of %d", n.Name, n.Max),
				fmt.Sprintf("lower it to at most %d, or raise %s.max", n.Max, n.Name))
		}
	}
}

// checkCapacityRate compares the capacity with one write for each expected event. A burst also
// needs a claim and a commit, which checkCapacityRate does not count.
func checkCapacityRate(c *Config, f *checker) {
	least := c.Queues.ExpectedRate * len(c.Sinks)
	if c.Table.Billing != Provisioned || c.Table.Writes.Max >= least {
		return
	}
	f.fault("table.writes.max", c.Table.Writes.Max, fmt.Sprintf(
		"is less than the queues.expectedRate of %d events a second for each of %d sinks: each event is a write",
		c.Queues.ExpectedRate, len(c.Sinks)),
		fmt.Sprintf("raise it to at least %d, or lower queues.expectedRate", least))
}
