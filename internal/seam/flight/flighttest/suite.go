// SPDX-License-Identifier: Apache-2.0

package flighttest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/seam/storetest"
	"github.com/lullhq/lull/internal/shard"
)

// Run runs the suite. open returns a new store, or another handle on a shared store.
func Run(t *testing.T, open func(t *testing.T) flight.Store) {
	t.Helper()
	storetest.Run(t, func(t *testing.T) run { return run{t, open(t)} }, map[string]func(run){
		"a manifest is returned as it was put, also a large one":                          roundTrip,
		"a caller may change the manifest that Get returned":                              ownCopy,
		"a flight that is put again is replaced":                                          replaces,
		"a manifest that is put again is read whole, either the old one or the new one":   replacedWhileRead,
		"an absent flight is not found":                                                   notFound,
		"a manifest of a newer schema is recognised":                                      newerSchema,
		"a checkpoint is created once":                                                    continues,
		"of twenty callers that continue a flight at once, one succeeds":                  continueRace,
		"a deleted flight and its checkpoints are gone":                                   deletes,
		"flights are listed oldest first, in pages of any size":                           lists,
		"the list has the time of a flight's newest object and the number of checkpoints": listsNewest,
		"a call under a context that has ended fails":                                     endedContext,
	})
}

// run is one test of a store.
type run struct {
	*testing.T
	flight.Store
}

// manifest returns the manifest of a new flight with n records.
func manifest(n int) *flight.Manifest {
	m := &flight.Manifest{
		Schema: flight.SchemaVersion, Flight: flight.ID(ulid.Make().String()), Sink: "search", Lane: flight.Bulk,
		Received: time.UnixMicro(1_777_888_800_123_456).UTC(),
	}
	for i := range n {
		m.Records = append(m.Records, flight.Record{
			Message: queue.Message{
				ID: fmt.Sprintf("id-%d", i), Receipt: fmt.Sprintf("receipt-%d", i),
				Body: fmt.Sprintf("{\"n\":%d,\"title\":\"größer\"}", i),
				Attributes: map[string]queue.Attribute{
					"key":            {Type: "Binary", Binary: []byte{0, 0xff, byte(i)}},
					queue.AttrSource: queue.Text("native"),
				},
				Sent:          time.UnixMilli(1_777_888_800_000 + int64(i)).UTC(),
				FirstReceived: time.UnixMilli(1_777_888_801_000).UTC(), ReceiveCount: i + 1,
			},
			Events: []flight.Entry{
				{
					Index: 0, Doc: shard.DocID(fmt.Sprintf("pages#%d", i)), Key: "\x00\x22\x30\x39\x00",
					Class: shard.ClassInt, Op: shard.Put, Due: 7, Admitted: 8,
				},
				{
					Index: 3, Doc: "pages#x", Key: "\x00\x22\xff\xff\x00", Class: shard.ClassSeq, Op: shard.Delete, Due: 9,
					Admitted: 10,
				},
			},
		})
	}
	return m
}

func (r run) put(m *flight.Manifest) {
	r.Helper()
	storetest.OK(r, "put", r.Put(r.Context(), m))
}

func (r run) checkpoint(id flight.ID, n int) {
	r.Helper()
	_, err := r.Continue(r.Context(), id, n, flight.State{Flight: id})
	storetest.OK(r, "continue", err)
}

func (r run) get(id flight.ID) *flight.Manifest {
	r.Helper()
	got, err := r.Get(r.Context(), id)
	storetest.OK(r, "get", err)
	return got
}

// expect checks that the store returns this manifest.
func (r run) expect(want *flight.Manifest) {
	r.Helper()
	got := r.get(want.Flight)
	if !reflect.DeepEqual(got, want) {
		r.Errorf("got %d records of flight %s, want the %d records of %s as they were put", len(got.Records), got.Flight,
			len(want.Records), want.Flight)
	}
}

func roundTrip(r run) {
	large := manifest(1000)
	for i := range large.Records {
		large.Records[i].Message.Body = strings.Repeat(large.Records[i].Message.ID+";", 700)
	}
	for _, m := range []*flight.Manifest{manifest(0), manifest(1), manifest(3), large} {
		r.put(m)
		r.expect(m)
	}
}

func ownCopy(r run) {
	m := manifest(2)
	r.put(m)
	got := r.get(m.Flight)
	got.Records[0].Message.Attributes["key"] = queue.Text("changed")
	got.Records[0].Events[0].Due = 99
	got.Records = got.Records[:1]
	r.expect(m)
}

func replaces(r run) {
	m := manifest(2)
	r.put(m)
	m.Records = m.Records[1:]
	r.put(m)
	r.expect(m)
}

// replacedWhileRead reads a flight while Put is repeated. The first turn of a flight may read while
// receive stores the flight again. Under the race detector the check also finds a store that shares
// its own state with readers.
func replacedWhileRead(r run) {
	m := manifest(3)
	r.put(m)
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		for n := range 5 {
			again := *m
			again.Records = m.Records[:1+n%3]
			if err := r.Put(r.Context(), &again); err != nil {
				r.Errorf("put %d again: %v", n, err)
			}
		}
	})
	for range 5 {
		got := r.get(m.Flight)
		if n := len(got.Records); n < 1 || n > 3 || !reflect.DeepEqual(got.Records, m.Records[:n]) {
			r.Errorf("got %d records, want them as they were put", n)
		}
	}
}

func notFound(r run) { r.fails(manifest(0).Flight, flight.ErrNotFound) }

// fails checks that Get fails with the wanted error.
func (r run) fails(id flight.ID, want error) {
	r.Helper()
	if _, err := r.Get(r.Context(), id); !errors.Is(err, want) {
		r.Errorf("get: %v, want %v", err, want)
	}
}

func newerSchema(r run) {
	m := manifest(1)
	m.Schema = flight.SchemaVersion + 1
	r.put(m)
	r.fails(m.Flight, flight.ErrSchema)
}

func continues(r run) {
	a, b := manifest(1), manifest(1)
	r.put(a)
	r.put(b)
	for _, c := range []struct {
		id   flight.ID
		n    int
		want bool
	}{{a.Flight, 1, true}, {a.Flight, 1, false}, {a.Flight, 2, true}, {b.Flight, 1, true}, {a.Flight, 2, false}} {
		got, err := r.Continue(r.Context(), c.id, c.n,
			flight.State{Schema: 1, Flight: c.id, Leg: c.n, Remaining: flight.AllRemaining(2)})
		storetest.OK(r, "continue", err)
		if got != c.want {
			r.Errorf("leg %d of %s: created %v, want %v", c.n, c.id, got, c.want)
		}
	}
	r.expect(a)
}

func continueRace(r run) {
	m := manifest(1)
	r.put(m)
	var created atomic.Int32
	storetest.AtOnce(20, func(i int) {
		mine, err := r.Continue(r.Context(), m.Flight, 1, flight.State{Schema: 1, Flight: m.Flight, Leg: 1, Turn: i})
		if err != nil {
			r.Errorf("continue: %v", err)
		}
		if mine {
			created.Add(1)
		}
	})
	if n := created.Load(); n != 1 {
		r.Errorf("%d created the checkpoint, want 1", n)
	}
}

func deletes(r run) {
	m := manifest(1)
	r.put(m)
	r.checkpoint(m.Flight, 1)
	r.checkpoint(m.Flight, 2)
	for range 2 { // the second time the flight does not exist, and Delete still succeeds
		storetest.OK(r, "delete", r.Delete(r.Context(), m.Flight))
		r.fails(m.Flight, flight.ErrNotFound)
	}
	if _, listed := r.all(1000)[m.Flight]; listed {
		r.Error("the deleted flight is listed")
	}
	if created, err := r.Continue(r.Context(), m.Flight, 2, flight.State{Flight: m.Flight}); err != nil || !created {
		r.Errorf("continue after the deletion: %v, %v, want true, because the checkpoint was deleted too", created, err)
	}
}

// all reads the whole list and checks its order.
func (r run) all(limit int) map[flight.ID]flight.Stored {
	r.Helper()
	seen := map[flight.ID]flight.Stored{}
	last := flight.ID("")
	list := func(cursor string, limit int) ([]flight.Stored, string, error) {
		return r.List(r.Context(), cursor, limit)
	}
	for _, f := range storetest.Walk(r, limit, list) {
		if f.ID <= last {
			r.Errorf("%s is listed after %s", f.ID, last)
		}
		last = f.ID
		seen[f.ID] = f
	}
	return seen
}

func lists(r run) {
	var ids []flight.ID
	for range 12 {
		m := manifest(1)
		r.put(m)
		ids = append(ids, m.Flight)
		if len(ids)%3 == 0 {
			r.checkpoint(m.Flight, 1)
		}
	}
	for _, limit := range []int{1, 5, 1000} {
		seen := r.all(limit)
		for i, id := range ids {
			f, ok := seen[id]
			if !ok {
				r.Errorf("pages of %d: %s is not listed", limit, id)
				continue
			}
			if got, want := f.Legs, (i+1)%3; (want == 0) != (got == 1) || got > 1 {
				r.Errorf("pages of %d: %d checkpoints, want one for each third flight", limit, got)
			}
		}
	}
	if page, _, err := r.List(r.Context(), string(ids[4]), 1); err != nil || len(page) != 1 || page[0].ID <= ids[4] ||
		page[0].ID > ids[5] {
		r.Errorf("after %s the list has %v (%v), want the next flight, %s at the latest", ids[4], page, err, ids[5])
	}
	if !slices.IsSorted(ids) {
		r.Fatal("the test's own ids do not sort by age")
	}
}

func listsNewest(r run) {
	m := manifest(1)
	r.put(m)
	before := r.all(1000)[m.Flight]
	if before.Newest.IsZero() || before.Legs != 0 {
		r.Errorf("newest %s, %d checkpoints, want a time and none", before.Newest, before.Legs)
	}
	r.checkpoint(m.Flight, 1)
	r.checkpoint(m.Flight, 2)
	after := r.all(1000)[m.Flight]
	if after.Newest.Before(before.Newest) || after.Legs != 2 {
		r.Errorf("newest %s, %d checkpoints, want not before %s, and 2", after.Newest, after.Legs, before.Newest)
	}
}

func endedContext(r run) {
	m := manifest(1)
	r.put(m)
	ended := storetest.Ended(r)
	_, get := r.Get(ended, m.Flight)
	created, goOn := r.Continue(ended, m.Flight, 1, flight.State{Flight: m.Flight})
	_, _, list := r.List(ended, "", 10)
	storetest.Failed(r, map[string]error{
		"put": r.Put(ended, m), "get": get, "continue": goOn, "delete": r.Delete(ended, m.Flight), "list": list,
	})
	if errors.Is(get, flight.ErrNotFound) || created {
		r.Errorf("get: %v, checkpoint created: %v; want neither ErrNotFound nor a checkpoint", get, created)
	}
	r.expect(m)
}
