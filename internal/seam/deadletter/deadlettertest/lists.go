// SPDX-License-Identifier: Apache-2.0

package deadlettertest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/storetest"
	"github.com/lullhq/lull/internal/shard"
)

// lists checks that the list of dead letters has exactly those in want, in the same order and with
// the same facts. It ignores dead letters of other tests.
func (r *run) lists(f deadletter.Filter, limit int, want ...deadletter.Letter) {
	r.Helper()
	var mine []deadletter.Facts
	var last time.Time
	for _, l := range r.walk(f, limit) {
		if l.Died.Before(last) {
			r.Errorf("%s is older than the dead letter before it in the list", l.ID)
		}
		last = l.Died
		if strings.HasPrefix(l.ID, r.name) {
			mine = append(mine, l)
		}
	}
	r.listed(fmt.Sprintf("%+v in pages of %d", f, limit), mine, want)
}

// listed checks a list of facts against the dead letters that it must have.
func (r *run) listed(what string, got []deadletter.Facts, want []deadletter.Letter) {
	r.Helper()
	facts := make([]deadletter.Facts, len(want))
	for i := range want {
		facts[i] = kept(want[i])
	}
	for i := range got {
		got[i] = utc(got[i])
	}
	if !slices.Equal(got, facts) {
		r.Errorf("%s: %+v, want %+v", what, got, facts)
	}
}

// walk reads the whole list, page by page.
func (r *run) walk(f deadletter.Filter, limit int) []deadletter.Facts {
	r.Helper()
	return storetest.Walk(r, limit, func(cursor string, limit int) ([]deadletter.Facts, string, error) {
		return r.List(r.Context(), f, cursor, limit)
	})
}

func lists(r *run) {
	letters := make([]deadletter.Letter, 17)
	for i := range letters {
		letters[i] = r.letter()
	}
	for i := range letters {
		r.park(letters[i*5%len(letters)], deadletter.Fresh)
	}
	for _, limit := range []int{1, 4, 1000} {
		r.lists(deadletter.Filter{}, limit, letters...)
	}
}

func filters(r *run) {
	c := shard.Collection("c" + r.name)
	a, b, d, e := r.letter(), r.letter(), r.letter(), r.letter()
	b.Reason, b.Doc = deadletter.DeadDeadline, shard.DocID(c+"#1")
	d.Doc = shard.DocID(c + "x#1")
	e.Doc, e.Key, e.Reason = "", "", deadletter.Undecodable
	for _, l := range []deadletter.Letter{a, b, d, e} {
		r.park(l, deadletter.Fresh)
	}
	r.mark(&d, died, false)
	for _, test := range []struct {
		f    deadletter.Filter
		want []deadletter.Letter
	}{
		{deadletter.Filter{}, []deadletter.Letter{a, b, d, e}},
		{deadletter.Filter{Reason: deadletter.DeadDeadline}, []deadletter.Letter{b}},
		{deadletter.Filter{Collection: c}, []deadletter.Letter{b}},
		{deadletter.Filter{Doc: d.Doc}, []deadletter.Letter{d}},
		{deadletter.Filter{Document: d.Doc.Plain()}, []deadletter.Letter{d}},
		{deadletter.Filter{After: b.Died}, []deadletter.Letter{d, e}},
		{deadletter.Filter{Before: d.Died}, []deadletter.Letter{a, b}},
		{deadletter.Filter{After: a.Died, Before: d.Died}, []deadletter.Letter{b}},
		{deadletter.Filter{State: deadletter.Parked}, []deadletter.Letter{a, b, e}},
		{deadletter.Filter{State: deadletter.Redriven}, []deadletter.Letter{d}},
		{deadletter.Filter{State: deadletter.Parked, Reason: deadletter.RejectedBySink}, []deadletter.Letter{a}},
		{deadletter.Filter{State: deadletter.Redriven, Collection: c}, nil},
	} {
		for _, limit := range []int{1, 100} {
			r.lists(test.f, limit, test.want...)
		}
	}
}

func counts(r *run) {
	letters := make([]deadletter.Letter, 12)
	for i := range letters {
		letters[i] = r.letter()
		r.park(letters[i], deadletter.Fresh)
	}
	for i := range 3 {
		r.mark(&letters[i], died, false)
	}
	// Other tests may change the store at the same time. The count and the lists are read one after
	// the other, so they agree only once the other tests are idle.
	for try := 1; ; try++ {
		parked := len(r.walk(deadletter.Filter{State: deadletter.Parked}, 1000))
		redriven := len(r.walk(deadletter.Filter{State: deadletter.Redriven}, 1000))
		n, more, err := r.Parked(r.Context(), died.Add(-time.Second), 1_000_000)
		all, moreOfAll, failed := r.Parked(r.Context(), died.AddDate(100, 0, 0), 1_000_000)
		some, moreThanSome, stopped := r.Parked(r.Context(), died, 2)
		if err = errors.Join(err, failed, stopped); err != nil || more || moreOfAll || !moreThanSome || some < 2 {
			r.Fatalf("error %v; more after counting all: %v, %v; counted %d of 2, more: %v", err, more, moreOfAll, some, moreThanSome)
		}
		if n == parked && all == parked+redriven {
			return
		}
		if try == 200 {
			r.Fatalf("%d parked, %d with those redriven long ago, want %d and %d", n, all, parked, parked+redriven)
		}
	}
}
