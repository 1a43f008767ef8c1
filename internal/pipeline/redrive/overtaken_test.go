// SPDX-License-Identifier: Apache-2.0

package redrive_test

import (
	"testing"

	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/pipeline/redrive"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/shard"
)

// If the row changes between the read and REDRIVE, the row that refuses REDRIVE decides.
func TestTheRowThatRefusesARedriveDecidesTheOutcome(t *testing.T) {
	t.Parallel()
	first, newer := put("1", 1), put("1", 2)
	type row struct {
		race  func(b *bench)
		want  redrive.Outcome
		stays bool
	}
	usecasetest.Table(t, play, map[string]row{
		"another redrive brought it into the sink": {func(b *bench) {
			e := b.EventOf(first)
			b.Write(shard.Redrive(e.Doc, e.Key, now()))
			b.Admit(e)
			b.Commit(b.Claim(e), shard.Put)
		}, redrive.Superseded, false},
		"a newer version is being written": {func(b *bench) {
			b.Admit(b.EventOf(newer))
			b.Claim(b.EventOf(newer))
		}, redrive.Busy, true},
	}, func(b *bench, tt row) {
		id := b.die(message(first))
		race := usecasetest.At("REDRIVE", func() { tt.race(b) })
		b.service.Shards = fault.NewInvocation(race, "redrive", 1).Shards(b.Shards)
		b.one(id, redrive.How{}, tt.want)
		b.sent(b.live, 0)
		if _, there := b.Facts(id); there != tt.stays {
			b.Errorf("the dead letter is stored: %t, want %t", there, tt.stays)
		}
	})
}
