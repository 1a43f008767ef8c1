package prune

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/shard"
)

// suspect is an old flight that looks stuck: rows show nothing of its events, and for long enough
// sink and table were healthy.
type suspect struct {
	id   flight.ID
	lane flight.Lane
	left []flight.Entry
	idle []flight.Entry // those of them that no younger flight was seen to hold
}

// version is what a document and an order key name together.
type version struct {
	doc shard.DocID
	key shard.OrderKey
}

func versionOf(e flight.Entry) version { return version{e.Doc, e.Key} }

// maxYounger is how many flights that are younger than a suspect one are read in a run. Where there
// are more, flights die at large, and nothing is said of any.
const maxYounger = 2000

// youngerAtOnce bounds the manifests in memory: each may have 32 MB.
const youngerAtOnce = 4

// judgeSuspects calls those flights stuck whose events no younger flight holds. One that does shows
// that a message brought its event back. receive stores a manifest even where no flight can be
// started, for as long as that lasts, and no row shows it.
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
				" neither committed nor parked, and no message brings them back",
		})
	}
	return err
}

// findYounger reads the flights that are younger than the suspects, and takes what they hold off
// the suspects. It reports whether it has read all of them.
func (r *run) findYounger(ctx context.Context) (all bool, err error) {
	var younger []flight.Stored
	for cursor := string(r.suspects[0].id); ; { // the oldest: flights are listed by age
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
	newest := map[version]flight.ID{} // flight that holds it
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
