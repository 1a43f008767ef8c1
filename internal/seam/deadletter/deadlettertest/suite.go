// SPDX-License-Identifier: Apache-2.0

package deadlettertest

import (
	"crypto/rand"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/seam/storetest"
	"github.com/lullhq/lull/internal/shard"
)

// Run runs the suite. open returns a new store, or another handle on a shared store.
func Run(t *testing.T, open func(t *testing.T) deadletter.Store) {
	t.Helper()
	fresh := func(t *testing.T) *run { return &run{T: t, Store: open(t), name: strings.ToLower(rand.Text())} }
	storetest.Run(t, fresh, map[string]func(*run){
		"a dead letter comes back byte for byte: a large one, and one without a document":   roundTrip,
		"an absent dead letter is not found":                                                absent,
		"a dead letter without an id is refused":                                            noID,
		"a dead letter that is stored again is stored once, parked, and keeps its redrives": parksAgain,
		"a stored message is not replaced by another message":                               replacesNothing,
		"dead letters of one message share the message until the last one is dropped":       sharesMessage,
		"no dead letter loses its message because another dead letter is dropped":           losesNoMessage,
		"a redrive is counted, and the dead letter stays stored":                            redriven,
		"marking an absent dead letter as redriven does not store one":                      markAbsent,
		"a dropped dead letter is deleted":                                                  drops,
		"dead letters are listed oldest first, in pages of any size, without a gap":         lists,
		"a filter selects dead letters":                                                     filters,
		"parked dead letters are counted":                                                   counts,
		"a call under a context that has ended fails":                                       endedContext,
	})
}

// run is one test. The test's random name is part of the ids that it stores.
type run struct {
	*testing.T
	deadletter.Store
	name string
	n    int
}

var died = time.UnixMilli(1_777_888_800_123).UTC()

// letter returns a new dead letter. Each one died a minute after the one before.
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

// park parks a dead letter and checks the result.
func (r *run) park(l deadletter.Letter, want deadletter.Parking) {
	r.Helper()
	got, err := r.Park(r.Context(), l)
	storetest.OK(r, "park", err)
	if got != want {
		r.Errorf("park: %s, want %s", got, want)
	}
}

func (r *run) drop(id string) {
	r.Helper()
	storetest.OK(r, "drop", r.Drop(r.Context(), id))
}

// mark marks a dead letter as redriven, and changes l in the same way.
func (r *run) mark(l *deadletter.Letter, at time.Time, auto bool) {
	r.Helper()
	storetest.OK(r, "mark", r.MarkRedriven(r.Context(), l.ID, at, auto))
	l.State, l.RedrivenAt = deadletter.Redriven, at
	if l.Redrives++; auto {
		l.Auto++
	}
}

// expect checks that the store returns this dead letter.
func (r *run) expect(want deadletter.Letter) {
	r.Helper()
	got, ok, err := r.Get(r.Context(), want.ID)
	if err != nil || !ok {
		r.Fatalf("get: %v, %v, want the dead letter", ok, err)
	}
	if g, w := utc(got.Facts), kept(want); g != w {
		r.Errorf("facts %+v\nwant %+v", g, w)
	}
	if got.Body != want.Body {
		r.Errorf("body has %d bytes and differs, want %d bytes", len(got.Body), len(want.Body))
	}
	if len(got.Attributes)+len(want.Attributes) > 0 && !reflect.DeepEqual(got.Attributes, want.Attributes) {
		r.Errorf("attributes %v, want %v", got.Attributes, want.Attributes)
	}
}

// kept returns the facts that a store must return for a dead letter.
func kept(l deadletter.Letter) deadletter.Facts {
	l.Hash = deadletter.Hash(l.Body, l.Attributes)
	return utc(l.Facts)
}

// utc returns facts with all times in UTC.
func utc(f deadletter.Facts) deadletter.Facts {
	for _, t := range []*time.Time{&f.FirstSent, &f.Sent, &f.Died, &f.RedrivenAt} {
		*t = t.UTC()
	}
	return f
}

func roundTrip(r *run) {
	large := r.letter()
	large.Body = strings.Repeat("größer\x7f", queue.MaxBytes/9)
	undecodable := deadletter.Letter{Facts: deadletter.Facts{
		ID: r.name, Reason: deadletter.Undecodable, Died: died,
		State: deadletter.Parked,
	}, Body: "not JSON"}
	for _, l := range []deadletter.Letter{r.letter(), large, undecodable} {
		r.park(l, deadletter.Fresh)
		r.expect(l)
	}
}

func replacesNothing(r *run) {
	first := r.letter()
	r.park(first, deadletter.Fresh)
	other := first
	other.Body, other.Event, other.MessageID, other.Lane = "another message of the same version", 7, "m-2", "live"
	other.FirstSent, other.Sent = died, died
	other.Reason, other.LastError, other.Refusals = deadletter.Refusals, "later", 6
	for range 2 {
		r.park(other, deadletter.Other)
		want := first
		want.Reason, want.LastError, want.Refusals = other.Reason, other.LastError, other.Refusals
		r.expect(want)
	}
	r.park(first, deadletter.Again)
	r.expect(first)
	r.drop(first.ID)
	r.park(other, deadletter.Fresh)
	r.expect(other)
}

// of returns another dead letter of the message of l.
func (r *run) of(l deadletter.Letter) deadletter.Letter {
	other := r.letter()
	other.Body, other.Attributes, other.Event = l.Body, l.Attributes, l.Event+r.n
	return other
}

func sharesMessage(r *run) {
	one := r.letter()
	one.Body += r.name
	two, three := r.of(one), r.of(one)
	stranger := r.letter()
	letters := []deadletter.Letter{one, two, three}
	for _, l := range append(letters, stranger) {
		r.park(l, deadletter.Fresh)
	}
	hash := deadletter.Hash(one.Body, one.Attributes)
	for i, l := range letters {
		found, err := r.Message(r.Context(), hash)
		storetest.OK(r, "list the dead letters of the message", err)
		r.listed("dead letters of the message", found, letters[i:])
		for _, l := range letters[i:] {
			r.expect(l)
		}
		for range 2 {
			r.drop(l.ID)
		}
	}
	if found, err := r.Message(r.Context(), hash); err != nil || len(found) != 0 {
		r.Errorf("the message has dead letters %v, error %v, want none", found, err)
	}
	r.expect(stranger)
	r.park(two, deadletter.Fresh)
	r.expect(two)
}

// losesNoMessage parks and drops dead letters of one message at the same time.
func losesNoMessage(r *run) {
	stays := r.letter()
	stays.Body += r.name
	goes := []deadletter.Letter{r.of(stays), r.of(stays), r.of(stays)}
	letters := slices.Concat(goes, goes, []deadletter.Letter{stays})
	for range 5 {
		storetest.AtOnce(len(letters), func(i int) {
			_, err := r.Park(r.Context(), letters[i])
			if letters[i].ID != stays.ID {
				err = errors.Join(err, r.Drop(r.Context(), letters[i].ID))
			}
			if err != nil {
				r.Errorf("park or drop: %v", err)
			}
		})
		r.expect(stays)
		r.drop(stays.ID)
	}
}

func absent(r *run) { r.absent(r.name) }

// absent checks that the store has no dead letter with this id.
func (r *run) absent(id string) {
	r.Helper()
	if _, ok, err := r.Get(r.Context(), id); ok || err != nil {
		r.Errorf("get: %v, %v, want false and no error", ok, err)
	}
}

func noID(r *run) {
	l := r.letter()
	l.ID = ""
	if _, err := r.Park(r.Context(), l); err == nil {
		r.Error("park: no error")
	}
}

func parksAgain(r *run) {
	l := r.letter()
	r.park(l, deadletter.Fresh)
	again := l
	again.LastError, again.Refusals, again.FirstError = "later", 6, "not the first"
	r.park(again, deadletter.Again)
	again.FirstError = "first"
	r.expect(again)

	marked := again
	for _, auto := range []bool{true, false} {
		r.mark(&marked, died.Add(time.Hour), auto)
	}
	r.park(again, deadletter.Again)
	marked.State = deadletter.Parked
	r.expect(marked)
	r.lists(deadletter.Filter{}, 1000, marked)
}

func redriven(r *run) {
	l := r.letter()
	r.park(l, deadletter.Fresh)
	for i, auto := range []bool{true, false, true} {
		r.mark(&l, died.Add(time.Duration(i+1)*time.Hour), auto)
		r.expect(l)
	}
}

func markAbsent(r *run) {
	if err := r.MarkRedriven(r.Context(), r.name, died, true); err == nil {
		r.Error("mark: no error")
	}
	absent(r)
}

func drops(r *run) {
	l := r.letter()
	r.park(l, deadletter.Fresh)
	for range 2 {
		r.drop(l.ID)
		r.absent(l.ID)
	}
	r.lists(deadletter.Filter{}, 1000)
	r.park(l, deadletter.Fresh)
}

func endedContext(r *run) {
	l := r.letter()
	r.park(l, deadletter.Fresh)
	ended := storetest.Ended(r)
	_, park := r.Park(ended, l)
	_, message := r.Message(ended, deadletter.Hash(l.Body, l.Attributes))
	_, found, get := r.Get(ended, l.ID)
	_, _, list := r.List(ended, deadletter.Filter{}, "", 10)
	storetest.Failed(r, map[string]error{
		"park": park, "get": get, "message": message, "list": list, "mark": r.MarkRedriven(ended, l.ID, died, true),
		"drop": r.Drop(ended, l.ID),
	})
	if found {
		r.Error("get: a dead letter together with the error")
	}
	r.expect(l)
}
