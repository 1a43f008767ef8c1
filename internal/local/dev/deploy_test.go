// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/memorysink"
)

// The tests of this file play the flows of docs/faults.md about deployments while flights are
// running.

// The golden files contain a flight that the first release of schema 1 wrote. The golden files must
// not be rewritten as long as lull reads that schema.
var rewriteFlight = flag.Bool("rewrite-flight", false, "write the golden files of a flight of schema 1")

const (
	goldenManifest = "flight.v1.manifest.hex"
	goldenState    = "flight.v1.state.json"
)

// oldFlight returns the flight of the golden files. The messages of the flight have the ids and
// receipts of this run's queue.
func oldFlight(t *testing.T, today *flight.Manifest) (*flight.Manifest, flight.State) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", goldenManifest))
	if err != nil {
		t.Fatal(err)
	}
	packed, err := hex.DecodeString(strings.Join(strings.Fields(string(text)), ""))
	if err != nil {
		t.Fatal(err)
	}
	m, err := flight.Decode(packed)
	if err != nil {
		t.Fatalf("decode a manifest of schema 1: %v", err)
	}
	for i := range m.Records {
		m.Records[i].Message.ID, m.Records[i].Message.Receipt = today.Records[i].Message.ID,
			today.Records[i].Message.Receipt
	}
	raw, err := os.ReadFile(filepath.Join("testdata", goldenState))
	if err != nil {
		t.Fatal(err)
	}
	var s flight.State
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatalf("decode a state of schema 1: %v", err)
	}
	return m, s
}

// This test is line 54 of docs/faults.md, with golden files. Today's code must finish a flight that
// the first release of this schema began. Today's code must also write the same manifest and state,
// so that the first release could finish today's flights.
func TestOldAndNewCodeFinishEachOthersFlights(t *testing.T) {
	first := func(c *config.Config) { // the settings with which the files were written
		c.Debounce = config.Debounce{
			Quiet: 5 * time.Second, MaxWait: 30 * time.Second, CapGrace: 10 * time.Second,
			MinInterval: time.Second,
		}
		c.Queues.Live = config.Lane{Batch: 1000, Window: 2 * time.Second, MaxConcurrency: 20}
		c.Queues.Visibility = 40 * time.Second
	}
	stage{cfg: first}.play(t, func(s *scene) {
		// The machine records the state with which today's receive begins, and runs turns of the
		// old flight only.
		var begun flight.State
		old := flight.ID("01J00000000000000000000000")
		s.replaceMachine(func(ctx context.Context, st flight.State) (flight.State, error) {
			if st.Flight != old {
				begun, st.Done = st, true
				return st, nil
			}
			return s.e.turn(ctx, s.p, s.p.lane(flight.Live), st)
		})
		s.send(put(0, "a", 1), put(0, "a", 2), del(0, "b", 3), put(0, "c", 1))
		s.wait(3 * time.Second)
		list, _, err := s.e.Flights.List(s.ctx, "", 10)
		if err != nil || len(list) != 1 {
			t.Fatalf("flights %v, %v", list, err)
		}
		today, err := s.e.Flights.Get(s.ctx, list[0].ID)
		if err != nil {
			t.Fatal(err)
		}
		s.wait(2500 * time.Millisecond)
		began := begun
		today.Flight, began.Flight, began.Started, began.Done = old, old, 0, false
		began.Kind = "" // the first release let the state machine choose the kind
		if *rewriteFlight {
			writeGolden(t, today, began)
		}
		m, st := oldFlight(t, today)
		if !reflect.DeepEqual(m, today) {
			t.Errorf("today's receive writes the manifest\n%+v\nwhere the first code of this schema wrote\n%+v", today,
				m)
		}
		if a, b := stateText(t, began), stateText(t, st); a != b {
			t.Errorf("today's receive begins with %s\nwhere the first code of this schema began with %s", a, b)
		}
		if err := s.e.Flights.Delete(s.ctx, list[0].ID); err != nil {
			t.Fatal(err)
		}
		if err := s.e.Flights.Put(s.ctx, m); err != nil {
			t.Fatal(err)
		}
		if err := s.p.lane(flight.Live).machine.Start(s.ctx, st); err != nil {
			t.Fatal(err)
		}
		s.settle()
		s.holds("a", "2")
		s.holds("b", "")
		s.holds("c", "1")
		s.noted(journal.Received, 1) // written by the old flight, and not after a second receive
		s.noted(journal.Deleted, 4)
		s.noted(journal.Schema, 0)
	})
}

// replaceMachine makes other code run the turns. No flight may be running.
func (s *scene) replaceMachine(turn memory.Turn) {
	s.wait(0) // until the first run of prune has ended, because it uses the machine
	live := s.p.lane(flight.Live)
	live.machine.Close()
	live.machine = memory.NewMachine(clock.System{}, memory.MachineSettings{
		Retries: 3, RetryAfter: s.e.cfg.AmbiguousRetry(s.p.name),
	}, turn)
}

func stateText(t *testing.T, s flight.State) string {
	t.Helper()
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func writeGolden(t *testing.T, m *flight.Manifest, s flight.State) {
	t.Helper()
	packed, err := flight.Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	for line := hex.EncodeToString(packed); line != ""; {
		n := min(96, len(line))
		text.WriteString(line[:n] + "\n")
		line = line[n:]
	}
	for name, b := range map[string][]byte{goldenManifest: text.Bytes(), goldenState: []byte(stateText(t, s) + "\n")} {
		if err := os.WriteFile(filepath.Join("testdata", name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// A newer build may pass on a state with fields that this build does not know.
func TestFieldsOfANewerBuildAreLeftAlone(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("testdata", goldenState))
	if err != nil {
		t.Fatal(err)
	}
	var want, got flight.State
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatal(err)
	}
	newer := `{"priority":7,"owner":{"name":"x"},` + strings.TrimSpace(string(raw))[1:]
	if err := json.Unmarshal([]byte(newer), &got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("state %+v, want %+v", got, want)
	}
}

// beside returns a second engine with other settings, which uses the same table, queues, flights
// and sink.
func (s *scene) beside(change func(*config.Config)) *Engine {
	s.t.Helper()
	cfg := *s.e.cfg
	change(&cfg)
	cfg.Complete()
	if err := cfg.Validate(); err != nil {
		s.t.Fatalf("settings: %v", err)
	}
	next, err := New(Options{
		Config: &cfg, Clock: clock.System{}, Sinks: map[string]sink.Sink{"search": s.sink},
		Inject: s.inject,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	next.Shards, next.Letters, next.Schedule, next.Flights = s.e.Shards, s.e.Letters, s.e.Schedule, s.e.Flights
	next.pipes, next.notes, next.ledger = s.e.pipes, s.e.notes, s.e.ledger
	return next
}

// This test is line 54 of docs/faults.md. Two builds with different settings receive and run turns
// at the same time. Each build must finish flights that the other build began.
func TestTwoBuildsSideBySideFinishEachOthersFlights(t *testing.T) {
	newer := func(c *config.Config) {
		c.Debounce.Quiet, c.Debounce.MaxWait, c.Debounce.CapGrace, c.Debounce.MinInterval = 8*time.Second,
			20*time.Second, 5*time.Second, 0
		c.Index.Timeout, c.Index.Guard, c.Index.SinkDeadline, c.Index.MaxItemsPerTurn = 12*time.Second, 4*time.Second,
			8*time.Second, 7
		c.Queues.Visibility = 45 * time.Second
		c.Retry.BackoffMin = 2 * time.Second
	}
	stage{sink: memorysink.Settings{Latency: 1500 * time.Millisecond}, pollers: 2}.play(t, func(s *scene) {
		next := s.beside(newer)
		builds := []*Engine{s.e, next}
		var turns [2]atomic.Int64
		var turn atomic.Int64
		s.replaceMachine(func(ctx context.Context, st flight.State) (flight.State, error) {
			n := turn.Add(1) % 2
			turns[n].Add(1)
			return builds[n].turn(ctx, s.p, s.p.lane(flight.Live), st)
		})
		var starts atomic.Int64
		// start every flight twice, so that both builds run turns of it at the same time
		s.inject.rule = func(op fault.Op) (fault.Verdict, bool) {
			return fault.FailAfter, op.Call == "StartExecution" && starts.Add(1)%2 == 1
		}
		next.Start(s.ctx) // receives from the same queues from now on
		failed := map[string]int{}
		// every document needs several turns, and one of three answers is lost
		s.sink.SetRule(func(op sink.Op) (memorysink.Answer, bool) {
			failed[op.Doc.ID()]++
			switch failed[op.Doc.ID()] {
			case 1:
				return memorysink.Answer{Outcome: sink.Outcome{Kind: sink.Refused, Reason: "some_exception"}}, true
			case 2:
				return memorysink.Answer{Outcome: sink.Outcome{Kind: sink.Unknown, Reason: "time-out"}, Apply: true},
					len(op.Doc)%3 == 0
			}
			return memorysink.Answer{}, false
		})
		s.inject.next("GetManifest", fault.FailBefore, 8)
		const documents, versions = 60, 5
		for v := 1; v <= versions; v++ {
			for d := range documents {
				s.send(put(0, fmt.Sprint("doc-", d*d*d), v))
			}
			s.wait(3 * time.Second)
		}
		r := s.settle()
		for d := range documents {
			s.holds(fmt.Sprint("doc-", d*d*d), fmt.Sprint(versions))
		}
		if r.Dead != 0 {
			t.Errorf("%d dead letters %+v, want none", r.Dead, r.DeadLetters)
		}
		for _, step := range []journal.Step{journal.LeaseLost, journal.SinkNewer, journal.Schema, journal.Stuck} {
			s.noted(step, 0)
		}
		if turns[0].Load() < 10 || turns[1].Load() < 10 {
			t.Errorf("%d and %d turns: the builds did not share the flights", turns[0].Load(), turns[1].Load())
		}
		if n := s.e.Left(); n != 0 {
			t.Errorf("%d messages left", n)
		}
	})
}
