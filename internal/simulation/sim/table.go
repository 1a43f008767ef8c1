// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/simulation/price"
)

// table is the table `shards`. The simulated table adds to the in-memory store the reads of older
// images, a limit for each partition, and provisioned capacity. Dead letters and scheduled events
// are stored elsewhere, so nothing uses the capacity of the index `waiting`.
type table struct {
	w             *World
	rows          *memory.Shards
	past          map[shard.DocID][]image
	spent         map[shard.DocID]spending
	writes, reads *provision
}

// image is the state of a row until a moment.
type image struct {
	until time.Duration
	row   shard.Row
}

// kept is how many images of a row are stored for eventually consistent reads.
const kept = 8

type spending struct {
	second time.Duration
	writes int
}

func newTable(w *World) *table {
	return &table{
		w: w, rows: memory.NewShards(), past: map[shard.DocID][]image{}, spent: map[shard.DocID]spending{},
		writes: newProvision(w, w.cfg.Table.Writes), reads: newProvision(w, w.cfg.Table.Reads),
	}
}

// row returns the current row, for the oracles.
func (t *table) row(doc shard.DocID) shard.Row { return t.rows.Row(doc) }

// write applies one write now.
func (t *table) write(v *invocation, w shard.Write) (shard.Row, error) {
	if !t.writes.take(1) {
		return shard.Row{}, shard.ErrThrottled
	}
	t.w.counts.Writes[w.Transition.String()]++
	if t.w.rates.Deaf && (w.Transition == shard.TRIP || w.Transition == shard.CUT) {
		return t.row(w.Doc), nil
	}
	if budget := t.w.rates.TableBudget; budget > 0 && w.Doc.IsDocument() {
		s := t.spent[w.Doc]
		if second := t.w.now.Truncate(time.Second); s.second != second {
			s = spending{second: second}
		}
		s.writes++
		if t.spent[w.Doc] = s; s.writes > budget {
			return shard.Row{}, shard.ErrThrottled
		}
	}
	old, err := t.rows.Write(background, w)
	if err != nil {
		if refused, is := shard.AsRefused(err); is {
			t.w.counts.Refused++
			t.w.watch(v, Step{What: Refused, Write: w, Old: refused.Row, New: refused.Row})
			t.w.trace.write(v, w, false)
		}
		return old, err
	}
	t.w.trace.write(v, w, true)
	t.remember(old)
	row := t.row(w.Doc)
	t.w.watch(v, Step{What: Wrote, Write: w, Old: old, New: row})
	if !w.Doc.IsDocument() {
		t.w.oracle.halted(row)
	} else {
		t.w.oracle.wrote(v, w, old, row)
	}
	return old, nil
}

// remember stores the image of a row that ends now. remember deletes images that no stale read can
// show any more, because they are older than StaleBy.
func (t *table) remember(old shard.Row) {
	past, oldest := t.past[old.Doc], t.w.now-max(t.w.rates.StaleBy, quietRates().StaleBy)
	over := max(len(past)+1-kept, 0)
	for over < len(past) && past[over].until <= oldest {
		over++
	}
	t.past[old.Doc] = append(slices.Delete(past, 0, over), image{t.w.now, old})
}

// read performs one read now.
func (t *table) read(docs []shard.DocID, c shard.Consistency) []shard.Row {
	rows, _ := t.rows.Read(background, docs, c)
	t.w.counts.read(len(docs), bool(c))
	if c == shard.Consistent {
		return rows
	}
	for i, doc := range docs {
		if !t.w.strikes("stale read", t.w.rates.StaleRead) {
			continue
		}
		since := t.w.now - t.w.dice.upTo(t.w.rates.StaleBy)
		for _, old := range t.past[doc] {
			if old.until > since {
				rows[i] = old.row
				break
			}
		}
	}
	return rows
}

// ttlEvery is how often the table looks for rows after their expires_at. ttlLate is how late the
// deletion may be. AWS says that it deletes such an item within a few days.
const (
	ttlEvery = time.Hour
	ttlLate  = 48 * time.Hour
)

// expire simulates the table's TTL, which deletes rows without a condition.
func (t *table) expire() {
	t.w.after(ttlEvery, t.expire)
	rows, _, _ := t.rows.Scan(background, 0, 1, "", math.MaxInt32) // fails only if its context ends
	for _, r := range rows {
		over := time.Duration(epoch.Add(t.w.now).Unix()-r.ExpiresAt) * time.Second
		if r.ExpiresAt != 0 && over >= 0 && (over >= ttlLate || t.w.dice.chance(float64(ttlEvery)/float64(ttlLate))) {
			drop := shard.Write{Doc: r.Doc, Drop: true}
			_, _ = t.rows.Write(background, drop) // a deletion without a condition is never refused
			t.w.watch(nil, Step{What: Wrote, Write: drop, Old: r, New: shard.Row{Doc: r.Doc}})
			t.w.trace.mark("ttl "+string(r.Doc), "", 0)
		}
	}
}

// tableClient is the table as one invocation uses it.
type tableClient struct {
	*table
	v *invocation
}

var (
	_ shard.Store   = tableClient{}
	_ shard.Scanner = tableClient{}
)

func (c tableClient) Read(_ context.Context, docs []shard.DocID, how shard.Consistency) ([]shard.Row, error) {
	if !c.reads.take(float64(len(docs)) * price.ReadUnits(0, bool(how))) {
		return nil, shard.ErrThrottled
	}
	rows, what := c.read(docs, how), Glanced
	if how == shard.Consistent {
		what = Read
	}
	c.w.watch(c.v, Step{What: what, Rows: rows})
	return rows, nil
}

func (c tableClient) Write(ctx context.Context, w shard.Write) (shard.Row, error) {
	old, err := c.write(c.v, w)
	if !errors.Is(err, shard.ErrThrottled) {
		carried(ctx, 0)
	}
	return old, err
}

func (c tableClient) Scan(ctx context.Context, segment, segments int, cursor string, limit int) ([]shard.Row, string,
	error,
) {
	rows, next, err := c.rows.Scan(ctx, segment, segments, cursor, limit)
	pages := 1 + len(rows)/20 // each page is read as a whole, with about twenty rows in a unit
	if !c.reads.take(float64(pages) * price.ReadUnits(0, false)) {
		return nil, "", shard.ErrThrottled
	}
	c.w.counts.read(pages, false)
	return rows, next, err
}
