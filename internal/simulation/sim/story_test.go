// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/pipeline/prune"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	_ "github.com/lullhq/lull/source/builtin"
)

// story is a simulated run with a plan: when each message is sent, and how the sink answers it. The
// oracles check a story like every run. Seeds find stories, and the tests of this file keep them.
type story struct {
	cfg   func(*config.Config)
	sent  []line
	calm  time.Duration
	hooks Hooks
}

// line is one message with one or several events.
type line struct {
	at     time.Duration
	events []change
}

// change is one version of the document "a".
type change struct {
	version int
	ahead   time.Duration // the event must not be written before this time after the beginning
	poison  poison
}

func (s story) tell(t *testing.T, seed uint64) Result {
	t.Helper()
	r := s.world(t, seed).Run()
	report(t, r, NoFaults)
	return r
}

func (s story) world(t *testing.T, seed uint64) *World {
	t.Helper()
	cfg := settings(t, true, func(cfg *config.Config) {
		if s.cfg != nil {
			s.cfg(cfg)
		}
	})
	sources := sourcesOf(t, cfg)
	up := Upstream{Calm: s.calm, poisons: map[version]poison{}}
	for _, l := range s.sent {
		var bodies []string
		for _, c := range l.events {
			when := ""
			if c.ahead > 0 {
				when = fmt.Sprintf(`,"notbefore":%q`, epoch.Add(c.ahead).Format(time.RFC3339Nano))
			}
			body := fmt.Sprintf(`{"type":"doc.changed","subject":"a","sequence":"%d"%s,"data":{"title":"a %d"}}`,
				c.version, when, c.version)
			e := sources.Decode(queue.Message{Body: body, Sent: epoch})[0].Event
			if c.poison != 0 {
				up.poisons[version{e.Doc, e.Key}] = c.poison
			}
			bodies = append(bodies, body)
		}
		up.Arrivals = append(up.Arrivals, Arrival{At: l.at, Message: queue.Outgoing{Body: envelope(bodies)}})
	}
	return begin(t, Options{Config: cfg, Seed: seed, Faults: NoFaults, Upstream: up, Pollers: 1, Hooks: s.hooks})
}

// TestOlderVersionBesideADeadOneInOneMessageIsWritten: receive once admitted only the newest
// version of a batch. If that version was a dead letter, the older version was never admitted, and
// its message returned for ever.
func TestOlderVersionBesideADeadOneInOneMessageIsWritten(t *testing.T) {
	t.Parallel()
	r := story{calm: time.Minute, sent: []line{{0, []change{{version: 2, poison: rejected}, {version: 1}}}}}.tell(t, 1)
	if r.Settled > lookEvery {
		t.Errorf("settled %s after the minute that was given, want within it", r.Settled)
	}
}

// TestOlderVersionThatIsDueLaterOutlivesTheNewerOne: index once panicked after the newer version of
// a flight was done. The older version of the same flight was not due for longer than quiet.
func TestOlderVersionThatIsDueLaterOutlivesTheNewerOne(t *testing.T) {
	t.Parallel()
	impatient := func(c *config.Config) {
		c.Debounce.Quiet, c.Queues.BurstSpread = time.Second, 500*time.Millisecond
		c.Queues.Live, c.Queues.Bulk = config.Lane{Batch: 10, MaxConcurrency: 2},
			config.Lane{Batch: 10, MaxConcurrency: 2}
	}
	s := story{cfg: impatient, calm: time.Minute, sent: []line{
		{0, []change{{version: 2, poison: rejected}}},
		{500 * time.Millisecond, []change{{version: 2, poison: rejected}}},
		{500 * time.Millisecond, []change{{version: 1, ahead: 3400 * time.Millisecond}}},
	}}
	for seed := range uint64(20) {
		s.tell(t, seed)
	}
}

// TestDeadVersionsAboveAGoodOneInOneMessageDoNotTakeTurns: a row remembers only one dead version. A
// message had two dead versions above a good one. In an earlier build, each redelivery tried the
// other dead version again, until the dead deadline. Now the flight that holds the three versions
// continues to the next version by itself (ADR 0014).
func TestDeadVersionsAboveAGoodOneInOneMessageDoNotTakeTurns(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		r := story{calm: time.Minute, sent: []line{
			{0, []change{
				{version: 1},
				{version: 2, poison: rejected},
				{version: 3, poison: rejected},
				{version: 4, poison: rejected},
			}},
		}}.tell(t, seed)
		if r.Settled > lookEvery {
			t.Errorf("seed %d: settled %s after the minute that was given, want within it", seed, r.Settled)
		}
		if len(r.Freshness) != 1 {
			t.Errorf("seed %d: %d versions were written, want the good one", seed, len(r.Freshness))
		}
	}
}

// TestScheduledEventOutlivesAShortDeadDeadline: receive once counted the age of a delayed event
// from the time at which it was sent. With a short dead deadline, an event scheduled after the
// deadline was never tried.
func TestScheduledEventOutlivesAShortDeadDeadline(t *testing.T) {
	t.Parallel()
	r := story{
		cfg:  func(c *config.Config) { c.Retry.DeadDeadline = time.Minute },
		calm: time.Minute,
		sent: []line{
			{0, []change{{version: 1, ahead: 12 * time.Minute}}},
			{0, []change{{version: 2, ahead: 40 * time.Minute}}},
		},
	}.tell(t, 1)
	if len(r.Freshness) != 2 {
		t.Errorf("%d versions were written without having been dead letters, want both", len(r.Freshness))
	}
}

// TestVersionAfterItsRowHasExpiredIsWritten: prune deletes an expired row, or later the table's own
// TTL does. A version that arrives after that is new, although the sink still has the document.
func TestVersionAfterItsRowHasExpiredIsWritten(t *testing.T) {
	t.Parallel()
	short := func(c *config.Config) {
		q, l := &c.Queues, &c.Lifecycle
		q.Retention, q.DeadLetterRetention, c.Retry.DeadDeadline = 13*time.Hour, 14*time.Hour, time.Hour
		l.RowRetention, l.TTLExtra, l.ProducerLateness, l.RedriveSpan = 48*time.Hour, 24*time.Hour, 0, 0
		l.PruneEvery = 10 * time.Minute
	}
	blind := Hooks{Prune: func(p *prune.Pruner) { p.Scanner = emptyTable{} }}
	for _, tt := range []struct {
		name  string
		hooks Hooks
		early bool // the row is deleted before the time in expires_at
	}{
		{"by prune", Hooks{}, true},
		{"by TTL", blind, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			const expires = 48*time.Hour + 24*time.Hour
			const later = expires + ttlLate + 24*time.Hour
			w := story{cfg: short, hooks: tt.hooks, calm: later + time.Minute, sent: []line{
				{0, []change{{version: 1}}}, {later, []change{{version: 2}}},
			}}.world(t, 1)
			exists := map[time.Duration]bool{}
			for _, at := range []time.Duration{47 * time.Hour, expires - time.Minute, later - time.Minute} {
				w.after(at, func() { exists[at] = w.table.row("content#a").Exists() })
			}
			report(t, w.Run(), NoFaults)
			if !exists[47*time.Hour] || exists[expires-time.Minute] == tt.early || exists[later-time.Minute] {
				t.Errorf("the row was there: %v", exists)
			}
		})
	}
}

// emptyTable is a table in which prune finds no rows.
type emptyTable struct{}

func (emptyTable) Scan(context.Context, int, int, string, int) ([]shard.Row, string, error) {
	return nil, "", nil
}
