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

	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/internal/schedule"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/storetest"
)

// Run is the suite. open makes a store, or another handle on a shared one.
func Run(t *testing.T, open func(t *testing.T) schedule.Store) {
	t.Helper()
	fresh := func(t *testing.T) *run { return &run{Store: open(t), name: strings.ToLower(rand.Text())} }
	storetest.Run(t, fresh, map[string]func(*testing.T, *run){
		"an item comes back byte for byte once it is due":                    roundTrip,
		"an item is due at its time, not before":                             dueAt,
		"the earliest hour comes first, in pages of any size, none left out": pages,
		"storing an item again replaces it":                                  replaces,
		"an item stored again for another time is due then only":             moves,
		"a deleted item is gone":                                             deletes,
		"the items of a document are listed without their messages":          lists,
		"an item without an id is refused":                                   noID,
		"a call under a context that has ended fails":                        endedContext,
	})
}

// run is one test with a name of its own in what it stores.
type run struct {
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

func (r *run) put(t *testing.T, it schedule.Item) {
	t.Helper()
	if err := r.Put(t.Context(), it); err != nil {
		t.Fatalf("put: %v", err)
	}
}

func (r *run) drop(t *testing.T, it schedule.Item) {
	t.Helper()
	if err := r.Delete(t.Context(), it.ID); err != nil {
		t.Fatalf("delete: %v", err)
	}
}

// due walks through what is due, checks the order of hours and returns the items that are this
// test's.
func (r *run) due(t *testing.T, until time.Time, limit int) []schedule.Item {
	t.Helper()
	var mine []schedule.Item
	var hour time.Time
	due := func(cursor string, limit int) ([]schedule.Item, string, error) {
		return r.Due(t.Context(), until, cursor, limit)
	}
	for _, it := range storetest.Walk(t, limit, due) {
		h := it.NotBefore.Truncate(time.Hour)
		if h.Before(hour) {
			t.Errorf("%s of hour %s comes after hour %s", it.ID, h, hour)
		}
		if it.NotBefore.After(until) {
			t.Errorf("%s is due at %s, asked was until %s", it.ID, it.NotBefore, until)
		}
		hour = h
		if strings.HasPrefix(it.ID, r.name) {
			mine = append(mine, it)
		}
	}
	return mine
}

func (r *run) expect(t *testing.T, until time.Time, want ...schedule.Item) {
	t.Helper()
	got := r.due(t, until, 100)
	for i := range got {
		got[i].NotBefore, got[i].FirstSent = got[i].NotBefore.UTC(), got[i].FirstSent.UTC()
	}
	slices.SortFunc(got, func(a, b schedule.Item) int { return strings.Compare(a.ID, b.ID) })
	if len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
		t.Errorf("until %s: %+v, want %+v", until.Format(time.TimeOnly), got, want)
	}
}

func roundTrip(t *testing.T, r *run) {
	it := r.item(begin)
	r.put(t, it)
	large := r.item(begin)
	large.Body, large.Attributes = strings.Repeat("größer\x7f", queue.MaxBytes/9), nil
	r.put(t, large)
	r.expect(t, begin.Add(time.Hour), it, large)
}

func dueAt(t *testing.T, r *run) {
	it := r.item(begin)
	r.put(t, it)
	r.expect(t, begin.Add(-time.Second))
	r.expect(t, begin, it)
	r.expect(t, begin.Add(100*24*time.Hour), it)
}

func pages(t *testing.T, r *run) {
	want := map[string]bool{}
	for i := range 23 {
		it := r.item(begin.Add(time.Duration(i*7%23) * 13 * time.Minute))
		want[it.ID] = true
		r.put(t, it)
	}
	r.put(t, r.item(begin.Add(24*time.Hour)))
	for _, limit := range []int{1, 4, 1000} {
		seen := map[string]bool{}
		for _, it := range r.due(t, begin.Add(12*time.Hour), limit) {
			if seen[it.ID] || !want[it.ID] {
				t.Errorf("pages of %d: %s comes twice or too early", limit, it.ID)
			}
			seen[it.ID] = true
		}
		if len(seen) != len(want) {
			t.Errorf("pages of %d: %d items, want %d", limit, len(seen), len(want))
		}
	}
}

func replaces(t *testing.T, r *run) {
	it := r.item(begin)
	r.put(t, it)
	it.Body, it.MessageID = "{}", "m-2"
	r.put(t, it)
	r.expect(t, begin, it)
}

func moves(t *testing.T, r *run) {
	for _, to := range []time.Duration{30 * time.Hour, -30 * time.Hour, time.Second} {
		it := r.item(begin)
		r.put(t, it)
		it.NotBefore = begin.Add(to)
		r.put(t, it)
		r.expect(t, it.NotBefore, it)
		r.expect(t, it.NotBefore.Add(-time.Second))
		r.expect(t, begin.Add(100*time.Hour), it)
		r.drop(t, it)
	}
}

func deletes(t *testing.T, r *run) {
	a, b := r.item(begin), r.item(begin)
	r.put(t, a)
	r.put(t, b)
	for range 2 {
		r.drop(t, a)
		r.expect(t, begin, b)
	}
}

func lists(t *testing.T, r *run) {
	soon, late, other := r.item(begin), r.item(begin.Add(700*time.Hour)), r.item(begin)
	other.Doc += "-other"
	for _, it := range []schedule.Item{late, other, soon} {
		r.put(t, it)
	}
	for _, limit := range []int{1, 100} {
		for doc, want := range map[shard.DocID][]schedule.Item{
			soon.Doc: {soon, late}, other.Doc: {other}, soon.Doc + "-none": nil, "": {soon, other, late},
		} {
			var got []schedule.Item
			list := func(cursor string, limit int) ([]schedule.Item, string, error) {
				return r.List(t.Context(), doc, cursor, limit)
			}
			for _, it := range storetest.Walk(t, limit, list) {
				if strings.HasPrefix(it.ID, r.name) { // the store may be shared
					it.NotBefore, it.FirstSent = it.NotBefore.UTC(), it.FirstSent.UTC()
					got = append(got, it)
				}
			}
			for i := range want {
				want[i].Body, want[i].Attributes = "", nil
			}
			slices.SortStableFunc(got, func(a, b schedule.Item) int {
				return cmp.Or(a.NotBefore.Compare(b.NotBefore), strings.Compare(a.ID, b.ID))
			})
			if !reflect.DeepEqual(got, want) {
				t.Errorf("list %q in pages of %d: %+v, want %+v", doc, limit, got, want)
			}
		}
	}
	got, ok, err := r.Get(t.Context(), late.ID)
	got.NotBefore, got.FirstSent = got.NotBefore.UTC(), got.FirstSent.UTC()
	if err != nil || !ok || !reflect.DeepEqual(got, late) {
		t.Errorf("get: %+v, %t, error %v; want the item with its message", got, ok, err)
	}
	if got, ok, err := r.Get(t.Context(), late.ID+"-none"); err != nil || ok {
		t.Errorf("get what is not there: %+v, %t, error %v", got, ok, err)
	}
}

func noID(t *testing.T, r *run) {
	it := r.item(begin)
	it.ID = ""
	if err := r.Put(t.Context(), it); err == nil {
		t.Error("put: no error")
	}
}

func endedContext(t *testing.T, r *run) {
	it := r.item(begin)
	r.put(t, it)
	ended := storetest.Ended(t)
	_, _, due := r.Due(ended, begin, "", 10)
	_, _, list := r.List(ended, "", "", 10)
	_, _, get := r.Get(ended, it.ID)
	storetest.Failed(t, map[string]error{
		"put": r.Put(ended, it), "due": due, "list": list, "get": get, "delete": r.Delete(ended, it.ID),
	})
	r.expect(t, begin, it)
}
