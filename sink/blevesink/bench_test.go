// SPDX-License-Identifier: Apache-2.0

package blevesink_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// vocabulary returns invented words. A few words are frequent and many are rare, as in a real
// language.
var vocabulary = func() []string {
	r := rand.New(rand.NewPCG(1, 2))
	words := make([]string, 20_000)
	for i := range words {
		b := make([]byte, 3+r.IntN(9))
		for j := range b {
			b[j] = "etaoinshrdlucmfwypvbgkjqxz"[min(25, int(r.ExpFloat64()*6))]
		}
		words[i] = string(b)
	}
	return words
}()

func prose(r *rand.Rand, words int) string {
	var b strings.Builder
	for range words {
		b.WriteString(vocabulary[min(len(vocabulary)-1, int(r.ExpFloat64()*float64(len(vocabulary))/8))])
		b.WriteByte(' ')
	}
	return b.String()
}

// documents returns n ops. Each document has about 300 bytes, plus a body of bodyWords words.
func documents(n, bodyWords int) []sink.Op {
	r := rand.New(rand.NewPCG(3, 4))
	ops := make([]sink.Op, n)
	for i := range ops {
		ops[i] = sink.Op{
			Doc: shard.DocID(fmt.Sprintf("content#%08x-7c1e-4d8a-9d7c-%012d", r.Uint32(), i)), Kind: shard.Put,
			Fence: 1, Version: "1", At: time.UnixMicro(1),
			Document: fmt.Appendf(nil,
				`{"title":%q,"description":%q,"document_type":"guide","locale":"en","public_updated_at":"2026-11-20T16:00:00Z","details":{"body":%q}}`, prose(r, 8), prose(r, 15), prose(r, bodyWords)),
		}
	}
	return ops
}

// BenchmarkWrite writes batches of 500 documents, from one, two and four writers. The important
// figure is docs/s.
func BenchmarkWrite(b *testing.B) {
	for _, bodyWords := range []int{0, 500} {
		for _, writers := range []int{1, 2, 4} {
			b.Run(fmt.Sprintf("body=%d/writers=%d", bodyWords, writers), func(b *testing.B) {
				x := open(b, b.TempDir())
				ops := documents(20_000, bodyWords)
				const batch = 500
				next := make(chan int)
				var wg sync.WaitGroup
				for range writers {
					wg.Go(func() {
						for n := range next {
							at := n * batch % len(ops)
							these := make([]sink.Op, batch)
							copy(these, ops[at:at+batch])
							for i := range these {
								these[i].Fence = shard.Fence(n + 1)
							}
							for _, o := range x.Write(b.Context(), these) {
								if o.Kind != sink.Applied {
									b.Errorf("%s: %s", o.Kind, o.Reason)
								}
							}
						}
					})
				}
				b.ResetTimer()
				for n := range b.N {
					next <- n
				}
				close(next)
				wg.Wait()
				b.ReportMetric(float64(b.N*batch)/b.Elapsed().Seconds(), "docs/s")
			})
		}
	}
}
