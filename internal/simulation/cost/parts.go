// SPDX-License-Identifier: Apache-2.0

package cost

import (
	"math"
	"slices"

	"github.com/lullhq/lull/internal/config"
)

// PartRate is the most events a second that one stack is estimated with. Several stacks of the same
// settings share a higher load (docs/scale.md).
const PartRate = 5_000

// parts is how many stacks share the load, so that each queue has room for its messages.
func parts(c *config.Config, load Load) int {
	return max(int(math.Ceil(load.Rate/min(PartRate, c.Room(c.DefaultCollection)))), 1)
}

// part is the load of one of several stacks.
func (l Load) part(of int) Load {
	l.Rate, l.Documents = l.Rate/float64(of), l.Documents/of
	return l
}

// times is the bill of several stacks.
func (b Bill) times(stacks int) Bill {
	n := float64(stacks)
	b.Items = slices.Clone(b.Items)
	for i := range b.Items {
		b.Items[i].Count, b.Items[i].Dollars = b.Items[i].Count*n, b.Items[i].Dollars*n
	}
	b.Total, b.Requests = b.Total*n, b.Requests*n
	return b
}
