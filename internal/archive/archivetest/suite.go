package archivetest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/lullhq/lull/internal/archive"
	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/storetest"
)

// Run is the suite. open makes a store, or another handle on a shared one.
func Run(t *testing.T, open func(t *testing.T) archive.Store) {
	t.Helper()
	storetest.Run(t, open, map[string]func(*testing.T, archive.Store){
		"an object comes back as it was put":               roundTrip,
		"an absent object is not found":                    notFound,
		"putting an object again replaces it":              replaces,
		"a removed object is gone":                         removes,
		"objects are listed by time, in pages of any size": lists,
		"a call under a context that has ended fails":      endedContext,
	})
}

// hours gives each test of a process hours of its own, in a day of its own.
var hours atomic.Int64

// day is a random day, so that runs share a bucket.
var day = time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, int(ulid.Now()%9000))

func hour() time.Time { return day.Add(time.Duration(hours.Add(1)) * time.Hour) }

func name(at time.Time) archive.Name {
	return archive.Parts{
		Received: at, Lane: flight.Live, Sink: "search", Messages: 1, ID: ulid.Make().String(),
	}.Name()
}

func put(t *testing.T, s archive.Store, n archive.Name, text string) {
	t.Helper()
	if err := s.Put(t.Context(), n, []byte(text)); err != nil {
		t.Fatalf("put %s: %v", n, err)
	}
}

func holds(t *testing.T, s archive.Store, n archive.Name, want string) {
	t.Helper()
	if got, err := s.Get(t.Context(), n); err != nil || string(got) != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func gone(t *testing.T, s archive.Store, n archive.Name) {
	t.Helper()
	if got, err := s.Get(t.Context(), n); !errors.Is(err, archive.ErrNotFound) {
		t.Errorf("got %q, %v, want that it is not found", got, err)
	}
}

func roundTrip(t *testing.T, s archive.Store) {
	at := hour()
	for i, text := range []string{"a\x00\xff\n", strings.Repeat("large", 1<<18)} {
		n := name(at.Add(time.Duration(i) * time.Second))
		put(t, s, n, text)
		holds(t, s, n, text)
	}
}

func notFound(t *testing.T, s archive.Store) { gone(t, s, name(hour())) }

func replaces(t *testing.T, s archive.Store) {
	at := hour()
	n := name(at)
	put(t, s, n, "first")
	put(t, s, n, "second")
	holds(t, s, n, "second")
	if err := s.Rewrite(t.Context(), n, []byte("third")); err != nil {
		t.Fatalf("rewrite: %v", err)
	}
	holds(t, s, n, "third")
	list, more, err := s.List(t.Context(), archive.After(at), archive.After(at.Add(time.Second)), 10)
	if err != nil || more || len(list) != 1 {
		t.Errorf("got %v, %v, %v, want it once", list, more, err)
	}
}

func removes(t *testing.T, s archive.Store) {
	n, other := name(hour()), name(hour())
	put(t, s, n, "x")
	put(t, s, other, "y")
	for range 2 {
		if err := s.Remove(t.Context(), n); err != nil {
			t.Fatalf("remove: %v", err)
		}
	}
	gone(t, s, n)
	holds(t, s, other, "y")
}

func lists(t *testing.T, s archive.Store) {
	from := hour()
	hours.Add(2)
	var want []archive.Name
	for _, after := range []time.Duration{
		90 * time.Minute, 0, time.Hour, time.Millisecond, 59*time.Minute + 59*time.Second + 999*time.Millisecond,
	} {
		n := name(from.Add(after))
		put(t, s, n, "text")
		want = append(want, n)
	}
	put(t, s, name(from.Add(-time.Millisecond)), "before")
	put(t, s, name(from.Add(100*time.Minute)), "behind")
	slices.Sort(want)
	for _, limit := range []int{1, 2, 5, 100} {
		var got []archive.Name
		after := archive.After(from)
		for more := true; more; {
			var page []archive.Object
			var err error
			page, more, err = s.List(t.Context(), after, archive.After(from.Add(100*time.Minute)), limit)
			if err != nil || len(page) > limit || more && len(page) == 0 {
				t.Fatalf("limit %d: got %d, %v, %v", limit, len(page), more, err)
			}
			for _, o := range page {
				got, after = append(got, o.Name), o.Name
				if o.Bytes != 4 {
					t.Errorf("%s: got %d bytes, want 4", o.Name, o.Bytes)
				}
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("limit %d: got %q, want %q", limit, got, want)
		}
	}
	var got []archive.Name
	err := archive.Range(t.Context(), s, from, from.Add(100*time.Minute), want[0], func(o archive.Object) error {
		got = append(got, o.Name)
		return nil
	})
	if err != nil || !slices.Equal(got, want[1:]) {
		t.Errorf("got %q, %v, want what is behind the first", got, err)
	}
}

func endedContext(t *testing.T, s archive.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	n := name(hour())
	_, get := s.Get(ctx, n)
	_, _, list := s.List(ctx, "", n, 1)
	for call, err := range map[string]error{
		"put": s.Put(ctx, n, nil), "get": get, "list": list, "remove": s.Remove(ctx, n), "rewrite": s.Rewrite(ctx, n, nil),
	} {
		if err == nil {
			t.Errorf("%s: got no error", call)
		}
	}
}
