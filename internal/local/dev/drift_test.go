// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// Another program deletes a document from the index, or writes a document again that lull deleted.
func TestSomebodyElsesChangesOfTheIndexAreDrift(t *testing.T) {
	for name, tt := range map[string]struct {
		cfg  func(*config.Config)
		want int
	}{
		"as it is":         {nil, 2},
		"a turned-off one": {func(c *config.Config) { c.Lifecycle.DriftSample = 0 }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			stage{cfg: tt.cfg}.play(t, func(s *scene) {
				s.send(put(0, "lost", 1), put(0, "gone", 1), put(0, "fine", 1))
				s.settle()
				s.send(del(0, "gone", 2))
				s.settle()
				s.wait(11 * time.Minute)
				s.noted(journal.Drift, 0)
				for id, op := range map[string]sink.Op{
					"lost": {Kind: shard.Delete},
					"gone": {Kind: shard.Put, Document: []byte("{}"), Key: s.row("fine").Committed},
				} {
					op.Doc, op.Fence = s.row(id).Doc, shard.Fence(time.Now().UnixMicro())
					s.sink.Write(s.ctx, []sink.Op{op})
				}
				s.wait(5*time.Minute + 3*time.Minute)
				s.noted(journal.Drift, tt.want)
			})
		})
	}
}
