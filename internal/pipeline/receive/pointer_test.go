// SPDX-License-Identifier: Apache-2.0

package receive_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/seam/journal"
)

func pointers(c *config.Config) { c.Payload.Allow = []config.BucketPrefix{{Bucket: "b"}} }

// sendPointers sends messages whose bodies are in a bucket, under the keys k0, k1 and so on.
func (b *bench) sendPointers(n int) {
	b.Helper()
	for i := range n {
		b.send(fmt.Sprintf(`["software.amazon.payloadoffloading.PayloadS3Pointer",{"s3BucketName":"b","s3Key":"k%d"}]`,
			i))
	}
}

// invoke gives n messages to the handler, with the time that a function with the default settings
// has. It returns how long the handler took.
func (b *bench) invoke(n int) (kept []string, took time.Duration) {
	b.Helper()
	batch, err := b.live.Receive(b.Context(), n, 0)
	if err != nil || len(batch) != n {
		b.Fatalf("received %d messages (%v), want %d", len(batch), err, n)
	}
	ctx, cancel := context.WithTimeout(b.Context(), b.Config.Receive.Timeout-500*time.Millisecond)
	defer cancel()
	begin := time.Now()
	h, _ := b.handler()
	return h.Handle(ctx, batch), time.Since(begin)
}

// A bucket answers within about 20 ms. One after the other, a thousand bodies would take longer
// than the function may run.
func TestAThousandPointersFitIntoOneInvocation(t *testing.T) {
	play(t, pointers, func(b *bench) {
		b.Sources = b.Sources.WithLoader(func(_ context.Context, _, key string) ([]byte, error) {
			time.Sleep(20 * time.Millisecond)
			return []byte(put(key, 1)), nil
		})
		b.sendPointers(1000)
		kept, took := b.invoke(1000)
		if len(kept) != 1000 || took > 2*time.Second {
			b.Errorf("%d messages kept after %s, want all held within 2s", len(kept), took)
		}
		b.Noted(journal.Admitted, 1000)
		b.Noted(journal.Failed, 0)
	})
}

// If a slow bucket does not return a body in time, the message is received again. This affects no
// other message, and does not mean that the table is unreachable.
func TestASlowBucketDoesNotKeepTheRestFromBeingHeld(t *testing.T) {
	play(t, pointers, func(b *bench) {
		b.Sources = b.Sources.WithLoader(func(ctx context.Context, _, key string) ([]byte, error) {
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(500 * time.Millisecond):
				return []byte(put(key, 1)), nil
			}
		})
		b.sendPointers(300)
		b.send(put("plain", 1))
		kept, took := b.invoke(301)
		if len(kept) != 301 || took > 3*time.Second {
			b.Errorf("%d messages kept after %s, want all within 3s", len(kept), took)
		}
		loaded, failed := len(b.Notes.Of(journal.Admitted)), len(b.Notes.Of(journal.Failed))
		if loaded < 2 || failed == 0 || loaded+failed != 301 {
			b.Errorf("%d admitted and %d failed, want every loaded message admitted and the others failed", loaded, failed)
		}
		if b.Row(doc("plain")).Pending == "" {
			b.Error("the message that needs no bucket was not admitted")
		}
		if m := b.manifests(); len(m) != 1 || len(m[0].Records) != loaded {
			b.Errorf("%d flights, want one of the %d messages that were admitted", len(m), loaded)
		}
		b.Noted(journal.Unreachable, 0)
	})
}

// Many bodies of a megabyte would fill a small function. This test is not parallel, because it
// measures the memory of the whole process.
func TestLoadedBodiesAreNotKept(t *testing.T) { //nolint:paralleltest // see above
	const size, n = 1 << 20, 24
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, pointers)
		defer b.machine.Close()
		body := strings.Repeat("x", size)
		b.Sources = b.Sources.WithLoader(func(_ context.Context, _, key string) ([]byte, error) {
			return fmt.Appendf(nil, `{"type":"doc.changed","subject":%q,"sequence":"1","data":{"title":%q}}`, key,
				body), nil
		})
		var before, during runtime.MemStats
		b.inject = at("PutManifest", func() {
			runtime.GC()
			runtime.ReadMemStats(&during)
		})
		b.sendPointers(n)
		runtime.GC()
		runtime.ReadMemStats(&before)
		b.poll()
		b.Noted(journal.Admitted, n)
		if grown := int64(during.HeapAlloc) - int64(before.HeapAlloc); grown > n*size/4 {
			t.Errorf("%d MB are still in memory after %d MB were decoded", grown>>20, n*size>>20)
		}
	})
}

// A batch loads a bounded number of bytes, and the other bodies later, however large the bodies
// are.
func TestABatchLoadsABoundedAmount(t *testing.T) {
	play(t, pointers, func(b *bench) {
		body := strings.Repeat(" ", 1<<20)
		loads := 0
		b.parallel = oneByOne
		b.Sources = b.Sources.WithLoader(func(_ context.Context, _, key string) ([]byte, error) {
			loads++
			return []byte(put(key, 1) + body), nil
		})
		b.sendPointers(80)
		for want := 80; want > 0; {
			before := loads
			b.poll()
			b.index()
			if n := loads - before; n > 32 {
				b.Fatalf("%d MB loaded for one batch, want at most 32", n)
			}
			want -= loads - before
			time.Sleep(41 * time.Second)
		}
		b.Noted(journal.Admitted, 80)
	})
}
