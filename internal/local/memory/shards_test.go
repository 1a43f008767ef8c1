// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"testing"

	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/shard/shardtest"
)

func TestShardsAreAStore(t *testing.T) {
	t.Parallel()
	shardtest.Run(t, memory.NewShards(),
		shardtest.Capabilities{Scan: true, Rounds: 100})
}

func TestShardsCountWhatIsPaidFor(t *testing.T) {
	t.Parallel()
	s := memory.NewShards()
	w := shard.Redrive("a#1", "k", 1)
	if _, err := s.Write(t.Context(), w); err == nil {
		t.Fatal("a redrive of an absent row was allowed")
	}
	if _, err := s.Write(t.Context(), shardtest.Put(shard.Row{Doc: "a#1", Level: 1})); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read(t.Context(), []shard.DocID{"a#1", "a#2"}, shard.Eventual); err != nil {
		t.Fatal(err)
	}
	if got, want := s.Counts(), (memory.ShardCounts{Reads: 2, Writes: 2, Refused: 1}); got != want {
		t.Errorf("counts %+v, want %+v", got, want)
	}
	if got, want := s.Len(), 1; got != want {
		t.Errorf("%d rows, want %d", got, want)
	}
}

func TestAScanRefusesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	s := memory.NewShards()
	for _, c := range []struct {
		segment, segments int
		cursor            string
		limit             int
	}{{0, 0, "", 1}, {1, 1, "", 1}, {-1, 2, "", 1}, {0, 1, "", 0}, {0, 1, "x", 1}, {1, 2, "2:a", 1}} {
		if _, _, err := s.Scan(t.Context(), c.segment, c.segments, c.cursor, c.limit); err == nil {
			t.Errorf("%+v: no error", c)
		}
	}
}
