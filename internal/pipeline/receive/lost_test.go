// SPDX-License-Identifier: Apache-2.0

package receive_test

import (
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
)

// If a call fails, the class of the error is noted, and the messages of that call are received
// again.
func TestNoErrorOfACallIsLost(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]bool{"one call fails": false, "one call fails, and the table is away": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			usecasetest.NoErrorIsLost(t, func(t *testing.T, f *usecasetest.FailingCall) ([]journal.Note, error) {
				b := setup(t, func(c *config.Config) { c.TableOutage = config.TableOutageOpen })
				defer b.machine.Close()
				b.overdue(put("dead", 1))
				dead := b.EventOf(put("dead", 1)).Key
				b.Change(doc("dead"), func(r *shard.Row) { r.Pending, r.BurstStart = dead, now() })
				b.send("broken", put("b", 1), notBefore(put("soon", 1), time.Now().Add(10*time.Minute)),
					notBefore(put("far", 1), time.Now().Add(10*24*time.Hour)))
				b.failure, b.inject = usecasetest.Denied, f
				if lost {
					b.inject = tableAway{f}
				}
				kept := len(b.poll())
				b.inject = usecasetest.Healthy
				for range 30 {
					time.Sleep(time.Minute)
					kept = len(b.poll())
				}
				if kept > 2 || b.Row(doc("dead")).Dead != dead || b.Row(doc("b")).Pending == "" || b.Row(doc("soon")).Pending == "" {
					t.Errorf("%d kept, rows %+v, %+v and %+v", kept, b.Row(doc("dead")), b.Row(doc("b")), b.Row(doc("soon")))
				}
				if l := b.TakeLetters(b.dead); len(l) < 2 {
					t.Errorf("%d dead letters, want one for each dead event", len(l))
				}
				later := time.Now().Add(11 * 24 * time.Hour)
				if items, _, err := b.schedule.Due(t.Context(), later, "", 10); len(items) != 1 {
					t.Errorf("%d scheduled events (%v), want 1", len(items), err)
				}
				return b.Notes.All(), nil
			})
		})
	}
}
