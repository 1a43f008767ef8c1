// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/shard"
)

// pending lists the waiting and claimed documents from the manifests, oldest flight first. A
// document is listed with the flight that its row names. The cursor is a flight and the number of
// its entries that were already listed.
func (l *lister) pending(ctx context.Context) error {
	l.page.Notes = append(l.page.Notes, "Only documents that wait or are being written are listed: the others would "+
		"need a scan of the whole table. Name a key, or choose the state dead or scheduled.")
	at, skip, err := placeOf(l.f.Cursor)
	if err != nil {
		return err
	}
	ids, next, err := l.window(ctx, at)
	if err != nil {
		return err
	}
	if skip >= 0 {
		ids = append([]flight.ID{at}, ids...)
	}
	if err := l.read(ctx, ids); err != nil {
		return err
	}
	type place struct {
		flight flight.ID
		n      int // entries before it
	}
	var places []place
	var docs []shard.DocID
	for i, id := range ids {
		for n, e := range l.flights[id] {
			if (i > 0 || n >= skip) && l.wants(e.Doc) && len(docs) < maxPageSize {
				places, docs = append(places, place{id, n}), append(docs, e.Doc)
			}
		}
	}
	rows, err := l.o.Shards.Read(ctx, docs, shard.Eventual)
	if err != nil {
		return fmt.Errorf("read rows: %w", err)
	}
	listed := map[shard.DocID]bool{}
	for i, r := range rows {
		if len(l.page.Documents) == l.limit {
			l.page.Next = fmt.Sprintf("%s+%d", places[i].flight, places[i].n)
			return nil
		}
		if flight.ID(r.Flight) == places[i].flight && !listed[r.Doc] && r.Pending > r.Committed {
			listed[r.Doc] = true
			l.add(r)
		}
	}
	switch n := len(places); {
	case n == maxPageSize:
		l.page.Next = fmt.Sprintf("%s+%d", places[n-1].flight, places[n-1].n+1)
	case next != "":
		l.page.Next = next
	}
	return nil
}

// window returns the next flights that a list reads.
func (l *lister) window(ctx context.Context, after flight.ID) (ids []flight.ID, next string, err error) {
	list, next, err := l.o.Flights.List(ctx, string(after), maxWindow)
	if err != nil {
		return nil, "", fmt.Errorf("list flights: %w", err)
	}
	for _, s := range list {
		ids = append(ids, s.ID)
	}
	return ids, next, nil
}

// placeOf reads a cursor. The cursor names a flight that was read to its end (skip is -1), or a
// flight of which the first skip entries were read.
func placeOf(cursor string) (at flight.ID, skip int, err error) {
	id, n, within := strings.Cut(cursor, "+")
	if !within {
		return flight.ID(id), -1, nil
	}
	if skip, err = strconv.Atoi(n); err != nil || skip < 0 {
		return "", 0, inputf("cursor %q is not of this list", cursor)
	}
	return flight.ID(id), skip, nil
}

// read gets the flights that were not read yet. A flight may end at any time, and then it has no
// entries.
func (l *lister) read(ctx context.Context, ids []flight.ID) error {
	ids = slices.DeleteFunc(slices.Clone(ids), func(id flight.ID) bool { _, known := l.flights[id]; return known })
	found := make([][]heldEntry, len(ids))
	err := l.o.Parallel.Try(maxGets, len(ids), func(i int) (err error) {
		found[i], err = l.o.entries(ctx, ids[i])
		return err
	})
	if err != nil {
		return err
	}
	for i, id := range ids {
		l.flights[id] = found[i]
	}
	return nil
}

// hold adds to each waiting document the time at which it is due, and the number of messages about
// it that are held.
func (l *lister) hold(ctx context.Context) error {
	waiting := map[shard.DocID]*DocumentLine{}
	var ids []flight.ID
	for i := range l.page.Documents {
		if d := &l.page.Documents[i]; d.State == StateWaiting || d.State == StateClaimed {
			waiting[d.Key], ids = d, append(ids, flight.ID(d.Flight))
		}
	}
	if len(waiting) == 0 {
		return nil
	}
	if len(l.flights) == 0 { // otherwise [lister.pending] has read a window already
		others, _, err := l.window(ctx, "")
		if err != nil {
			return err
		}
		ids = append(ids, others...)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	if err := l.read(ctx, ids); err != nil {
		return err
	}
	type message struct {
		doc shard.DocID
		id  string
	}
	seen := map[message]bool{}
	for _, entries := range l.flights {
		for _, e := range entries {
			d := waiting[e.Doc]
			if d == nil {
				continue
			}
			if m := (message{e.Doc, e.message}); !seen[m] { // a message that was received again is in two flights
				seen[m] = true
				d.Held++
			}
			if e.Key.VersionText() == d.Pending && e.Due.Time().After(d.Due) {
				d.Due = e.Due.Time()
			}
		}
	}
	return nil
}
