// SPDX-License-Identifier: Apache-2.0

package redrive_test

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/pipeline/dlq"
	"github.com/lullhq/lull/internal/pipeline/redrive"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

// bench is the service and dlq on stores in memory, with virtual time.
type bench struct {
	*usecasetest.Rig
	service          *redrive.Service
	dlq              *dlq.Handler
	flights          *memory.Flights
	schedule         *memory.Schedule
	live, bulk, dead *memory.Queue
}

var (
	put = usecasetest.Put
	now = usecasetest.Now
)

// play runs a test's story on a bench.
func play(t *testing.T, story func(b *bench)) {
	t.Helper()
	usecasetest.Story(t, func(t *testing.T) { story(setup(t)) })
}

// setup must run inside a synctest bubble, so that every clock is the clock of the bubble.
func setup(t *testing.T) *bench {
	t.Helper()
	clk := clock.System{}
	b := &bench{flights: memory.NewFlights(clk), schedule: memory.NewSchedule()}
	b.Rig = usecasetest.Open(t, func(c *config.Config) {
		c.Sources["arrival"] = config.Source{Kind: "native", NoVersion: config.NoVersionArrival}
		c.DefaultSource = "native"
	})
	retention := 60 * 24 * time.Hour
	b.dead = b.Queue("lull-search-dead", retention)
	b.live = b.Queue("lull-search-live", retention)
	b.bulk = b.Queue("lull-search-bulk", retention)
	b.dlq = &dlq.Handler{
		Shards: b.Shards, Letters: b.Letters, Sources: b.Sources, Live: b.live, Bulk: b.bulk, Dead: b.dead,
		Config: &b.Config, Sink: "search", Clock: clk, Journal: &b.Notes,
	}
	b.service = &redrive.Service{
		Shards: b.Shards, Letters: b.Letters, Flights: b.flights, Schedule: b.schedule, Config: &b.Config, Clock: clk,
		Journal: &b.Notes,
		Queues: func(sink string, lane flight.Lane) queue.Queue {
			switch {
			case sink != "search":
				return nil
			case lane == flight.Bulk:
				return b.bulk
			}
			return b.live
		},
	}
	return b
}

// message returns a message that was received now.
func message(text string) queue.Message {
	return queue.Message{
		ID: fmt.Sprintf("m-%x", len(text)), Receipt: "r", Body: text, Sent: time.Now(),
		ReceiveCount: 1,
	}
}

func (b *bench) commit(e event.Event) {
	b.Helper()
	b.Commit(b.Claim(e), shard.Put)
	time.Sleep(time.Millisecond)
}

func (b *bench) reject(l shard.Lease) {
	b.Helper()
	b.Write(shard.Reject(l, "mapper_parsing_exception", b.Config.Lifecycle.Expires(time.Now()), b.Row(l.Doc)))
	time.Sleep(time.Millisecond)
}

// letter sends the dead letter of an event as index sends it, and lets dlq park it. It returns the
// id of the dead letter.
func (b *bench) letter(m queue.Message, reason deadletter.Reason) string {
	b.Helper()
	var e event.Event
	if r := b.Sources.Decode(m)[0]; r.Invalid == nil {
		e = r.Event
	}
	l := b.SendLetter(b.dead, m, e, reason)
	ms := b.Take(b.dead)
	if kept := b.dlq.Handle(b.Context(), ms); len(kept) != 0 {
		b.Fatalf("dlq kept %v", kept)
	}
	return l.ID
}

// die takes a version that the sink refuses through its life. The version is admitted and claimed,
// its dead letter is parked, and it is rejected.
func (b *bench) die(m queue.Message) string {
	b.Helper()
	e := b.Event(m)
	b.Admit(e)
	l := b.Claim(e)
	id := b.letter(m, deadletter.RejectedBySink)
	b.reject(l)
	return id
}

// redrive redrives only this dead letter.
func (b *bench) redrive(id string) (redrive.Outcome, error) {
	outcome, _, err := b.service.With(b.Context(), id, redrive.How{}, nil)
	return outcome, err
}

// one redrives one dead letter and checks the outcome.
func (b *bench) one(id string, how redrive.How, want redrive.Outcome) {
	b.Helper()
	got, _, err := b.service.With(b.Context(), id, how, nil)
	if err != nil || got != want {
		b.Errorf("redrive: got %s, error %v; want %s", got, err, want)
	}
}

// sent takes the messages from a queue, and checks their number.
func (b *bench) sent(q *memory.Queue, want int) []queue.Message {
	b.Helper()
	ms := b.Take(q)
	if len(ms) != want {
		b.Fatalf("%d messages were sent, want %d", len(ms), want)
	}
	return ms
}

// outcomes counts the dead letters by outcome.
type outcomes map[redrive.Outcome]int

func (t outcomes) total() (n int) {
	for _, count := range t {
		n += count
	}
	return n
}

// all takes every step of an order. If no step failed, it returns the first error of a dead letter.
func all(ctx context.Context, step func(context.Context, redrive.Order) (redrive.Step, error), o redrive.Order) (
	outcomes, error,
) {
	of := outcomes{}
	var first error
	for {
		s, err := step(ctx, o)
		for _, done := range s.Done {
			of[done.Outcome]++
			first = cmp.Or(first, done.Err)
		}
		if err != nil || s.Next == nil {
			return of, cmp.Or(err, first)
		}
		o.From = *s.Next
	}
}

func (b *bench) redriveAll(o redrive.Order) (outcomes, error) {
	b.Helper()
	return all(b.Context(), b.service.Redrive, o)
}

func (b *bench) dropAll(o redrive.Order) (outcomes, error) {
	b.Helper()
	return all(b.Context(), b.service.Drop, o)
}

func selection(f deadletter.Filter) redrive.Selection { return redrive.Selection{Filter: f} }

// list returns the dead letters that the service lists.
func (b *bench) list(s redrive.Selection) (all []deadletter.Facts) {
	b.Helper()
	if err := b.service.List(b.Context(), s, func(f deadletter.Facts) error {
		all = append(all, f)
		return nil
	}); err != nil {
		b.Fatalf("list: %v", err)
	}
	return all
}

func ids(facts []deadletter.Facts) string {
	var out []string
	for _, f := range facts {
		out = append(out, f.Doc.ID())
	}
	return strings.Join(out, " ")
}
