// SPDX-License-Identifier: Apache-2.0

package dlq_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/pipeline/dlq"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/source"
)

// BenchmarkWorstBatch measures the most expensive batch of dlq. Lambda passes at most 6 MB: here
// five messages with the largest number of events, and five small messages.
func BenchmarkWorstBatch(b *testing.B) {
	cfg := config.Default()
	cfg.Sources["s3"] = config.Source{Kind: "s3"}
	cfg.DefaultSource = "s3"
	cfg.Complete()
	sources, err := source.New(&cfg)
	if err != nil {
		b.Fatal(err)
	}
	const record = `{"eventSource":"aws:s3","eventName":"ObjectCreated:Put","eventTime":"2026-11-20T16:00:00.000Z",` +
		`"s3":{"bucket":{"name":"b"},"object":{"key":"%d/%d","sequencer":"00%d","note":"%s"}}}`
	for name, one := range map[string]func(message, i, pad int) string{
		"faulty": func(_, _, pad int) string {
			return `{"eventSource":"aws:s3","note":"` + strings.Repeat("x", pad) + `"}`
		},
		"too old": func(m, i, pad int) string { return fmt.Sprintf(record, m, i, i, strings.Repeat("x", pad)) },
	} {
		b.Run(name, func(b *testing.B) {
			n := event.MaxEvents
			pad := max(queue.MaxBytes/n-len(record)-100, 0)
			var batch []queue.Message
			old := time.Now().Add(-cfg.Retry.DeadDeadline - time.Hour)
			for m := range 5 {
				var records []string
				for i := 0; i < n && (len(one(m, i, pad))+1)*i < queue.MaxBytes-1024; i++ {
					records = append(records, one(m, i, pad))
				}
				batch = append(batch, queue.Message{
					ID: fmt.Sprint("large", m), Body: `{"Records":[` + strings.Join(records, ",") + `]}`,
					Sent: old, MovedFrom: "lull-search-live", ReceiveCount: 1,
				}, queue.Message{
					ID: fmt.Sprint("small", m), Body: s3Records(fmt.Sprint("small", m)), Sent: old, MovedFrom: "lull-search-live",
					ReceiveCount: 1,
				})
			}
			b.ReportAllocs()
			for b.Loop() {
				queues := memory.NewQueue(clock.System{}, memory.QueueSettings{Name: "q", Retention: time.Hour})
				h := dlq.Handler{
					Shards: memory.NewShards(), Letters: memory.NewDeadLetters(), Sources: sources,
					Live: queues, Bulk: queues, Dead: queues,
					Config: &cfg, Sink: "search", Clock: clock.System{}, Journal: journal.Discard{},
				}
				if kept := h.Handle(b.Context(), batch); len(kept) != 0 {
					b.Fatalf("kept %v", kept)
				}
			}
		})
	}
}
