// SPDX-License-Identifier: Apache-2.0

package blevesink

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

func TestLocksKeepBatchesWithOneDocumentApart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := locks{busy: make(map[shard.DocID]struct{})}
		if err := l.acquire(t.Context(), []shard.DocID{"c#a", "c#b"}); err != nil {
			t.Fatal(err)
		}
		if err := l.acquire(t.Context(), []shard.DocID{"c#c"}); err != nil {
			t.Fatal(err)
		}
		got := false
		go func() {
			got = l.acquire(t.Context(), []shard.DocID{"c#b", "c#d"}) == nil
		}()
		synctest.Wait()
		if got {
			t.Error("two hold c#b")
		}
		l.release([]shard.DocID{"c#c"})
		synctest.Wait()
		if got {
			t.Error("two hold c#b")
		}
		if _, busy := l.busy["c#d"]; busy {
			t.Error("the one that waits holds a part")
		}
		l.release([]shard.DocID{"c#a", "c#b"})
		synctest.Wait()
		if !got {
			t.Error("nobody woke the one that waits")
		}
	})
}

func TestLocksLetGoOfWhoNoLongerWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := locks{busy: map[shard.DocID]struct{}{"c#a": {}}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := l.acquire(ctx, []shard.DocID{"c#a", "c#b"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		if len(l.busy) != 1 {
			t.Errorf("held: %v", l.busy)
		}
	})
}

// The test holds the lock of the document, so that the batch cannot be written. Write must still
// return when its context ends, and must not write the batch later.
func TestWriteComesBackWhenItsContextEnds(t *testing.T) {
	t.Parallel()
	x, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if err := x.locks.acquire(t.Context(), []shard.DocID{"c#a"}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for !x.locks.awaited() {
			runtime.Gosched()
		}
		cancel()
	}()
	got := x.Write(ctx, []sink.Op{
		{Doc: "c#a", Kind: shard.Put, Fence: 1, Document: []byte(`{}`)},
		{Doc: "c#b", Kind: shard.Put, Fence: 1, Document: []byte(`[]`)},
	})
	if got[0].Kind != sink.Unknown || got[1].Kind != sink.Rejected {
		t.Errorf("outcomes %+v, want unknown and rejected", got)
	}
	x.locks.release([]shard.DocID{"c#a"})
	x.writing.Wait()
	if s, found, err := x.Get(t.Context(), "c#a"); found || err != nil {
		t.Errorf("read %+v, %t, %v", s, found, err)
	}
}

// awaited reports whether a caller waits for a lock.
func (l *locks) awaited() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.freed != nil
}
