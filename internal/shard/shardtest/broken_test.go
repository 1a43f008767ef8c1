package shardtest_test

import (
	"context"
	"errors"
	"runtime"
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
	read  func(ctx context.Context, s *memory.Shards, docs []shard.DocID, c shard.Consistency) ([]shard.Row, error)
	scan  func(rows []shard.Row, next string) ([]shard.Row, string)
}

func (b broken) Write(ctx context.Context, w shard.Write) (shard.Row, error) {
	if b.write != nil {
		return b.write(ctx, b.Shards, w)
	}
	return b.Shards.Write(ctx, w)
}

func (b broken) Read(ctx context.Context, docs []shard.DocID, c shard.Consistency) ([]shard.Row, error) {
	if b.read != nil {
		return b.read(ctx, b.Shards, docs, c)
	}
	return b.Shards.Read(ctx, docs, c)
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
				runtime.Gosched() // what lies between is I/O
				_, err = s.Write(ctx, shardtest.Put(w.Apply(old)))
				return old, err
			},
		},
		"applies what it refuses": {write: func(ctx context.Context, s *memory.Shards, w shard.Write) (shard.Row,
			error,
		) {
			old, err := s.Write(ctx, w)
			if r, ok := shard.AsRefused(err); ok {
				if _, err := s.Write(ctx, shardtest.Put(w.Apply(r.Row))); err != nil {
					return old, err
				}
			}
			return old, err
		}},
		"returns the row after the write": {write: func(ctx context.Context, s *memory.Shards,
			w shard.Write,
		) (shard.Row, error) {
			old, err := s.Write(ctx, w)
			if err == nil {
				old = w.Apply(old)
			}
			return old, err
		}},
		"refuses without an image": {write: func(ctx context.Context, s *memory.Shards, w shard.Write) (shard.Row,
			error,
		) {
			old, err := s.Write(ctx, w)
			if _, ok := shard.AsRefused(err); ok {
				err = &shard.Refused{Write: w.Transition, Row: shard.Row{Doc: w.Doc}}
			}
			return old, err
		}},
		"refuses with another error": {write: func(ctx context.Context, s *memory.Shards, w shard.Write) (shard.Row,
			error,
		) {
			old, err := s.Write(ctx, w)
			if _, ok := shard.AsRefused(err); ok {
				err = errors.New("conditional check failed")
			}
			return old, err
		}},
		"loses every tenth write": {write: func() func(context.Context, *memory.Shards, shard.Write) (shard.Row,
			error) {
			var n atomic.Int64
			return func(ctx context.Context, s *memory.Shards, w shard.Write) (shard.Row, error) {
				if n.Add(1)%10 == 0 {
					return consistent(ctx, s, w.Doc)
				}
				return s.Write(ctx, w)
			}
		}()},
		"keeps the rows it drops": {write: func(ctx context.Context, s *memory.Shards, w shard.Write) (shard.Row,
			error,
		) {
			w.Drop = false
			return s.Write(ctx, w)
		}},
		"leaves absent rows out": {read: func(ctx context.Context, s *memory.Shards, docs []shard.DocID,
			c shard.Consistency,
		) ([]shard.Row, error) {
			rows, err := s.Read(ctx, docs, c)
			var there []shard.Row
			for _, r := range rows {
				if r.Exists() {
					there = append(there, r)
				}
			}
			return there, err
		}},
		"reads in the order of keys": {read: func(ctx context.Context, s *memory.Shards, docs []shard.DocID,
			c shard.Consistency,
		) ([]shard.Row, error) {
			rows, err := s.Read(ctx, docs, c)
			for i := 1; i < len(rows); i++ {
				for j := i; j > 0 && rows[j].Doc < rows[j-1].Doc; j-- {
					rows[j], rows[j-1] = rows[j-1], rows[j]
				}
			}
			return rows, err
		}},
		"cuts numbers to floats": {read: func(ctx context.Context, s *memory.Shards, docs []shard.DocID,
			c shard.Consistency,
		) ([]shard.Row, error) {
			rows, err := s.Read(ctx, docs, c)
			for i := range rows {
				rows[i].LastWrite = shard.Micros(float64(rows[i].LastWrite))
			}
			return rows, err
		}},
		"forgets an attribute": {read: func(ctx context.Context, s *memory.Shards, docs []shard.DocID,
			c shard.Consistency,
		) ([]shard.Row, error) {
			rows, err := s.Read(ctx, docs, c)
			for i := range rows {
				rows[i].Cursor = ""
			}
			return rows, err
		}},
		"goes on after the context has ended": {write: func(ctx context.Context, s *memory.Shards,
			w shard.Write,
		) (shard.Row, error) {
			return s.Write(context.WithoutCancel(ctx), w)
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
			env := shardtest.NewEnv(b, shardtest.Capabilities{})
			for _, d := range shardtest.Duties() {
				if err := d.Check(t.Context(), env); err != nil {
					t.Logf("killed by %q: %v", d.Name, err)
					return
				}
			}
			for _, c := range shardtest.Cases() {
				if err := c.Check(t.Context(), env); err != nil {
					t.Logf("killed by %s %q: %v", c.Write.Transition, c.Name, err)
					return
				}
			}
			t.Error("survives the suite")
		})
	}
}
