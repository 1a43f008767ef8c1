// SPDX-License-Identifier: Apache-2.0

package scheduletest

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/seam/schedule"
	"github.com/lullhq/lull/internal/seam/storetest"
	"github.com/lullhq/lull/internal/shard"
)

// Run runs the suite. open returns a new store, or another handle on a shared store.
func Run(t *testing.T, open func(t *testing.T) schedule.Store) {
	t.Helper()
	fresh := func(t *testing.T) *run { return &run{T: t, Store: open(t), name: strings.ToLower(rand.Text())} }
	storetest.Run(t, fresh, map[string]func(*run){
		"an item is returned byte for byte once it is due":                            roundTrip,
		"an item is due at its time, and not before":                                  dueAt,
		"the earliest hour comes first, in pages of any size, and no item is missing": pages,
		"an item that is stored again is replaced":                                    replaces,
		"an item that is stored again for another time is due only at that time":      moves,
		"a deleted item is not found":                                                 deletes,
		"the items of a document are listed without their messages":                   lists,
		"an item without an id is refused":                                            noID,
		"a call under a context that has ended fails":                                 endedContext,
	})
}

// run is one test. The test's random name is part of the ids that it stores.
type run struct {
	*testing.T
	schedule.Store
	name string
	n    int
}

var begin = time.Date(2026, 5, 4, 10, 59, 59, 0, time.UTC)

func (r *run) item(at time.Time) schedule.Item {
	r.n++
	return schedule.Item{
		ID: fmt.Sprintf("%s-%02d", r.name, r.n), Doc: shard.DocID("pages#" + r.name), Key: "\x00\x22\x30\x39\x00\xff",
		NotBefore: at, Sink: "search",
		Lane: flight.Bulk, FirstSent: begin.Add(-time.Hour), MessageID: "m-1",
		Body: "{\"title\":\"größer \\u0000 <&>\"\n}",
		Attributes: map[string]queue.Attribute{
			queue.AttrSource: queue.Text("native"),
			"key":            {Type: "Binary", Binary: []byte{0, 0xff}},
		},
	}
}

func (r *run) put(it schedule.Item) {
	r.Helper()
	storetest.OK(r, "put", r.Put(r.Context(), it))
}

func (r *run) drop(it schedule.Item) {
	r.Helper()
	storetest.OK(r, "delete", r.Delete(r.Context(), it.ID))
}

// own returns the items of this test, with times in UTC. A shared store may hold other items.
func (r *run) own(items []schedule.Item) (own []schedule.Item) {
	for _, it := range items {
		if strings.HasPrefix(it.ID, r.name) {
			own = append(own, utc(it))
		}
	}
	return own
}

// utc returns an item with its times in UTC.
func utc(it schedule.Item) schedule.Item {
	it.NotBefore, it.FirstSent = it.NotBefore.UTC(), it.FirstSent.UTC()
	return it
}

// expect reads the items that are due. It checks the order of the hours, and that exactly the items
// in want are due from this test.
func (r *run) expect(until time.Time, want ...schedule.Item) { r.Helper(); r.due(until, 100, want...) }

// due does what expect does, in pages of limit items.
func (r *run) due(until time.Time, limit int, want ...schedule.Item) {
	r.Helper()
	var hour time.Time
	all := storetest.Walk(r, limit, func(cursor string, limit int) ([]schedule.Item, string, error) {
		return r.Due(r.Context(), until, cursor, limit)
	})
	for _, it := range all {
		h := it.NotBefore.Truncate(time.Hour)
		if h.Before(hour) {
			r.Errorf("%s of hour %s comes after hour %s", it.ID, h, hour)
		}
		if it.NotBefore.After(until) {
			r.Errorf("%s is due at %s, but the call asked for items until %s", it.ID, it.NotBefore, until)
		}
		hour = h
	}
	got := r.own(all)
	slices.SortFunc(got, func(a, b schedule.Item) int { return strings.Compare(a.ID, b.ID) })
	if len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
		r.Errorf("until %s, pages of %d: %+v, want %+v", until.Format(time.TimeOnly), limit, got, want)
	}
}

func roundTrip(r *run) {
	it := r.item(begin)
	r.put(it)
	large := r.item(begin)
	large.Body, large.Attributes = strings.Repeat("größer\x7f", queue.MaxBytes/9), nil
	r.put(large)
	r.expect(begin.Add(time.Hour), it, large)
}

func dueAt(r *run) {
	it := r.item(begin)
	r.put(it)
	r.expect(begin.Add(-time.Second))
	r.expect(begin, it)
	r.expect(begin.Add(100*24*time.Hour), it)
}

func pages(r *run) {
	var want []schedule.Item
	for i := range 23 {
		want = append(want, r.item(begin.Add(time.Duration(i*7%23)*13*time.Minute)))
		r.put(want[i])
	}
	r.put(r.item(begin.Add(24 * time.Hour)))
	for _, limit := range []int{1, 4, 1000} {
		r.due(begin.Add(12*time.Hour), limit, want...)
	}
}

func replaces(r *run) {
	it := r.item(begin)
	r.put(it)
	it.Body, it.MessageID = "{}", "m-2"
	r.put(it)
	r.expect(begin, it)
}

func moves(r *run) {
	for _, to := range []time.Duration{30 * time.Hour, -30 * time.Hour, time.Second} {
		it := r.item(begin)
		r.put(it)
		it.NotBefore = begin.Add(to)
		r.put(it)
		r.expect(it.NotBefore, it)
		r.expect(it.NotBefore.Add(-time.Second))
		r.expect(begin.Add(100*time.Hour), it)
		r.drop(it)
	}
}

func deletes(r *run) {
	a, b := r.item(begin), r.item(begin)
	r.put(a)
	r.put(b)
	for range 2 {
		r.drop(a)
		r.expect(begin, b)
	}
}

func lists(r *run) {
	soon, late, other := r.item(begin), r.item(begin.Add(700*time.Hour)), r.item(begin)
	other.Doc += "-other"
	for _, it := range []schedule.Item{late, other, soon} {
		r.put(it)
	}
	for _, limit := range []int{1, 100} {
		for doc, want := range map[shard.DocID][]schedule.Item{
			soon.Doc: {soon, late}, other.Doc: {other}, soon.Doc + "-none": nil, "": {soon, other, late},
		} {
			got := r.own(storetest.Walk(r, limit, func(cursor string, limit int) ([]schedule.Item, string, error) {
				return r.List(r.Context(), doc, cursor, limit)
			}))
			for i := range want {
				want[i].Body, want[i].Attributes = "", nil
			}
			slices.SortStableFunc(got, func(a, b schedule.Item) int {
				return cmp.Or(a.NotBefore.Compare(b.NotBefore), strings.Compare(a.ID, b.ID))
			})
			if !reflect.DeepEqual(got, want) {
				r.Errorf("list %q in pages of %d: %+v, want %+v", doc, limit, got, want)
			}
		}
	}
	got, ok, err := r.Get(r.Context(), late.ID)
	if err != nil || !ok || !reflect.DeepEqual(utc(got), late) {
		r.Errorf("get: %+v, %t, error %v; want the item with its message", got, ok, err)
	}
	if got, ok, err := r.Get(r.Context(), late.ID+"-none"); err != nil || ok {
		r.Errorf("get an absent item: %+v, %t, error %v", got, ok, err)
	}
}

func noID(r *run) {
	it := r.item(begin)
	it.ID = ""
	if err := r.Put(r.Context(), it); err == nil {
		r.Error("put: no error")
	}
}

func endedContext(r *run) {
	it := r.item(begin)
	r.put(it)
	ended := storetest.Ended(r)
	_, _, due := r.Due(ended, begin, "", 10)
	_, _, list := r.List(ended, "", "", 10)
	_, _, get := r.Get(ended, it.ID)
	storetest.Failed(r, map[string]error{
		"put": r.Put(ended, it), "due": due, "list": list, "get": get, "delete": r.Delete(ended, it.ID),
	})
	r.expect(begin, it)
}
