// SPDX-License-Identifier: Apache-2.0

package flight_test

import (
	"encoding/json"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/oklog/ulid/v2"

	"github.com/lullhq/lull/internal/seam/flight"
)

func TestRemainingIsASetOfNumbers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 300).Draw(t, "n")
		left, twin := flight.AllRemaining(n), map[int]bool{}
		for i := range n {
			twin[i] = true
		}
		before := left.Clone()
		for _, i := range rapid.SliceOf(rapid.IntRange(0, 400)).Draw(t, "dropped") {
			left.Drop(i)
			delete(twin, i)
		}
		for range 2 { // directly, and after encoding to JSON and back
			for i := range 420 {
				if left.Has(i) != twin[i] {
					t.Fatalf("has %d: %v, want %v", i, left.Has(i), twin[i])
				}
			}
			if left.Count() != len(twin) || left.Empty() != (len(twin) == 0) {
				t.Fatalf("%d left, empty %v, want %d", left.Count(), left.Empty(), len(twin))
			}
			b, err := json.Marshal(left)
			if err != nil {
				t.Fatal(err)
			}
			left = flight.AllRemaining(7)
			if err := json.Unmarshal(b, &left); err != nil {
				t.Fatal(err)
			}
		}
		if before.Count() != n {
			t.Fatalf("the clone has %d, want %d", before.Count(), n)
		}
	})
}

func TestAStateIsSmallForAnyBatch(t *testing.T) {
	t.Parallel()
	s := flight.State{
		Schema: 1, Flight: "01JV0000000000000000000000", WakeAt: flight.WakeText(time.Now()),
		VisibleUntil: 1_777_888_800_000_000,
		Remaining:    flight.AllRemaining(10_000), Turn: 1 << 20, Leg: 1 << 20, Started: 1_777_888_800_000_000,
	}
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(b); got > 2<<10 {
		t.Errorf("%d bytes, want at most 2 KB", got)
	}
	s.Remaining = flight.Remaining{}
	if b, err = json.Marshal(s); err != nil {
		t.Fatal(err)
	}
	const want = `"left":""`
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(b, &fields); err != nil {
		t.Fatal(err)
	}
	if got := `"left":` + string(fields["left"]); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestWakeTimesAreRoundedUpToWholeSeconds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want string }{
		{"2026-05-04T12:00:00Z", "2026-05-04T12:00:00Z"},
		{"2026-05-04T12:00:00.000000001Z", "2026-05-04T12:00:01Z"},
		{"2026-05-04T12:00:59.999999999Z", "2026-05-04T12:01:00Z"},
		{"2026-05-04T14:00:00.5+02:00", "2026-05-04T12:00:01Z"},
	} {
		at, err := time.Parse(time.RFC3339Nano, c.in)
		if err != nil {
			t.Fatal(err)
		}
		got := flight.WakeText(at)
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.in, got, c.want)
		}
		if back := (flight.State{WakeAt: got}).Wake(); back.Before(at) || back.Sub(at) >= time.Second {
			t.Errorf("%s wakes at %s, want within the second after it", c.in, back)
		}
	}
	for _, bad := range []string{"", "soon", "2026-05-04"} {
		if got := (flight.State{WakeAt: bad}).Wake(); !got.IsZero() {
			t.Errorf("%q wakes at %s, want no time", bad, got)
		}
	}
}

func TestAManifestCountsItsEntries(t *testing.T) {
	t.Parallel()
	m := flight.Manifest{Records: []flight.Record{
		{Events: make([]flight.Entry, 2)},
		{},
		{Events: make([]flight.Entry, 3)},
	}}
	if got, want := m.Items(), 5; got != want {
		t.Errorf("%d entries, want %d", got, want)
	}
}

func FuzzState(f *testing.F) {
	f.Add(
		`{"schema":1,"flight":"f","wakeAt":"2026-05-04T12:00:00Z","visibleUntil":5,"left":"_w","turn":1,"leg":0,"started":9,"done":false}`)
	f.Add(`{"left":"!"}`)
	f.Add(`{"left":7}`)
	f.Fuzz(func(t *testing.T, text string) {
		var s flight.State
		if json.Unmarshal([]byte(text), &s) != nil {
			return
		}
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		var again flight.State
		if err := json.Unmarshal(b, &again); err != nil {
			t.Fatalf("%q became %q: %v", text, b, err)
		}
		if again.Remaining.Count() != s.Remaining.Count() || again.WakeAt != s.WakeAt || again.Turn != s.Turn ||
			again.Done != s.Done {
			t.Errorf("%q became %q", text, b)
		}
		s.Wake()
		s.Remaining.Drop(3)
	})
}

func TestIDsAreFreshAndSortByTime(t *testing.T) {
	t.Parallel()
	at, seen := time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC), map[flight.ID]bool{}
	for n := range 1000 {
		at = at.Add(time.Millisecond)
		id, same, before := flight.NewID(at), flight.NewID(at), flight.NewID(at.Add(-time.Millisecond))
		u, err := ulid.ParseStrict(string(id))
		if err != nil || !ulid.Time(u.Time()).Equal(at) || before >= id || seen[id] || id == same {
			t.Fatalf("id %d is %s after %s, and %s (%v), want a new ULID of its time", n, id, before,
				same, err)
		}
		seen[id] = true
	}
}
