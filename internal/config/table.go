// SPDX-License-Identifier: Apache-2.0

package config

// Table is the settings of the DynamoDB table that holds the rows.
type Table struct {
	// Name is the name of a DynamoDB table that exists already (docs/deploy.md lists what lull
	// needs of such a table). By default it is empty, and the stack creates a table named
	// STACK-shards.
	Name string `json:"name"`
	// Billing says how AWS bills the table and its index. Default "onDemand".
	Billing Billing `json:"billing"`
	// Writes and Reads are the table's capacity if Billing is "provisioned". Default: 5 to 4,000
	// units a second; auto scaling aims to have 70 % of them used.
	Writes Capacity `json:"writes"`
	Reads  Capacity `json:"reads"`
	// Waiting is the capacity of the index `waiting`, which holds dead letters and scheduled
	// events. Default: 1 to 1,000 units a second.
	Waiting Throughput `json:"waiting"`
}

// Billing is how AWS bills a table.
type Billing string

// The values of Table.Billing.
const (
	OnDemand    Billing = "onDemand"    // for each request
	Provisioned Billing = "provisioned" // for the capacity that is kept ready, by the hour
)

// Throughput is the capacity of an index.
type Throughput struct {
	Writes Capacity `json:"writes"`
	Reads  Capacity `json:"reads"`
}

// Capacity is what auto scaling keeps ready, in units a second. A write unit is one write of up to
// 1 KB, and a read unit is one consistent read of up to 4 KB.
type Capacity struct {
	// Min and Max are the smallest and the largest capacity.
	Min int `json:"min"`
	Max int `json:"max"`
	// Target is the percentage of the capacity that auto scaling aims to have used, 20 to 90.
	Target int `json:"target"`
}

// Capacities lists the four capacities of the table by the names of their settings.
func (t Table) Capacities() []NamedCapacity {
	return []NamedCapacity{
		{"table.writes", t.Writes},
		{"table.reads", t.Reads},
		{"table.waiting.writes", t.Waiting.Writes},
		{"table.waiting.reads", t.Waiting.Reads},
	}
}

// NamedCapacity is a capacity and the name of its settings.
type NamedCapacity struct {
	Name string
	Capacity
}
