// SPDX-License-Identifier: Apache-2.0

package receive_test

import (
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/shard/shardtest"
)

// due returns how long from now the first document of the only flight is due.
func (b *bench) due() time.Duration {
	b.Helper()
	m := b.manifests()
	if len(m) == 0 {
		b.Fatal("no flight")
	}
	return m[len(m)-1].Records[0].Events[0].Due.Sub(now())
}

func TestWhenAFlightIsDue(t *testing.T) {
	brief := func(c *config.Config) { c.Debounce.Quiet = time.Second }
	for name, c := range map[string]struct {
		cfg   func(*config.Config)
		setup func(b *bench)
		want  time.Duration
	}{
		"quiet counts from the time when the event was sent": {nil, func(b *bench) {
			b.send(put("a", 1))
			time.Sleep(2 * time.Second)
		}, 3 * time.Second},
		"a burst ends at max wait": {nil, func(b *bench) {
			b.admit(put("a", 1))
			time.Sleep(27 * time.Second)
			b.send(put("a", 2))
		}, 3 * time.Second},
		"a redelivery has waited enough": {nil, func(b *bench) {
			b.send(put("a", 1))
			if _, err := b.live.Receive(b.Context(), 1, 0); err != nil {
				b.Fatal(err)
			}
			time.Sleep(40 * time.Second)
			b.Change(doc("a"), func(r *shard.Row) { r.LastWrite = now().Add(-time.Hour) })
		}, 0},
		"a message of a backlog has waited enough": {nil, func(b *bench) {
			b.send(put("a", 1))
			time.Sleep(time.Hour)
		}, -time.Hour + 5*time.Second},
		"not due within the shortest interval between writes": {brief, func(b *bench) {
			b.Change(doc("a"), func(r *shard.Row) { r.LastWrite = now().Add(200 * time.Millisecond) })
			b.send(put("a", 1))
		}, 1200 * time.Millisecond},
		"not due before its notbefore time": {brief, func(b *bench) {
			b.send(notBefore(put("a", 1), time.Now().Add(3*time.Second)))
		}, 3 * time.Second},
		"due at once with a leading edge": {func(c *config.Config) { c.Debounce.Leading = true }, func(b *bench) {
			b.send(put("a", 1))
		}, 0},
		"no leading edge inside a burst": {func(c *config.Config) { c.Debounce.Leading = true }, func(b *bench) {
			b.admit(put("a", 1))
			b.send(put("a", 2))
		}, 5 * time.Second},
		"a sink that throttles widens the quiet window": {nil, func(b *bench) {
			b.Write(shardtest.Put(shard.Row{
				Doc: shard.HealthRow("search"), OpenUntil: now().Add(10 * time.Second),
				Level: 2,
			}))
			b.send(put("a", 1))
		}, 10 * time.Second},
		"a sink that throttles widens the window up to max wait": {func(c *config.Config) { c.Debounce.MaxWait = 8 * time.Second }, func(b *bench) {
			b.Write(shardtest.Put(shard.Row{
				Doc: shard.HealthRow("search"), OpenUntil: now().Add(10 * time.Second),
				Level: 5,
			}))
			b.send(put("a", 1))
		}, 8 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, c.cfg, func(b *bench) {
				c.setup(b)
				b.poll()
				if got := b.due(); got != c.want {
					b.Errorf("the flight is due %s from now, want %s", got, c.want)
				}
			})
		})
	}
}
