// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lullhq/lull/e2e/ground"
)

// A thousand messages arrive by SNS, EventBridge and SQS, in bursts and in random order. Some of
// them are deletes. At the end, OpenSearch has exactly the newest version of every document, and
// the queues are empty. Each document was written once and in time.
func TestAThousandMessages(t *testing.T) {
	s := express(t)
	c := s.Collection("thousand")
	const documents, versions, together = 200, 5, 10
	// The first message after a deploy is slow, because the functions must start.
	before := s.Begun(t, ground.Event{Collection: c, ID: "first", Version: 1})
	want, newest := map[string]int{"first": 1}, make(map[string]bool)
	began := time.Now()
	for first := 0; first < documents; first += together {
		var events []ground.Event
		for i := range together {
			id := fmt.Sprintf("doc-%03d", first+i)
			burst := shuffledVersions(c, id, versions)
			for j := range burst {
				burst[j].Delete = (first+i+burst[j].Version)%7 == 0
				if newest[id] = true; burst[j].Version == versions && !burst[j].Delete {
					want[id] = versions
				}
			}
			events = append(events, burst...)
		}
		rand.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
		// The test does not send faster than the emulator delivers. Otherwise, the test would only
		// measure the time in the emulator's queue.
		ground.Until(t, "the queue is short", func() (bool, string) {
			d := s.Depth(t, s.Live)
			return d.Visible <= len(events), fmt.Sprintf("%+v", d)
		})
		s.Spread(t, events...)
	}
	t.Logf("sent in %s", time.Since(began).Round(time.Millisecond))
	s.Drained(t)
	for id := range newest {
		s.Committed(t, ground.Key(c, id), versions)
	}
	t.Logf("all committed after %s", time.Since(began).Round(time.Millisecond))
	s.Holds(t, c, want)
	timely(t, s, c, documents+1)
	t.Logf("%d documents, %d of them deleted, %d writes: %v", documents, documents+1-len(want),
		s.Search.Writes(t, s.Index(c)), s.Counts(t).Since(before))
	s.Never(t, before, "DeadLettered", "Rejected", "LeaseLost", "SinkNewer", "UnknownSchema", "Panics")
}
