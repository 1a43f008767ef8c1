// SPDX-License-Identifier: Apache-2.0

package shardtest_test

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/shard/shardtest"
)

// broken is a store with one fault. Each hook may be nil.
type broken struct {
	*memory.Shards
	write func(ctx context.Context, s *memory.Shards, w shard.Write) (shard.Row, error)
	wrote func(s *memory.Shards, w shard.Write, old shard.Row, err error) (shard.Row, error)
	read  func(rows []shard.Row) []shard.Row
	scan  func(rows []shard.Row, next string) ([]shard.Row, string)
}

func (b broken) Write(ctx context.Context, w shard.Write) (shard.Row, error) {
	if b.write != nil {
		return b.write(ctx, b.Shards, w)
	}
	old, err := b.Shards.Write(ctx, w)
	if b.wrote != nil {
		return b.wrote(b.Shards, w, old, err)
	}
	return old, err
}

func (b broken) Read(ctx context.Context, docs []shard.DocID, c shard.Consistency) ([]shard.Row, error) {
	rows, err := b.Shards.Read(ctx, docs, c)
	if b.read != nil {
		rows = b.read(rows)
	}
	return rows, err
}

func (b broken) Scan(ctx context.Context, segment, segments int, cursor string, limit int) ([]shard.Row, string,
	error,
) {
	rows, next, err := b.Shards.Scan(ctx, segment, segments, cursor, limit)
	if b.scan != nil {
		rows, next = b.scan(rows, next)
	}
	return rows, next, err
}

func consistent(ctx context.Context, s *memory.Shards, doc shard.DocID) (shard.Row, error) {
	rows, err := s.Read(ctx, []shard.DocID{doc}, shard.Consistent)
	if err != nil {
		return shard.Row{}, err
	}
	return rows[0], nil
}

func TestTheSuiteKillsBrokenStores(t *testing.T) {
	t.Parallel()
	var writes atomic.Int64
	var suite []check
	for _, d := range shardtest.Duties() {
		suite = append(suite, check{d.Name, d.Check})
	}
	for _, w := range shard.Transitions() {
		suite = append(suite, casesOf(w)...)
	}
	for name, b := range map[string]broken{
		"evaluates the condition and applies the update in two steps": {
			write: func(ctx context.Context, s *memory.Shards, w shard.Write) (shard.Row, error) {
				old, err := consistent(ctx, s, w.Doc)
				if err != nil {
					return old, err
				}
				if !w.Allowed(old) {
					return shard.Row{}, &shard.Refused{Write: w.Transition, Row: old}
				}
				runtime.Gosched() // a real store would wait for the network here
				_, err = s.Write(ctx, shardtest.Put(w.Apply(old)))
				return old, err
			},
		},
		"loses every tenth write": {
			write: func(ctx context.Context, s *memory.Shards, w shard.Write) (shard.Row, error) {
				if writes.Add(1)%10 == 0 {
					return consistent(ctx, s, w.Doc)
				}
				return s.Write(ctx, w)
			},
		},
		"keeps the rows it drops": {
			write: func(ctx context.Context, s *memory.Shards, w shard.Write) (shard.Row, error) {
				w.Drop = false
				return s.Write(ctx, w)
			},
		},
		"continues after the context has ended": {
			write: func(ctx context.Context, s *memory.Shards, w shard.Write) (shard.Row, error) {
				return s.Write(context.WithoutCancel(ctx), w)
			},
		},
		"applies what it refuses": {
			wrote: func(s *memory.Shards, w shard.Write, old shard.Row, err error) (shard.Row, error) {
				if r, ok := shard.AsRefused(err); ok {
					if _, err := s.Write(t.Context(), shardtest.Put(w.Apply(r.Row))); err != nil {
						return old, err
					}
				}
				return old, err
			},
		},
		"returns the row after the write": {
			wrote: func(_ *memory.Shards, w shard.Write, old shard.Row, err error) (shard.Row, error) {
				return w.Apply(old), err
			},
		},
		"refuses without an image": {
			wrote: func(_ *memory.Shards, w shard.Write, old shard.Row, err error) (shard.Row, error) {
				if _, ok := shard.AsRefused(err); ok {
					err = &shard.Refused{Write: w.Transition, Row: shard.Row{Doc: w.Doc}}
				}
				return old, err
			},
		},
		"refuses with another error": {
			wrote: func(_ *memory.Shards, _ shard.Write, old shard.Row, err error) (shard.Row, error) {
				if _, ok := shard.AsRefused(err); ok {
					err = errors.New("conditional check failed")
				}
				return old, err
			},
		},
		"names another write in its refusals": {
			wrote: func(_ *memory.Shards, _ shard.Write, old shard.Row, err error) (shard.Row, error) {
				if r, ok := shard.AsRefused(err); ok {
					err = &shard.Refused{Write: r.Write + 1, Row: r.Row}
				}
				return old, err
			},
		},
		"leaves absent rows out": {read: func(rows []shard.Row) []shard.Row {
			return slices.DeleteFunc(rows, func(r shard.Row) bool { return !r.Exists() })
		}},
		"reads in the order of keys": {read: func(rows []shard.Row) []shard.Row {
			return slices.SortedFunc(slices.Values(rows), func(a, b shard.Row) int { return cmp.Compare(a.Doc, b.Doc) })
		}},
		"cuts numbers to floats": {read: func(rows []shard.Row) []shard.Row {
			for i := range rows {
				rows[i].LastWrite = shard.Micros(float64(rows[i].LastWrite))
			}
			return rows
		}},
		"forgets an attribute": {read: func(rows []shard.Row) []shard.Row {
			for i := range rows {
				rows[i].Cursor = ""
			}
			return rows
		}},
		"scans the last row of a page twice": {scan: func(rows []shard.Row, next string) ([]shard.Row, string) {
			if next != "" && len(rows) > 1 {
				rows = append(rows[:len(rows)-1:len(rows)-1], rows[0])
			}
			return rows, next
		}},
		"scans one page only": {scan: func(rows []shard.Row, _ string) ([]shard.Row, string) { return rows, "" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b.Shards = memory.NewShards()
			by, said := killed(t, b, suite)
			if said == "" {
				t.Fatal("the broken store passes the suite")
			}
			t.Logf("killed by %q: %s", by, said)
		})
	}
}
