package deadlettertest

import (
	"crypto/rand"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/deadletter"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/storetest"
)

// Run is the suite. open makes a store, or another handle on a shared one.
func Run(t *testing.T, open func(t *testing.T) deadletter.Store) {
	t.Helper()
	fresh := func(t *testing.T) *run { return &run{Store: open(t), name: strings.ToLower(rand.Text())} }
	storetest.Run(t, fresh, map[string]func(*testing.T, *run){
		"a dead letter comes back byte for byte: a large one, and one without a document": roundTrip,
		"an absent dead letter is not there":                                              absent,
		"a dead letter without an id is refused":                                          noID,
		"storing a dead letter again stores it once, parks it and keeps its redrives":     parksAgain,
		"a message that is stored is not replaced by another one":                         replacesNothing,
		"dead letters of one message share it until the last one goes":                    sharesMessage,
		"no dead letter loses its message to another one that goes":                       losesNoMessage,
		"a redrive is counted and the dead letter stays":                                  redriven,
		"marking a dead letter that is not there makes none":                              markAbsent,
		"a dropped dead letter is gone":                                                   drops,
		"dead letters are listed oldest first, in pages of any size, none left out":       lists,
		"a filter selects":                            filters,
		"what is parked is counted":                   counts,
		"a call under a context that has ended fails": endedContext,
	})
}

// run is one test with a name of its own in what it stores.
type run struct {
	deadletter.Store
	name string
	n    int
}

var died = time.UnixMilli(1_777_888_800_123).UTC()

// letter is a new dead letter; each died a minute after the one before.
func (r *run) letter() deadletter.Letter {
	r.n++
	return deadletter.Letter{
		Facts: deadletter.Facts{
			ID: fmt.Sprintf("%sx%d", r.name, r.n), Reason: deadletter.RejectedBySink,
			Detail: "mapper_parsing_exception: field title",
			Doc:    shard.DocID(fmt.Sprintf("pages#%s-%d", r.name, r.n)), Key: "\x00\x22\x30\x39\x00\xff", Event: 2,
			Sink: "search", Lane: "bulk",
			MessageID: "m-1", FirstSent: died.Add(-72 * time.Hour), Sent: died.Add(-time.Hour), Refusals: 5,
			FirstError: "first", LastError: "last",
			Died: died.Add(time.Duration(r.n) * time.Minute), State: deadletter.Parked,
		},
		Body: "{\"title\":\"größer \\u0000 <&>\"\n}",
		Attributes: map[string]queue.Attribute{
			queue.AttrSource: queue.Text("govuk"), "key": {Type: "Binary", Binary: []byte{0, 1, 0xff}},
			"n": {Type: "Number.int", String: "7"},
		},
	}
}

func (r *run) park(t *testing.T, l deadletter.Letter, want deadletter.Parking) {
	t.Helper()
	got, err := r.Park(t.Context(), l)
	if err != nil {
		t.Fatalf("park: %v", err)
	}
	if got != want {
		t.Errorf("park: %s, want %s", got, want)
	}
}

func (r *run) drop(t *testing.T, id string) {
	t.Helper()
	if err := r.Drop(t.Context(), id); err != nil {
		t.Errorf("drop: %v", err)
	}
}

func (r *run) mark(t *testing.T, id string, at time.Time, auto bool) {
	t.Helper()
	if err := r.MarkRedriven(t.Context(), id, at, auto); err != nil {
		t.Fatalf("mark: %v", err)
	}
}

func (r *run) expect(t *testing.T, want deadletter.Letter) {
	t.Helper()
	got, ok, err := r.Get(t.Context(), want.ID)
	if err != nil || !ok {
		t.Fatalf("get: %v, %v, want the dead letter", ok, err)
	}
	want.Hash = deadletter.Hash(want.Body, want.Attributes)
	if g, w := utc(got.Facts), utc(want.Facts); g != w {
		t.Errorf("facts %+v\nwant %+v", g, w)
	}
	if got.Body != want.Body {
		t.Errorf("body of %d bytes, want %d bytes, the same", len(got.Body), len(want.Body))
	}
	if len(got.Attributes)+len(want.Attributes) > 0 && !reflect.DeepEqual(got.Attributes, want.Attributes) {
		t.Errorf("attributes %v, want %v", got.Attributes, want.Attributes)
	}
}

func utc(f deadletter.Facts) deadletter.Facts {
	for _, t := range []*time.Time{&f.FirstSent, &f.Sent, &f.Died, &f.RedrivenAt} {
		*t = t.UTC()
	}
	return f
}

func roundTrip(t *testing.T, r *run) {
	large := r.letter()
	large.Body = strings.Repeat("größer\x7f", queue.MaxBytes/9)
	undecodable := deadletter.Letter{Facts: deadletter.Facts{
		ID: r.name, Reason: deadletter.Undecodable, Died: died,
		State: deadletter.Parked,
	}, Body: "not JSON"}
	for _, l := range []deadletter.Letter{r.letter(), large, undecodable} {
		r.park(t, l, deadletter.Fresh)
		r.expect(t, l)
	}
}

func replacesNothing(t *testing.T, r *run) {
	first := r.letter()
	r.park(t, first, deadletter.Fresh)
	other := first
	other.Body, other.Event, other.MessageID, other.Lane = "another message of the same version", 7, "m-2", "live"
	other.FirstSent, other.Sent = died, died
	other.Reason, other.LastError, other.Refusals = deadletter.Refusals, "later", 6
	for range 2 {
		r.park(t, other, deadletter.Other)
		want := first
		want.Reason, want.LastError, want.Refusals = other.Reason, other.LastError, other.Refusals
		r.expect(t, want)
	}
	r.park(t, first, deadletter.Again)
	r.expect(t, first)
	r.drop(t, first.ID)
	r.park(t, other, deadletter.Fresh)
	r.expect(t, other)
}

// of is another dead letter of the same message.
func (r *run) of(l deadletter.Letter) deadletter.Letter {
	other := r.letter()
	other.Body, other.Attributes, other.Event = l.Body, l.Attributes, l.Event+r.n
	return other
}

func sharesMessage(t *testing.T, r *run) {
	one := r.letter()
	one.Body += r.name
	two, three := r.of(one), r.of(one)
	stranger := r.letter()
	letters := []deadletter.Letter{one, two, three}
	for _, l := range append(letters, stranger) {
		r.park(t, l, deadletter.Fresh)
	}
	hash := deadletter.Hash(one.Body, one.Attributes)
	for i, l := range letters {
		found, err := r.Message(t.Context(), hash)
		if err != nil {
			t.Fatalf("list the message's: %v", err)
		}
		var ids, want []string
		for _, f := range found {
			ids = append(ids, f.ID)
			full, _, _ := r.Get(t.Context(), f.ID)
			if utc(f) != utc(full.Facts) {
				t.Errorf("listed %+v, want %+v", f, full.Facts)
			}
		}
		for _, l := range letters[i:] {
			want = append(want, l.ID)
			r.expect(t, l)
		}
		if !slices.Equal(ids, want) {
			t.Errorf("the message has dead letters %v, want %v", ids, want)
		}
		for range 2 {
			r.drop(t, l.ID)
		}
	}
	if found, err := r.Message(t.Context(), hash); err != nil || len(found) != 0 {
		t.Errorf("the message has dead letters %v, error %v, want none", found, err)
	}
	r.expect(t, stranger)
	r.park(t, two, deadletter.Fresh)
	r.expect(t, two)
}

// Dead letters of one message are parked and dropped beside each other.
func losesNoMessage(t *testing.T, r *run) {
	stays := r.letter()
	stays.Body += r.name
	goes := []deadletter.Letter{r.of(stays), r.of(stays), r.of(stays)}
	parks := func(l deadletter.Letter) {
		if _, err := r.Park(t.Context(), l); err != nil {
			t.Errorf("park: %v", err)
		}
	}
	for range 5 {
		var wg sync.WaitGroup
		for _, l := range append(goes, goes...) {
			wg.Go(func() {
				parks(l)
				r.drop(t, l.ID)
			})
		}
		wg.Go(func() { parks(stays) })
		wg.Wait()
		r.expect(t, stays)
		r.drop(t, stays.ID)
	}
}

func absent(t *testing.T, r *run) { r.absent(t, r.name) }

func (r *run) absent(t *testing.T, id string) {
	t.Helper()
	if _, ok, err := r.Get(t.Context(), id); ok || err != nil {
		t.Errorf("get: %v, %v, want false and no error", ok, err)
	}
}

func noID(t *testing.T, r *run) {
	l := r.letter()
	l.ID = ""
	if _, err := r.Park(t.Context(), l); err == nil {
		t.Error("park: no error")
	}
}

func parksAgain(t *testing.T, r *run) {
	l := r.letter()
	r.park(t, l, deadletter.Fresh)
	again := l
	again.LastError, again.Refusals, again.FirstError = "later", 6, "not the first"
	r.park(t, again, deadletter.Again)
	again.FirstError = "first"
	r.expect(t, again)

	at := died.Add(time.Hour)
	for _, auto := range []bool{true, false} {
		r.mark(t, l.ID, at, auto)
	}
	r.park(t, again, deadletter.Again)
	again.RedrivenAt, again.Redrives, again.Auto = at, 2, 1
	r.expect(t, again)
	if got := r.all(t, deadletter.Filter{}, 1000); len(got) != 1 {
		t.Errorf("%d dead letters listed, want 1", len(got))
	}
}

func redriven(t *testing.T, r *run) {
	l := r.letter()
	r.park(t, l, deadletter.Fresh)
	for i, auto := range []bool{true, false, true} {
		l.RedrivenAt = died.Add(time.Duration(i+1) * time.Hour)
		r.mark(t, l.ID, l.RedrivenAt, auto)
	}
	l.State, l.Redrives, l.Auto = deadletter.Redriven, 3, 2
	r.expect(t, l)
}

func markAbsent(t *testing.T, r *run) {
	if err := r.MarkRedriven(t.Context(), r.name, died, true); err == nil {
		t.Error("mark: no error")
	}
	absent(t, r)
}

func drops(t *testing.T, r *run) {
	l := r.letter()
	r.park(t, l, deadletter.Fresh)
	for range 2 {
		r.drop(t, l.ID)
		r.absent(t, l.ID)
	}
	if got := r.all(t, deadletter.Filter{}, 1000); len(got) != 0 {
		t.Errorf("%d dead letters listed, want none", len(got))
	}
	r.park(t, l, deadletter.Fresh)
}

// all walks through the list, checks its order and returns the ids that are this test's.
func (r *run) all(t *testing.T, f deadletter.Filter, limit int) []string {
	t.Helper()
	var ids []string
	var last time.Time
	for _, l := range r.walk(t, f, limit) {
		if l.Died.Before(last) {
			t.Errorf("%s died before the one listed before it", l.ID)
		}
		last = l.Died
		if strings.HasPrefix(l.ID, r.name) {
			ids = append(ids, l.ID)
		}
	}
	return ids
}

func (r *run) walk(t *testing.T, f deadletter.Filter, limit int) []deadletter.Facts {
	t.Helper()
	return storetest.Walk(t, limit, func(cursor string, limit int) ([]deadletter.Facts, string, error) {
		return r.List(t.Context(), f, cursor, limit)
	})
}

func lists(t *testing.T, r *run) {
	var want []string
	letters := make([]deadletter.Letter, 17)
	for i := range letters {
		letters[i] = r.letter()
		want = append(want, letters[i].ID)
	}
	for i := range letters {
		r.park(t, letters[i*5%len(letters)], deadletter.Fresh)
	}
	for _, limit := range []int{1, 4, 1000} {
		if got := r.all(t, deadletter.Filter{}, limit); !slices.Equal(got, want) {
			t.Errorf("pages of %d: %v, want %v", limit, got, want)
		}
	}
	full, ok, err := r.Get(t.Context(), want[0])
	if err != nil || !ok {
		t.Fatalf("get: %v, %v", ok, err)
	}
	for _, f := range r.walk(t, deadletter.Filter{Doc: full.Doc}, 10) {
		if utc(f) != utc(full.Facts) {
			t.Errorf("listed %+v, want %+v", f, full.Facts)
		}
	}
}

func filters(t *testing.T, r *run) {
	c := shard.Collection("c" + r.name)
	a, b, d, e := r.letter(), r.letter(), r.letter(), r.letter()
	b.Reason, b.Doc = deadletter.DeadDeadline, shard.DocID(c+"#1")
	d.Doc = shard.DocID(c + "x#1")
	e.Doc, e.Key, e.Reason = "", "", deadletter.Undecodable
	for _, l := range []deadletter.Letter{a, b, d, e} {
		r.park(t, l, deadletter.Fresh)
	}
	r.mark(t, d.ID, died, false)
	for _, test := range []struct {
		name string
		f    deadletter.Filter
		want []string
	}{
		{"everything", deadletter.Filter{}, []string{a.ID, b.ID, d.ID, e.ID}},
		{"reason", deadletter.Filter{Reason: deadletter.DeadDeadline}, []string{b.ID}},
		{"collection", deadletter.Filter{Collection: c}, []string{b.ID}},
		{"row", deadletter.Filter{Doc: d.Doc}, []string{d.ID}},
		{"document", deadletter.Filter{Document: d.Doc.Plain()}, []string{d.ID}},
		{"after", deadletter.Filter{After: b.Died}, []string{d.ID, e.ID}},
		{"before", deadletter.Filter{Before: d.Died}, []string{a.ID, b.ID}},
		{"between", deadletter.Filter{After: a.Died, Before: d.Died}, []string{b.ID}},
		{"parked", deadletter.Filter{State: deadletter.Parked}, []string{a.ID, b.ID, e.ID}},
		{"redriven", deadletter.Filter{State: deadletter.Redriven}, []string{d.ID}},
		{"two at once", deadletter.Filter{State: deadletter.Parked, Reason: deadletter.RejectedBySink}, []string{a.ID}},
		{"nothing", deadletter.Filter{State: deadletter.Redriven, Collection: c}, nil},
	} {
		for _, limit := range []int{1, 100} {
			if got := r.all(t, test.f, limit); !slices.Equal(got, test.want) {
				t.Errorf("%s, pages of %d: %v, want %v", test.name, limit, got, test.want)
			}
		}
	}
}

func counts(t *testing.T, r *run) {
	letters := make([]deadletter.Letter, 12)
	for i := range letters {
		letters[i] = r.letter()
		r.park(t, letters[i], deadletter.Fresh)
	}
	for _, l := range letters[:3] {
		r.mark(t, l.ID, died, false)
	}
	// The store may hold others, which come and go meanwhile.
	seen := func() (parked, redriven int) {
		return len(r.walk(t, deadletter.Filter{State: deadletter.Parked}, 1000)),
			len(r.walk(t, deadletter.Filter{State: deadletter.Redriven}, 1000))
	}
	for try := 1; ; try++ {
		parked, redriven := seen()
		n, more, err := r.Parked(t.Context(), died.Add(-time.Second), 1_000_000)
		all, moreOfAll, failed := r.Parked(t.Context(), died.AddDate(100, 0, 0), 1_000_000)
		some, moreThanSome, stopped := r.Parked(t.Context(), died, 2)
		if err = errors.Join(err, failed, stopped); err != nil || more || moreOfAll || !moreThanSome || some < 2 {
			t.Fatalf("%v, more than all: %v, %v; %d of 2, more: %v", err, more, moreOfAll, some, moreThanSome)
		}
		if n == parked && all == parked+redriven {
			return
		}
		if p, d := seen(); p == parked && d == redriven || try == 50 {
			t.Fatalf("%d parked, and %d with those redriven long ago, want %d and %d", n, all, parked, parked+redriven)
		}
	}
}

func endedContext(t *testing.T, r *run) {
	l := r.letter()
	r.park(t, l, deadletter.Fresh)
	ended := storetest.Ended(t)
	_, park := r.Park(ended, l)
	_, message := r.Message(ended, deadletter.Hash(l.Body, l.Attributes))
	_, found, get := r.Get(ended, l.ID)
	_, _, list := r.List(ended, deadletter.Filter{}, "", 10)
	storetest.Failed(t, map[string]error{
		"park": park, "get": get, "message": message, "list": list, "mark": r.MarkRedriven(ended, l.ID, died, true),
		"drop": r.Drop(ended, l.ID),
	})
	if found {
		t.Error("get: a dead letter beside the error")
	}
	r.expect(t, l)
}
