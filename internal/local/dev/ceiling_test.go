// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/operator/feed"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
)

// The setting limits the number of turns in lull dev as reserved concurrency does on AWS.
func TestASinkHasAsManyTurnsAtOnceAsItsSettingsSay(t *testing.T) {
	for name, most := range map[string]int{"one": 1, "two": 2, "any number": 0} {
		t.Run(name, func(t *testing.T) {
			var now, seen atomic.Int64
			slow := usecasetest.Decide(func(op fault.Op) fault.Verdict {
				if op.Service == fault.Search {
					n := now.Add(1)
					for old := seen.Load(); n > old && !seen.CompareAndSwap(old, n); old = seen.Load() {
					}
					time.Sleep(5 * time.Second)
					now.Add(-1)
				}
				return fault.OK
			})
			stage{inject: slow, pollers: 5, cfg: func(c *config.Config) {
				if s := c.Sinks["search"]; most > 0 {
					s.MaxConcurrency = &most
					c.Sinks["search"] = s
				}
			}}.play(t, func(s *scene) {
				var messages []feed.Timed
				want := map[string]string{}
				for i := range 8 {
					id := fmt.Sprintf("doc-%d", i)
					want["content#"+id] = "1"
					messages = append(messages, put(time.Duration(i)*time.Second, id, 1))
				}
				s.arrive(messages)
				s.settle()
				s.holdsAll(want)
				if n := int(seen.Load()); most > 0 && n != most || most == 0 && n < 3 {
					t.Errorf("%d turns at once, want %d, or 3 at least where there is no limit", n, most)
				}
			})
		})
	}
}
