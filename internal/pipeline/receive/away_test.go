// SPDX-License-Identifier: Apache-2.0

package receive_test

import (
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/shard/shardtest"
)

// A sink that has been paused for a minute is away, as in an outage. During the first minute,
// messages still wait in flights.
func TestABatchGoesAwayUndecodedWhileItsSinkIsPaused(t *testing.T) {
	play(t, nil, func(b *bench) {
		b.Write(shard.Pause("search", now(), "ann", "an index is moved"))
		b.send(put("a", 1))
		b.poll()
		b.Noted(journal.Launched, 1)
		time.Sleep(time.Minute)
		b.send("not even JSON")
		b.poll()
		b.Noted(journal.Away, 1)
		b.Noted(journal.DeadLettered, 0)
		if n := b.Notes.Of(journal.Away)[0]; !strings.Contains(n.Detail, "paused") {
			b.Errorf("notes %+v, want the reason", n)
		}
		b.Write(shard.Resume("search", b.Row(shard.HealthRow("search")), now(), b.Config.Retry.OpenFor))
		time.Sleep(5 * time.Minute)
		b.poll()
		b.Noted(journal.DeadLettered, 1)
	})
}

// If the sink is away for long, a batch waits in the queue for some minutes, undecoded: no row is
// written and no flight starts. Messages past their dead deadline are still judged, so that SQS
// does not delete them unjudged. When no flight probes the sink any more, a batch is processed.
func TestABatchGoesAwayUndecodedWhileItsSinkIsAway(t *testing.T) {
	play(t, nil, func(b *bench) {
		b.send(put("old", 1))
		time.Sleep(b.Config.Retry.DeadDeadline - 9*time.Minute)
		b.send("not even JSON")
		b.send(put("a", 1))
		away := shard.Row{Doc: shard.HealthRow("search"), OpenUntil: now().Add(time.Minute), Level: 7}
		b.Write(shardtest.Put(away))
		b.poll()
		b.Noted(journal.Away, 1)
		b.Noted(journal.Admitted, 0)
		b.Noted(journal.DeadLettered, 0)
		b.Noted(journal.Launched, 0)
		if n := b.Notes.Of(journal.Away)[0]; n.Count != 3 || time.Until(n.Until) < 62*time.Second ||
			time.Until(n.Until) > 65*time.Second {
			b.Errorf("notes %+v, want three messages away until 2 to 4 s after the next ping", n)
		}
		time.Sleep(10 * time.Minute)
		away.OpenUntil = now().Add(time.Minute)
		b.Write(shardtest.Put(away))
		b.poll()
		if n := b.Notes.Of(journal.DeadLettered); len(n) != 1 || n[0].Doc != doc("old") {
			b.Errorf("dead letters %+v, want one for the message past its dead deadline", n)
		}
		away.OpenUntil = now()
		b.Write(shardtest.Put(away))
		time.Sleep(5 * time.Minute)
		b.poll()
		b.Noted(journal.Launched, 1)
	})
}
