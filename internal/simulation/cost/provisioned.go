// SPDX-License-Identifier: Apache-2.0

package cost

import (
	"cmp"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/simulation/price"
)

// UsualUse is the average used percentage of a provisioned capacity, if the load does not name one.
// Auto scaling with a target of 70 % reaches this average if traffic changes slowly.
const UsualUse = 50

// scalingAlarms is the number of alarms that auto scaling creates for each capacity. Two alarms
// watch the use. Two watch for a change of the capacity that auto scaling did not make.
const scalingAlarms = 4

// provisioned bills the row writes and reads of a month by capacity instead of by request.
// provisioned removes these writes and reads from the usage.
func provisioned(t config.Table, load Load, usage *price.Usage) []price.Item {
	l, used := price.USEast1, cmp.Or(load.Used, UsualUse)/100
	hours := func(units float64, c config.Capacity) float64 {
		return max(units/3600/used, float64(c.Min)*month.Hours())
	}
	writes, reads := hours(usage.WriteUnits, t.Writes), hours(usage.ReadUnits+pruneUnits(load), t.Reads)
	usage.WriteUnits, usage.ReadUnits = 0, 0
	return []price.Item{
		price.NewItem("DynamoDB writes", "capacity: unit hours", writes, l.WriteCapacity, 1),
		price.NewItem("DynamoDB writes", "capacity of the index: unit hours", hours(0, t.Waiting.Writes), l.WriteCapacity, 1),
		price.NewItem("DynamoDB reads", "capacity: unit hours", reads, l.ReadCapacity, 1),
		price.NewItem("DynamoDB reads", "capacity of the index: unit hours", hours(0, t.Waiting.Reads), l.ReadCapacity, 1),
	}
}

// pruneUnits returns the read units of prune in a month. Prune reads each row once a day.
func pruneUnits(load Load) float64 { return float64(load.Documents) * rowBytes / (8 << 10) * 30 }
