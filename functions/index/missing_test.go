package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/account"
	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/lambda"
	"github.com/lullhq/lull/internal/lambda/lambdatest"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/internal/s3"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/source"
)

// hold puts a flight of one message into the bucket and returns its state.
func hold(t *testing.T, s *lambda.Setup) flight.State {
	t.Helper()
	set, err := source.New(s.Config)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC().Truncate(time.Millisecond)
	m := queue.Message{ID: "message-0", Receipt: "receipt-0", Body: lambdatest.Put("a"), Sent: now, FirstReceived: now, ReceiveCount: 1}
	e := set.Decode(m)[0].Event
	manifest := &flight.Manifest{
		Schema: flight.SchemaVersion, Flight: lambda.NewFlight(), Sink: s.Sink, Lane: flight.Live, Received: now,
		Records: []flight.Record{{Message: m, Events: []flight.Entry{
			{Doc: e.Doc, Key: e.Key, Class: e.Class, Op: e.Op, Due: shard.MicrosOf(now), Admitted: shard.MicrosOf(now)},
		}}},
	}
	cfg, err := account.FromEnv(s.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	if err := s3.NewFlights(s3.New(cfg, s.Getenv(lambda.EnvBucket))).Put(t.Context(), manifest); err != nil {
		t.Fatal(err)
	}
	return flight.State{
		Schema: flight.SchemaVersion, Flight: manifest.Flight, WakeAt: flight.WakeText(now), VisibleUntil: now.Add(time.Minute).UnixMicro(), Left: flight.AllLeft(1),
	}
}

// Whatever a name stands for that is not there: the message of the flight is neither written nor deleted, and the log names what is missing.
func TestWhatIsMissingKeepsTheFlightAndIsNamed(t *testing.T) {
	t.Parallel()
	for missing, tt := range map[string]struct {
		says string
		lost bool // the turn fails, and the state machine tries it again
	}{
		lambdatest.Table:  {"table lull-shards or its index waiting does not exist", false},
		lambdatest.Bucket: {"bucket lull-123456789012-eu-west-1 does not exist", true},
	} {
		t.Run(missing, func(t *testing.T) {
			t.Parallel()
			account := lambdatest.NewAccount(t)
			var log bytes.Buffer
			s := lambdatest.Setup("index", account.Environment(), &log)
			state := hold(t, s)
			account.Lose(missing)
			h, err := wire(s)
			if err != nil {
				t.Fatal(err)
			}
			payload, err := json.Marshal(state)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := h.Invoke(t.Context(), payload)
			if (err != nil) != tt.lost {
				t.Errorf("got %s, %v", answer, err)
			}
			if err == nil {
				var next flight.State
				if err := json.Unmarshal(answer, &next); err != nil || next.Done || next.Left.Count() != 1 {
					t.Errorf("got %s, %v: want the message still left", answer, err)
				}
			}
			if !strings.Contains(log.String(), tt.says) || strings.Contains(log.String(), "hidden") {
				t.Errorf("want %q and no content in the log:\n%s", tt.says, &log)
			}
			if n := account.Calls("DeleteMessage") + account.Calls("DELETE"); n != 0 {
				t.Errorf("%d requests to delete", n)
			}
		})
	}
}
