// SPDX-License-Identifier: Apache-2.0

package functions

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/aws/client"
	"github.com/lullhq/lull/internal/aws/lambda"
	"github.com/lullhq/lull/internal/aws/lambda/lambdatest"
	"github.com/lullhq/lull/internal/aws/s3"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/source"
	_ "github.com/lullhq/lull/source/builtin"
)

// hold puts a flight of one message into the bucket and returns the state of the flight.
func hold(t *testing.T, s *lambda.Setup) flight.State {
	t.Helper()
	set, err := source.New(s.Config)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC().Truncate(time.Millisecond)
	m := queue.Message{
		ID: "message-0", Receipt: "receipt-0", Body: put("a"), Sent: now, FirstReceived: now,
		ReceiveCount: 1,
	}
	e := set.Decode(m)[0].Event
	manifest := &flight.Manifest{
		Schema: flight.SchemaVersion, Flight: flight.NewID(now), Sink: s.Sink, Lane: flight.Live, Received: now,
		Records: []flight.Record{{Message: m, Events: []flight.Entry{
			{Doc: e.Doc, Key: e.Key, Class: e.Class, Op: e.Op, Due: shard.MicrosOf(now), Admitted: shard.MicrosOf(now)},
		}}},
	}
	cfg, err := client.FromEnv(s.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	if err := s3.NewFlights(s3.New(cfg, s.Getenv(lambda.EnvBucket))).Put(t.Context(), manifest); err != nil {
		t.Fatal(err)
	}
	return flight.State{
		Schema: flight.SchemaVersion, Flight: manifest.Flight, WakeAt: flight.WakeText(now),
		VisibleUntil: shard.MicrosOf(now.Add(time.Minute)), Remaining: flight.AllRemaining(1),
	}
}

// The message of the flight is neither written nor deleted. If the table is missing, the turn
// waits. If the manifest is missing, the turn fails, and the state machine tries again.
func TestWhatIsMissingKeepsTheFlightAndIsNamed(t *testing.T) {
	t.Parallel()
	for missing, says := range map[string]string{
		lambdatest.Table:  noTable,
		lambdatest.Bucket: noBucket,
	} {
		testMissing(t, "index", wireIndex, map[string]string{missing: says},
			func(t *testing.T, s *lambda.Setup) ([]byte, func([]byte, error)) {
				t.Helper()
				payload, err := json.Marshal(hold(t, s))
				if err != nil {
					t.Fatal(err)
				}
				return payload, func(answer []byte, err error) {
					if lost := missing == lambdatest.Bucket; lost || err != nil {
						if !lost || err == nil {
							t.Errorf("got answer %s, error %v", answer, err)
						}
						return
					}
					var next flight.State
					if err := json.Unmarshal(answer, &next); err != nil || next.Done || next.Remaining.Count() != 1 {
						t.Errorf("got answer %s, error %v: want the message still in the flight", answer, err)
					}
				}
			})
	}
}
