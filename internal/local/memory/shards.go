// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/lullhq/lull/internal/shard"
)

// buckets is the number of parts into which the table is divided. With many parts, writers of
// different documents rarely wait for each other, and a scan sorts few rows at a time.
const buckets = 256

// Shards is a table of rows. Each write is atomic, and every read is consistent.
type Shards struct {
	// Watch is called with each change of a row, in the order of the changes. Watch may be nil.
	// Watch must neither wait nor use the table. Set Watch before any method is called.
	Watch func(before, after shard.Row)

	keep    Keeper
	buckets [buckets]bucket
	reads   atomic.Int64
	writes  atomic.Int64
	refused atomic.Int64
}

type bucket struct {
	mu   sync.Mutex
	rows map[shard.DocID]shard.Row
}

var (
	_ shard.Store   = (*Shards)(nil)
	_ shard.Scanner = (*Shards)(nil)
)

// NewShards returns an empty table.
func NewShards() *Shards {
	s := &Shards{keep: forgetful{}}
	for i := range s.buckets {
		s.buckets[i].rows = map[shard.DocID]shard.Row{}
	}
	return s
}

// roomRows is the room of a Keeper for rows.
const roomRows = "row"

// keptRow is the form in which a Keeper stores a row. Order keys and digests are byte slices,
// because they are not UTF-8.
type keptRow struct {
	shard.Row
	Pending, Committed, Claimed, ClaimedWas, Dead, Content, TakenBack []byte
}

func asKept(r shard.Row) keptRow {
	return keptRow{
		r, []byte(r.Pending), []byte(r.Committed), []byte(r.Claimed), []byte(r.ClaimedWas), []byte(r.Dead),
		[]byte(r.Content), []byte(r.TakenBack),
	}
}

func (k keptRow) row() shard.Row {
	r := k.Row
	for to, from := range map[*shard.OrderKey][]byte{
		&r.Pending: k.Pending, &r.Committed: k.Committed, &r.Claimed: k.Claimed, &r.ClaimedWas: k.ClaimedWas,
		&r.Dead: k.Dead,
	} {
		*to = shard.OrderKey(from)
	}
	r.Content, r.TakenBack = shard.Content(k.Content), shard.KeySet(k.TakenBack)
	return r
}

// Keep restores the rows that the Keeper has stored. From then on, the table stores all changes in
// the Keeper. Call Keep before any other method.
func (s *Shards) Keep(k Keeper) error {
	s.keep = k
	return restore(k, roomRows, func(key string, kept keptRow) error {
		r := kept.row()
		r.Doc = shard.DocID(key)
		s.bucket(r.Doc).rows[r.Doc] = r
		return nil
	})
}

// Copy returns a copy of the table.
func (s *Shards) Copy() *Shards {
	c := NewShards()
	for i := range s.buckets {
		b := &s.buckets[i]
		b.mu.Lock()
		c.buckets[i].rows = maps.Clone(b.rows)
		b.mu.Unlock()
	}
	return c
}

func (s *Shards) bucket(doc shard.DocID) *bucket {
	h := uint32(2166136261) // FNV-1a: the same in every process, so that a simulated scan can be repeated
	for i := range len(doc) {
		h = (h ^ uint32(doc[i])) * 16777619
	}
	return &s.buckets[(h^h>>16)%buckets]
}

// Read returns the rows in the order of docs. Every read is consistent.
func (s *Shards) Read(ctx context.Context, docs []shard.DocID, _ shard.Consistency) ([]shard.Row, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("read rows: %w", err)
	}
	s.reads.Add(int64(len(docs)))
	rows := make([]shard.Row, len(docs))
	for i, doc := range docs {
		rows[i] = s.Row(doc)
	}
	return rows, nil
}

// Row returns one row. Row does not count as a read, because tests and tools use it, and not lull's
// functions.
func (s *Shards) Row(doc shard.DocID) shard.Row {
	b := s.bucket(doc)
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.rows[doc]
	r.Doc = doc
	return r
}

// Write evaluates the condition and applies the update under one lock.
func (s *Shards) Write(ctx context.Context, w shard.Write) (shard.Row, error) {
	if err := ctx.Err(); err != nil {
		return shard.Row{}, fmt.Errorf("write row: %w", err)
	}
	s.writes.Add(1)
	b := s.bucket(w.Doc)
	defer s.keep.Flush()
	b.mu.Lock()
	defer b.mu.Unlock()
	old := b.rows[w.Doc]
	old.Doc = w.Doc
	if !w.Allowed(old) {
		s.refused.Add(1)
		return shard.Row{}, &shard.Refused{Write: w.Transition, Row: old}
	}
	next := w.Apply(old)
	if s.Watch != nil {
		s.Watch(old, next)
	}
	if next.Exists() {
		b.rows[w.Doc] = next
		if stores(s.keep) {
			s.keep.Put(roomRows, string(w.Doc), asKept(next))
		}
	} else {
		delete(b.rows, w.Doc)
		s.keep.Delete(roomRows, string(w.Doc))
	}
	return old, nil
}

// All iterates over all rows, in no order. The body of the loop must not use the table.
func (s *Shards) All() iter.Seq[shard.Row] {
	return func(yield func(shard.Row) bool) {
		for i := range s.buckets {
			if !s.buckets[i].each(yield) {
				return
			}
		}
	}
}

func (b *bucket) each(yield func(shard.Row) bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.rows {
		if !yield(r) {
			return false
		}
	}
	return true
}

// Scan returns the rows of a segment, bucket by bucket, each bucket sorted by key. As in DynamoDB,
// a scan may miss a row that is written in the meantime, or return the new state.
func (s *Shards) Scan(ctx context.Context, segment, segments int, cursor string, limit int) ([]shard.Row, string,
	error,
) {
	if segments < 1 || segment < 0 || segment >= segments || limit < 1 {
		return nil, "", fmt.Errorf("scan segment %d of %d, limit %d: out of range", segment, segments, limit)
	}
	at, after := segment, ""
	if cursor != "" {
		n, rest, _ := strings.Cut(cursor, ":")
		i, err := strconv.Atoi(n)
		if err != nil || i < 0 || i%segments != segment {
			return nil, "", fmt.Errorf("scan: cursor %q is not of segment %d of %d", cursor, segment, segments)
		}
		at, after = i, rest
	}
	var rows []shard.Row
	for ; at < buckets; at, after = at+segments, "" {
		if err := ctx.Err(); err != nil {
			return nil, "", fmt.Errorf("scan: %w", err)
		}
		page := s.buckets[at].after(shard.DocID(after))
		if room := limit - len(rows); len(page) > room {
			page = page[:room]
		}
		s.reads.Add(int64(len(page)))
		if rows = append(rows, page...); len(rows) == limit {
			return rows, strconv.Itoa(at) + ":" + string(rows[limit-1].Doc), nil
		}
	}
	return rows, "", nil
}

// after returns the rows whose key is greater than doc, sorted.
func (b *bucket) after(doc shard.DocID) []shard.Row {
	b.mu.Lock()
	defer b.mu.Unlock()
	var rows []shard.Row
	for d, r := range b.rows {
		if d > doc {
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(x, y shard.Row) int { return cmp.Compare(x.Doc, y.Doc) })
	return rows
}

// ShardCounts contains the numbers of requests to a table. Writes includes refused writes, because
// DynamoDB charges for a refused write, too.
type ShardCounts struct{ Reads, Writes, Refused int64 }

// Counts returns how many rows were read, and how many writes were tried and refused, since the
// table was created.
func (s *Shards) Counts() ShardCounts {
	return ShardCounts{Reads: s.reads.Load(), Writes: s.writes.Load(), Refused: s.refused.Load()}
}

// Len returns the number of rows.
func (s *Shards) Len() (n int) {
	for range s.All() {
		n++
	}
	return n
}
