// SPDX-License-Identifier: Apache-2.0

package prune

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
)

// suspect is an old flight that may be stuck. The rows show no sign of life of its events, although
// the sink and the table were healthy for long enough.
type suspect struct {
	id   flight.ID
	lane flight.Lane
	left []flight.Entry
	idle []flight.Entry // entries of left that are in no younger flight
}

// version is one version of one document.
type version struct {
	doc shard.DocID
	key shard.OrderKey
}

func versionOf(e flight.Entry) version { return version{e.Doc, e.Key} }

// maxYounger is the number of younger flights that a run reads. If there are more, many flights
// fail, and prune calls none of them stuck.
const maxYounger = 2000

// youngerAtOnce bounds the number of manifests in memory, because each may have 32 MB.
const youngerAtOnce = 4

// judgeSuspects calls a flight stuck if no younger flight holds its events. A younger flight with
// the same event shows that SQS delivered the message again. Only the manifests show this, and not
// the rows, because receive stores a manifest at each delivery, even while no execution can be
// started.
func (r *run) judgeSuspects(ctx context.Context) error {
	if len(r.suspects) == 0 {
		return nil
	}
	rep := &r.report.Flights
	all, err := r.findYounger(ctx)
	for _, s := range r.suspects {
		if len(s.idle) == 0 || !all {
			rep.Waiting++
			continue
		}
		rep.Stuck = append(rep.Stuck, s.id)
		e := s.left[0]
		r.note(journal.Note{
			Step: journal.Stuck, Doc: e.Doc, Key: e.Key, Op: e.Op, Lane: string(s.lane), Flight: string(s.id),
			Count: len(s.left),
			Detail: "flight: " + plural(len(s.left), "event") +
				" neither committed nor parked, and no message delivers them again",
		})
	}
	return err
}

// findYounger reads the flights that are younger than the suspects, and removes their events from
// the suspects. It returns false if it did not read all of these flights.
func (r *run) findYounger(ctx context.Context) (all bool, err error) {
	var younger []flight.Stored
	for cursor := string(r.suspects[0].id); ; { // begin with the oldest suspect, because flights are listed by age
		list, next, err := page(ctx, r.Pruner, func() ([]flight.Stored, string, error) {
			return r.Flights.List(ctx, cursor, flightPage)
		})
		if err != nil {
			return false, err
		}
		younger = append(younger, list...)
		if len(younger) > maxYounger {
			return false, nil
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	newest := map[version]flight.ID{} // the newest flight that holds each version
	for _, s := range r.suspects {
		for _, e := range s.idle {
			newest[versionOf(e)] = ""
		}
	}
	var mu sync.Mutex
	err = r.Parallel.Try(youngerAtOnce, len(younger), func(i int) error {
		m, err := r.manifest(ctx, younger[i].ID)
		switch {
		case errors.Is(err, flight.ErrNotFound), errors.Is(err, flight.ErrSchema):
			return nil
		case err != nil:
			return fmt.Errorf("get the manifest of flight %s: %w", younger[i].ID, err)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, e := range m.Entries() {
			if held, wanted := newest[versionOf(*e)]; wanted {
				newest[versionOf(*e)] = max(held, younger[i].ID)
			}
		}
		return nil
	})
	for _, s := range r.suspects {
		s.idle = slices.DeleteFunc(s.idle, func(e flight.Entry) bool { return newest[versionOf(e)] > s.id })
	}
	return err == nil, err
}
