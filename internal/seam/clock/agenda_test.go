// SPDX-License-Identifier: Apache-2.0

package clock_test

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/lullhq/lull/internal/seam/clock"
)

// Compares an agenda with a slow one: a list that is sorted each time.
func TestAnAgendaDoesWhatASortedListDoes(t *testing.T) {
	t.Parallel()
	type item struct {
		at    time.Duration
		place clock.Place
	}
	rapid.Check(t, func(t *rapid.T) {
		var agenda clock.Agenda[*item]
		var list []*item // in the order in which they were added
		first := func() *item {
			return slices.MinFunc(list, func(a, b *item) int { return cmp.Compare(a.at, b.at) })
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				it := &item{at: time.Duration(rapid.IntRange(0, 9).Draw(t, "at"))}
				agenda.Add(it.at, it, &it.place)
				list = append(list, it)
			},
			"remove": func(t *rapid.T) {
				if len(list) == 0 {
					t.Skip("there is nothing to remove")
				}
				i := rapid.IntRange(0, len(list)-1).Draw(t, "i")
				for range 2 { // the second time the item is not in the agenda
					agenda.Remove(&list[i].place)
				}
				list = slices.Delete(list, i, i+1)
			},
			"due": func(t *rapid.T) {
				now := time.Duration(rapid.IntRange(0, 9).Draw(t, "now"))
				got, ok := agenda.Due(now)
				if want := len(list) > 0 && first().at <= now; ok != want || ok && got != first() {
					t.Fatalf("due at %d: %v, %v, want %v", now, got, ok, want)
				}
				list = slices.DeleteFunc(list, func(it *item) bool { return ok && it == got })
			},
			"next": func(t *rapid.T) {
				at, got, ok := agenda.Next()
				if ok != (len(list) > 0) || ok && (got != first() || at != got.at) {
					t.Fatalf("next is %v at %s, %v, of %d", got, at, ok, len(list))
				}
				list = slices.DeleteFunc(list, func(it *item) bool { return ok && it == got })
			},
			"": func(t *rapid.T) {
				if at, got, ok := agenda.First(); ok != (len(list) > 0) || ok && (got != first() || at != got.at) {
					t.Fatalf("the first is %v at %s, %v, of %d", got, at, ok, len(list))
				}
			},
		})
	})
}
