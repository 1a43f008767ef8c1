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

// Events arrive unchanged in the sink, by SNS, by EventBridge and directly by SQS.
func TestEveryUpstreamReachesTheSink(t *testing.T) {
	s := express(t)
	c := s.Collection("upstreams")
	s.Publish(t, ground.Event{
		Collection: c, ID: "by-topic", Version: 1,
		Data: map[string]any{"way": "SNS", "price": 1.10},
	})
	s.Put(t, ground.Event{Collection: c, ID: "by-bus", Version: 2, Data: map[string]any{"way": "EventBridge"}})
	s.Direct(t, ground.Event{Collection: c, ID: "by-queue", Version: 3, Data: map[string]any{"way": "SQS"}})
	s.Settled(t, c, map[string]int{"by-topic": 1, "by-bus": 2, "by-queue": 3})
	hits := s.Search.Documents(t, s.Index(c))
	for id, way := range map[string]string{"by-topic": "SNS", "by-bus": "EventBridge", "by-queue": "SQS"} {
		if got := hits[id].Fields["way"]; got != way {
			t.Errorf("%s: got way %v, want %s", id, got, way)
		}
	}
}

// Thirty versions of a document arrive out of order, by SNS, EventBridge and SQS. lull writes only
// the newest version, once. OpenSearch itself counts the writes.
func TestBurstIsOneWriteOfTheNewest(t *testing.T) {
	s := express(t)
	c := s.Collection("burst")
	const versions = 30
	want := make(map[string]int)
	for try := range 3 {
		id := fmt.Sprintf("doc-%d", try)
		before, counts := s.Search.Writes(t, s.Index(c)), s.Counts(t)
		began := time.Now()
		s.Spread(t, shuffledVersions(c, id, versions)...)
		took := time.Since(began)
		want[id] = versions
		s.Settled(t, c, want)
		if took > s.Config.Queues.BurstSpread {
			t.Logf("this machine took %s to send a burst, longer than bursts are (%s): once more", took,
				s.Config.Queues.BurstSpread)
			continue
		}
		s.Wrote(t, c, before, 1)
		s.Counted(t, counts, "Committed", 1)
		s.Done(t, counts, versions)
		return
	}
	t.Fatal("this machine is too slow to send a burst")
}

// shuffledVersions returns events with the versions 1 to n of a document, in random order.
func shuffledVersions(c, id string, n int) []ground.Event {
	events := make([]ground.Event, n)
	for i := range events {
		events[i] = ground.Event{Collection: c, ID: id, Version: i + 1}
	}
	rand.Shuffle(n, func(i, j int) { events[i], events[j] = events[j], events[i] })
	return events
}

// A message that waits for its flight stays in the queue, and no consumer can receive it. It stays
// there until the row shows that its version is committed.
func TestHeldMessagesAreInvisibleUntilTheCommit(t *testing.T) {
	s := express(t)
	c := s.Collection("held")
	key := ground.Key(c, "doc")
	s.Direct(t, ground.Event{Collection: c, ID: "doc", Version: 7})
	ground.Until(t, "the message is received", func() (bool, string) {
		d := s.Depth(t, s.Live)
		return d == ground.Depth{InFlight: 1}, fmt.Sprintf("%+v", d)
	})
	held := 0
	ground.Until(t, "version 7 is committed", func() (bool, string) {
		taken, depth := s.Receive(t, s.Live), s.Depth(t, s.Live)
		if row := s.Row(t, key); row.Committed != "" {
			return true, ""
		}
		held++
		if taken != 0 || depth != (ground.Depth{InFlight: 1}) {
			t.Fatalf("before its commit the queue shows %+v and gives %d messages, want 1 in flight and none", depth,
				taken)
		}
		return false, "pending"
	})
	if held == 0 {
		t.Error("the version was committed before the test could look at the queue")
	}
	t.Logf("looked %d times while it was held", held)
	s.Settled(t, c, map[string]int{"doc": 7})
}
