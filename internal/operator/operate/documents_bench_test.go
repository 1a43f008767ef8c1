// SPDX-License-Identifier: Apache-2.0

package operate_test

import (
	"fmt"
	"testing"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/shard"
)

// BenchmarkAPageOfManyDocuments measures the request that the console repeats while `lull dev`
// runs.
func BenchmarkAPageOfManyDocuments(b *testing.B) {
	shards := memory.NewShards()
	version := usecasetest.Must(shard.ParseVersion(shard.ClassInt, "1"))(b)
	key := usecasetest.Must(shard.NewOrderKey(shard.Parts{Version: version, Digest: shard.Digest{1}}))(b)
	for i := range 100_000 {
		_, err := shards.Write(b.Context(), shard.Write{
			Doc: shard.DocID(fmt.Sprintf("content#%06d", i)), Update: []shard.Action{
				{Verb: shard.Set, Attr: shard.AttrLastWrite, Val: shard.Value{Kind: shard.KindNumber, Num: 1}},
				{
					Verb: shard.Set, Attr: shard.AttrCommitted,
					Val: shard.Value{Kind: shard.KindBinary, Text: string(key)},
				},
			},
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	o := operate.Operator{
		Shards: shards, Rows: shards.All(), Clock: clock.System{}, Config: &config.Config{},
		Dead: memory.NewDeadLetters(), Schedule: memory.NewSchedule(),
	}
	for b.Loop() {
		if p, err := o.API().Documents(b.Context(), operate.DocumentFilter{}); err != nil || len(p.Documents) != 100 {
			b.Fatal(len(p.Documents), err)
		}
	}
}
