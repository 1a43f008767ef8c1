// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/memorysink"
)

// The health row records why a sink accepted nothing, and keeps the reason after the sink is back.
// The length of the reason is bounded.
func TestTheHealthRowSaysWhyASinkTookNothing(t *testing.T) {
	stage{}.play(t, func(b *bench) {
		why := "undefined_column: field version"
		b.sink.Script("content#a", memorysink.Answer{Outcome: sink.Outcome{
			Kind: sink.Configuration, Reason: why + strings.Repeat("x", 10_000),
		}})
		s := b.hold(put("a", 1))
		s = b.turn(s)
		h := b.Row(shard.HealthRow("search"))
		if !strings.HasPrefix(h.LastError, "configuration: "+why) || len(h.LastError) > shard.MaxLastError {
			t.Errorf("the row has a reason of %d bytes: %.100s", len(h.LastError), h.LastError)
		}
		opened := b.Notes.Of(journal.CircuitOpened)
		if len(opened) != 1 || !strings.Contains(opened[0].Detail, why) {
			t.Errorf("notes %+v", opened)
		}
		b.delivers(s, 10, "a", "1")
		if h := b.Row(shard.HealthRow("search")); h.OpenUntil != 0 || h.LastError == "" {
			t.Errorf("the sink is back: got row %+v, want a closed circuit and the last error", h)
		}
	})
}
