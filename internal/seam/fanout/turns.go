// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"cmp"
	"slices"
)

// ByTurns orders items so that their owners take turns. The first item of every owner comes before
// the second item of any owner. The items of one owner keep their order.
func ByTurns[T any, Owner comparable](items []T, owner func(T) Owner) {
	type turn struct {
		item T
		n    int
	}
	turns, had := make([]turn, len(items)), make(map[Owner]int, len(items))
	for i, item := range items {
		o := owner(item)
		turns[i] = turn{item, had[o]}
		had[o]++
	}
	slices.SortStableFunc(turns, func(x, y turn) int { return cmp.Compare(x.n, y.n) })
	for i := range turns {
		items[i] = turns[i].item
	}
}
