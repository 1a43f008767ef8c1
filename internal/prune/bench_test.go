package prune_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/clock"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/prune"
	"github.com/lullhq/lull/internal/shard"
)

// BenchmarkPass is one full pass over settled rows of which nothing goes: what a day costs. On
// DynamoDB a settled row has at most 200 bytes and an eventually consistent read unit is 8 KB, so a
// pass is rows/40 units.
func BenchmarkPass(b *testing.B) {
	for _, rows := range []int{10_000, 40_000, 160_000} {
		b.Run(fmt.Sprint(rows), func(b *testing.B) {
			cfg := config.Default()
			shards := memory.NewShards()
			v, err := shard.ParseVersion(shard.ClassInt, "1")
			if err != nil {
				b.Fatal(err)
			}
			k, err := shard.NewOrderKey(shard.Parts{Version: v})
			if err != nil {
				b.Fatal(err)
			}
			now := time.Now()
			for i := range rows {
				w := shard.Park(doc(i), k, shard.MicrosOf(now), cfg.Expires(now), shard.Row{})
				if _, err := shards.Write(b.Context(), w); err != nil {
					b.Fatal(err)
				}
			}
			clk := clock.System{}
			p := &prune.Pruner{
				Shards: shards, Scanner: shards, Flights: memory.NewFlights(clk), Letters: memory.NewDeadLetters(),
				Schedule: memory.NewSchedule(),
				Config:   &cfg, Sink: "search", Journal: journal.Discard{},
				Budget: prune.Budget{Rows: 2 * rows, Time: time.Minute},
			}
			cfg.Lifecycle.TTLExtra = -1 << 62 // nothing gets old, whatever the day
			at, runs := time.Duration(0), 0
			for b.Loop() {
				for ended := false; !ended; runs++ {
					p.Clock = clock.Skewed{Clock: clk, By: at}
					rep, err := p.Run(b.Context())
					if err != nil {
						b.Fatalf("pass: %+v, error %v", rep, err)
					}
					ended = rep.Rows.PassEnded
					at += cfg.Lifecycle.PruneEvery
				}
				at += 24 * time.Hour
			}
			b.ReportMetric(float64(runs)/float64(b.N), "runs/pass")
			b.ReportMetric(float64(b.N*rows)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
