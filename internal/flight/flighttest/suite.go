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

	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/storetest"
)

// Run is the suite. open makes a store, or another handle on a shared one.
func Run(t *testing.T, open func(t *testing.T) flight.Store) {
	t.Helper()
	storetest.Run(t, open, map[string]func(*testing.T, flight.Store){
		"a manifest comes back as it was put, also a large one":              roundTrip,
		"a manifest that was got belongs to its caller":                      ownCopy,
		"putting a flight again replaces it":                                 replaces,
		"a manifest that is put again is read whole, the old one or the new": replacedWhileRead,
		"an absent flight is not found":                                      notFound,
		"a manifest of a newer schema is told apart":                         newerSchema,
		"a checkpoint is created once":                                       continues,
		"of twenty that continue a flight at once one does":                  continueRace,
		"a deleted flight is gone, its checkpoints too":                      deletes,
		"flights are listed oldest first, in pages of any size":              lists,
		"the list knows the newest object and the checkpoints of a flight":   listsNewest,
		"a call under a context that has ended fails":                        endedContext,
	})
}

// manifest is a flight of its own with n records.
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

func put(t *testing.T, s flight.Store, m *flight.Manifest) {
	t.Helper()
	if err := s.Put(t.Context(), m); err != nil {
		t.Fatalf("put: %v", err)
	}
}

func checkpoint(t *testing.T, s flight.Store, id flight.ID, n int) {
	t.Helper()
	if _, err := s.Continue(t.Context(), id, n, flight.State{Flight: id}); err != nil {
		t.Fatalf("continue: %v", err)
	}
}

func get(t *testing.T, s flight.Store, id flight.ID) *flight.Manifest {
	t.Helper()
	got, err := s.Get(t.Context(), id)
	if err != nil {
		t.Fatalf("get: %v", err)
	}
	return got
}

func expect(t *testing.T, s flight.Store, want *flight.Manifest) {
	t.Helper()
	got := get(t, s, want.Flight)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %d records of flight %s, not as they were put (%d of %s)", len(got.Records), got.Flight,
			len(want.Records), want.Flight)
	}
}

func roundTrip(t *testing.T, s flight.Store) {
	large := manifest(1000)
	for i := range large.Records {
		large.Records[i].Message.Body = strings.Repeat(large.Records[i].Message.ID+";", 700)
	}
	for _, m := range []*flight.Manifest{manifest(0), manifest(1), manifest(3), large} {
		put(t, s, m)
		expect(t, s, m)
	}
}

func ownCopy(t *testing.T, s flight.Store) {
	m := manifest(2)
	put(t, s, m)
	got := get(t, s, m.Flight)
	got.Records[0].Message.Attributes["key"] = queue.Text("changed")
	got.Records[0].Events[0].Due = 99
	got.Records = got.Records[:1]
	expect(t, s, m)
}

func replaces(t *testing.T, s flight.Store) {
	m := manifest(2)
	put(t, s, m)
	m.Records = m.Records[1:]
	put(t, s, m)
	expect(t, s, m)
}

// replacedWhileRead is what a repeated Put looks like beside the flight's first turn. Under the
// race detector it also finds a store that shares its own state with readers.
func replacedWhileRead(t *testing.T, s flight.Store) {
	m := manifest(3)
	put(t, s, m)
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		for n := range 5 {
			again := *m
			again.Records = m.Records[:1+n%3]
			if err := s.Put(t.Context(), &again); err != nil {
				t.Errorf("put again: %v", err)
			}
		}
	})
	for range 5 {
		got := get(t, s, m.Flight)
		if n := len(got.Records); n < 1 || n > 3 || !reflect.DeepEqual(got.Records, m.Records[:n]) {
			t.Errorf("got %d records, not as they were put", n)
		}
	}
}

func notFound(t *testing.T, s flight.Store) { fails(t, s, manifest(0).Flight, flight.ErrNotFound) }

// fails gets a flight that cannot be had.
func fails(t *testing.T, s flight.Store, id flight.ID, want error) {
	t.Helper()
	if _, err := s.Get(t.Context(), id); !errors.Is(err, want) {
		t.Errorf("get: %v, want %v", err, want)
	}
}

func newerSchema(t *testing.T, s flight.Store) {
	m := manifest(1)
	m.Schema = flight.SchemaVersion + 1
	put(t, s, m)
	fails(t, s, m.Flight, flight.ErrSchema)
}

func continues(t *testing.T, s flight.Store) {
	a, b := manifest(1), manifest(1)
	put(t, s, a)
	put(t, s, b)
	for _, c := range []struct {
		id   flight.ID
		n    int
		want bool
	}{{a.Flight, 1, true}, {a.Flight, 1, false}, {a.Flight, 2, true}, {b.Flight, 1, true}, {a.Flight, 2, false}} {
		got, err := s.Continue(t.Context(), c.id, c.n,
			flight.State{Schema: 1, Flight: c.id, Leg: c.n, Remaining: flight.AllRemaining(2)})
		if err != nil {
			t.Fatalf("continue: %v", err)
		}
		if got != c.want {
			t.Errorf("leg %d of %s: created %v, want %v", c.n, c.id, got, c.want)
		}
	}
	expect(t, s, a)
}

func continueRace(t *testing.T, s flight.Store) {
	m := manifest(1)
	put(t, s, m)
	var created atomic.Int32
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			mine, err := s.Continue(t.Context(), m.Flight, 1,
				flight.State{Schema: 1, Flight: m.Flight, Leg: 1, Turn: i})
			if err != nil {
				t.Errorf("continue: %v", err)
			}
			if mine {
				created.Add(1)
			}
		})
	}
	wg.Wait()
	if n := created.Load(); n != 1 {
		t.Errorf("%d created the checkpoint, want 1", n)
	}
}

func deletes(t *testing.T, s flight.Store) {
	m := manifest(1)
	put(t, s, m)
	checkpoint(t, s, m.Flight, 1)
	checkpoint(t, s, m.Flight, 2)
	for range 2 { // what is not there is deleted without an error
		if err := s.Delete(t.Context(), m.Flight); err != nil {
			t.Fatalf("delete: %v", err)
		}
		fails(t, s, m.Flight, flight.ErrNotFound)
	}
	if _, listed := all(t, s, 1000)[m.Flight]; listed {
		t.Error("the deleted flight is listed")
	}
	if created, err := s.Continue(t.Context(), m.Flight, 2, flight.State{Flight: m.Flight}); err != nil || !created {
		t.Errorf("continue after the deletion: %v, %v, want true: the checkpoint went too", created, err)
	}
}

// all walks through the list and checks its order.
func all(t *testing.T, s flight.Store, limit int) map[flight.ID]flight.Stored {
	t.Helper()
	seen := map[flight.ID]flight.Stored{}
	last := flight.ID("")
	list := func(cursor string, limit int) ([]flight.Stored, string, error) {
		return s.List(t.Context(), cursor, limit)
	}
	for _, f := range storetest.Walk(t, limit, list) {
		if f.ID <= last {
			t.Errorf("%s is listed after %s", f.ID, last)
		}
		last = f.ID
		seen[f.ID] = f
	}
	return seen
}

func lists(t *testing.T, s flight.Store) {
	var ids []flight.ID
	for range 12 {
		m := manifest(1)
		put(t, s, m)
		ids = append(ids, m.Flight)
		if len(ids)%3 == 0 {
			checkpoint(t, s, m.Flight, 1)
		}
	}
	for _, limit := range []int{1, 5, 1000} {
		seen := all(t, s, limit)
		for i, id := range ids {
			f, ok := seen[id]
			if !ok {
				t.Errorf("pages of %d: %s is not listed", limit, id)
				continue
			}
			if got, want := f.Legs, (i+1)%3; (want == 0) != (got == 1) || got > 1 {
				t.Errorf("pages of %d: %d checkpoints, want one for each third flight", limit, got)
			}
		}
	}
	if page, _, err := s.List(t.Context(), string(ids[4]), 1); err != nil || len(page) != 1 || page[0].ID <= ids[4] ||
		page[0].ID > ids[5] {
		t.Errorf("after %s comes %v (%v), want the next flight, %s at the latest", ids[4], page, err, ids[5])
	}
	if !slices.IsSorted(ids) {
		t.Fatal("the test's own ids do not sort by age")
	}
}

func listsNewest(t *testing.T, s flight.Store) {
	m := manifest(1)
	put(t, s, m)
	before := all(t, s, 1000)[m.Flight]
	if before.Newest.IsZero() || before.Legs != 0 {
		t.Errorf("newest %s, %d checkpoints, want a time and none", before.Newest, before.Legs)
	}
	checkpoint(t, s, m.Flight, 1)
	checkpoint(t, s, m.Flight, 2)
	after := all(t, s, 1000)[m.Flight]
	if after.Newest.Before(before.Newest) || after.Legs != 2 {
		t.Errorf("newest %s, %d checkpoints, want not before %s, and 2", after.Newest, after.Legs, before.Newest)
	}
}

func endedContext(t *testing.T, s flight.Store) {
	m := manifest(1)
	put(t, s, m)
	ended := storetest.Ended(t)
	_, get := s.Get(ended, m.Flight)
	created, goOn := s.Continue(ended, m.Flight, 1, flight.State{Flight: m.Flight})
	_, _, list := s.List(ended, "", 10)
	storetest.Failed(t, map[string]error{
		"put": s.Put(ended, m), "get": get, "continue": goOn, "delete": s.Delete(ended, m.Flight), "list": list,
	})
	if errors.Is(get, flight.ErrNotFound) || created {
		t.Errorf("get: %v, checkpoint created: %v; want neither ErrNotFound nor a checkpoint", get, created)
	}
	expect(t, s, m)
}
