// SPDX-License-Identifier: Apache-2.0

package archivetest

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/lullhq/lull/internal/pipeline/archive"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/storetest"
)

// Run runs the suite. open opens a store, or another handle on a shared store.
func Run(t *testing.T, open func(t *testing.T) archive.Store) {
	t.Helper()
	storetest.Run(t, func(t *testing.T) run { return run{t, open(t)} }, map[string]func(run){
		"an object is returned as it was put":              roundTrip,
		"an absent object is not found":                    notFound,
		"an object that is put again is replaced":          replaces,
		"a removed object is not found":                    removes,
		"objects are listed by time, in pages of any size": lists,
		"a call under a context that has ended fails":      endedContext,
	})
}

// run is one test of a store.
type run struct {
	*testing.T
	archive.Store
}

// hours gives each test of a process other hours of the random day.
var hours atomic.Int64

// day is a random day, so that several runs can share a bucket.
var day = time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, int(ulid.Now()%9000))

// hour returns an hour that no other test of this process uses.
func hour() time.Time { return day.Add(time.Duration(hours.Add(1)) * time.Hour) }

// name returns the name of a new object.
func name(at time.Time) archive.Name {
	return archive.Parts{
		Received: at, Lane: flight.Live, Sink: "search", Messages: 1, ID: ulid.Make().String(),
	}.Name()
}

func (r run) put(n archive.Name, text string) {
	r.Helper()
	storetest.OK(r, "put "+string(n), r.Put(r.Context(), n, []byte(text)))
}

// holds checks that the store has this object.
func (r run) holds(n archive.Name, want string) {
	r.Helper()
	if got, err := r.Get(r.Context(), n); err != nil || string(got) != want {
		r.Errorf("got %q, %v, want %q", got, err, want)
	}
}

// gone checks that the store does not have the object.
func (r run) gone(n archive.Name) {
	r.Helper()
	if got, err := r.Get(r.Context(), n); !errors.Is(err, archive.ErrNotFound) {
		r.Errorf("got %q, error %v, want ErrNotFound", got, err)
	}
}

func roundTrip(r run) {
	at := hour()
	for i, text := range []string{"a\x00\xff\n", strings.Repeat("large", 1<<18)} {
		n := name(at.Add(time.Duration(i) * time.Second))
		r.put(n, text)
		r.holds(n, text)
	}
}

func notFound(r run) { r.gone(name(hour())) }

func replaces(r run) {
	at := hour()
	n := name(at)
	r.put(n, "first")
	r.put(n, "second")
	r.holds(n, "second")
	storetest.OK(r, "rewrite", r.Rewrite(r.Context(), n, []byte("third")))
	r.holds(n, "third")
	list, more, err := r.List(r.Context(), archive.After(at), archive.After(at.Add(time.Second)), 10)
	if err != nil || more || len(list) != 1 {
		r.Errorf("got %v, more %v, error %v, want the object once", list, more, err)
	}
}

func removes(r run) {
	n, other := name(hour()), name(hour())
	r.put(n, "x")
	r.put(other, "y")
	for range 2 {
		storetest.OK(r, "remove", r.Remove(r.Context(), n))
	}
	r.gone(n)
	r.holds(other, "y")
}

func lists(r run) {
	from := hour()
	hours.Add(2)
	var want []archive.Name
	for _, after := range []time.Duration{
		90 * time.Minute, 0, time.Hour, time.Millisecond, 59*time.Minute + 59*time.Second + 999*time.Millisecond,
	} {
		n := name(from.Add(after))
		r.put(n, "text")
		want = append(want, n)
	}
	r.put(name(from.Add(-time.Millisecond)), "before")
	r.put(name(from.Add(100*time.Minute)), "after")
	slices.Sort(want)
	for _, limit := range []int{1, 2, 5, 100} {
		var got []archive.Name
		for _, o := range storetest.Walk(r, limit, func(after string, limit int) ([]archive.Object, string, error) {
			first := cmp.Or(archive.Name(after), archive.After(from))
			page, more, err := r.List(r.Context(), first, archive.After(from.Add(100*time.Minute)), limit)
			if err != nil || !more {
				return page, "", err
			}
			if len(page) == 0 {
				return nil, "", errors.New("an empty page, although there are more objects")
			}
			return page, string(page[len(page)-1].Name), nil
		}) {
			got = append(got, o.Name)
			if o.Bytes != 4 {
				r.Errorf("%s: got %d bytes, want 4", o.Name, o.Bytes)
			}
		}
		if !slices.Equal(got, want) {
			r.Errorf("limit %d: got %q, want %q", limit, got, want)
		}
	}
	var got []archive.Name
	err := archive.Range(r.Context(), r.Store, from, from.Add(100*time.Minute), want[0], func(o archive.Object) error {
		got = append(got, o.Name)
		return nil
	})
	if err != nil || !slices.Equal(got, want[1:]) {
		r.Errorf("got %q, error %v, want all objects after the first", got, err)
	}
}

func endedContext(r run) {
	ended, n := storetest.Ended(r), name(hour())
	_, get := r.Get(ended, n)
	_, _, list := r.List(ended, "", n, 1)
	storetest.Failed(r, map[string]error{
		"put": r.Put(ended, n, nil), "get": get, "list": list, "remove": r.Remove(ended, n),
		"rewrite": r.Rewrite(ended, n, nil),
	})
}
