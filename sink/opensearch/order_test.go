// SPDX-License-Identifier: Apache-2.0

package opensearch

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
)

// Several passes over ids in random order must return every id once and in order, even if few ids
// are kept at a time.
func TestPassesGiveEveryIDInOrder(t *testing.T) {
	t.Parallel()
	for n := range 60 {
		want := make([]string, n)
		for i := range want {
			want[i] = strconv.Itoa(i * 7)
		}
		slices.Sort(want)
		for most := 1; most < 20; most++ {
			var got []string
			after := ""
			for passes := 0; ; passes++ {
				held := smallest{most: most, after: after}
				for _, at := range rand.Perm(n) {
					if held.add(want[at]); len(held.kept) > 2*most {
						t.Fatalf("%d ids are held, want %d at most", len(held.kept), 2*most)
					}
				}
				held.cut()
				got = append(got, held.kept...)
				if !held.more {
					break
				}
				if after = got[len(got)-1]; passes > n {
					t.Fatal("it does not end")
				}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%d ids, %d held: got %v, want %v", n, most, got, want)
			}
		}
	}
}
