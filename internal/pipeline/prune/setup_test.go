// SPDX-License-Identifier: Apache-2.0

package prune_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/pipeline/prune"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/seam/rows"
	"github.com/lullhq/lull/internal/seam/schedule"
	"github.com/lullhq/lull/internal/shard"
)

const day = 24 * time.Hour

// bench runs prune on stores in memory, with virtual time.
type bench struct {
	*usecasetest.Rig
	flights    *memory.Flights
	schedule   *memory.Schedule
	live, bulk *memory.Queue
	id         uint64
}

// play runs a test's story on a bench.
func play(t *testing.T, story func(b *bench)) {
	t.Helper()
	usecasetest.Story(t, func(t *testing.T) { story(setup(t)) })
}

// setup must run inside a synctest bubble, so that every clock is the bubble's clock.
func setup(t *testing.T) *bench {
	t.Helper()
	clk := clock.System{}
	b := &bench{Rig: usecasetest.Open(t, nil), schedule: memory.NewSchedule(), flights: memory.NewFlights(clk)}
	b.live = b.Queue("lull-search-live", 60*day)
	b.bulk = b.Queue("lull-search-bulk", 60*day)
	return b
}

func (b *bench) pruner() *prune.Pruner {
	return &prune.Pruner{
		Shards: b.Shards, Scanner: b.Shards, Flights: b.flights, Letters: b.Letters, Schedule: b.schedule, Live: b.live,
		Bulk:   b.bulk,
		Config: &b.Config, Sink: "search", Clock: clock.System{}, Journal: &b.Notes,
		NewToken: rows.NewToken, NewID: flight.NewID,
	}
}

// faulty returns a pruner whose calls pass through a fault injector.
func (b *bench) faulty(inj fault.Injector) (*prune.Pruner, *fault.Invocation) {
	v := fault.NewInvocation(inj, "prune", 1)
	p := b.pruner()
	p.Shards, p.Scanner, p.Flights, p.Letters = v.Shards(b.Shards), v.Scanner(b.Shards), v.Flights(b.flights),
		v.DeadLetters(b.Letters)
	p.Schedule, p.Live, p.Bulk = v.Schedule(b.schedule), v.Queue(b.live), v.Queue(b.bulk)
	return p, v
}

type decide = usecasetest.Decide

var (
	put = usecasetest.Put
	doc = usecasetest.Doc
	now = usecasetest.Now
)

// run does a run that must get the turn and must not fail.
func (b *bench) run() prune.Report {
	b.Helper()
	rep, err := b.pruner().Run(b.Context())
	if err != nil || !rep.Ran {
		b.Fatalf("run: %+v, error %v; want a run without failures", rep, err)
	}
	return rep
}

// next waits for the next turn and does a run.
func (b *bench) next() prune.Report {
	b.Helper()
	time.Sleep(b.Config.Lifecycle.PruneEvery)
	return b.run()
}

// version returns the event of a version of a document.
func (b *bench) version(d shard.DocID, version int) event.Event {
	return b.EventOf(put(d.ID(), version))
}

func (b *bench) key(version int) shard.OrderKey { return b.version(doc("any"), version).Key }

func (b *bench) admit(d shard.DocID, version int) { b.Admit(b.version(d, version)) }

func (b *bench) claim(d shard.DocID, version int) shard.Lease { return b.Claim(b.version(d, version)) }

// commit admits, claims and commits a version.
func (b *bench) commit(d shard.DocID, version int, op shard.Operation) {
	b.Helper()
	e := b.version(d, version)
	if b.Row(d).Pending != e.Key {
		b.Admit(e)
	}
	b.Commit(b.Claim(e), op)
}

func (b *bench) park(d shard.DocID, version int) {
	b.Helper()
	b.Write(shard.Park(d, b.key(version), now(), b.Config.Lifecycle.Expires(time.Now()), b.Row(d)))
}

// letter parks a dead letter and returns its id.
func (b *bench) letter(d shard.DocID, version int, reason deadletter.Reason) string {
	b.Helper()
	m := queue.Message{ID: fmt.Sprint("m-", d, "-", version), Body: fmt.Sprint(d, version), Sent: time.Now()}
	l := deadletter.New(m, reason, "", d, b.key(version), 0, time.Now())
	l.Sink, l.Lane = "search", "live"
	if _, err := b.Letters.Park(b.Context(), l); err != nil {
		b.Fatal(err)
	}
	return l.ID
}

func (b *bench) schedules(id string, notBefore time.Time, lane flight.Lane) {
	b.Helper()
	err := b.schedule.Put(b.Context(), schedule.Item{
		ID: id, Doc: doc(id), Key: b.key(1), NotBefore: notBefore, Sink: "search", Lane: lane, FirstSent: time.Now(),
		MessageID: "m-" + id,
		Body:      "body of " + id, Attributes: map[string]queue.Attribute{"x": queue.Text("y")},
	})
	if err != nil {
		b.Fatal(err)
	}
}

// entry is one version that a flight holds.
type entry struct {
	doc     shard.DocID
	version int
}

// flight stores a manifest with one message for each entry, and admits the entries.
func (b *bench) flight(entries ...entry) flight.ID {
	b.Helper()
	b.id++
	id := flight.ID(ulid.MustNew(ulid.Timestamp(time.Now()), constant(b.id)).String())
	m := &flight.Manifest{
		Schema: flight.SchemaVersion, Flight: id, Sink: "search", Lane: flight.Live,
		Received: time.Now(),
	}
	for _, e := range entries {
		if r := b.Row(e.doc); r.Pending < b.key(e.version) && r.Committed < b.key(e.version) {
			b.admit(e.doc, e.version)
		}
		m.Records = append(m.Records, flight.Record{
			Message: queue.Message{
				ID: fmt.Sprint("m-", e.doc, "-", e.version), Receipt: "r",
				Body: put(e.doc.ID(), e.version), Sent: time.Now(), ReceiveCount: 1,
			},
			Events: []flight.Entry{{
				Doc: e.doc, Key: b.key(e.version), Class: shard.ClassInt, Op: shard.Put,
				Due: now(), Admitted: now(),
			}},
		})
	}
	if err := b.flights.Put(b.Context(), m); err != nil {
		b.Fatal(err)
	}
	return id
}

// constant replaces random bytes, so that the ids are known.
type constant uint64

func (c constant) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(c >> (8 * (i % 8)))
	}
	return len(p), nil
}

func (b *bench) stored() []flight.ID {
	b.Helper()
	all, next, err := b.flights.List(b.Context(), "", 1000)
	if err != nil || next != "" {
		b.Fatalf("list flights: %v", err)
	}
	var out []flight.ID
	for _, s := range all {
		out = append(out, s.ID)
	}
	return out
}
