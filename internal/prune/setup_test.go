package prune_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/lullhq/lull/internal/clock"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/deadletter"
	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/local/fault"
	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/prune"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/internal/schedule"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/usecasetest"
)

const day = 24 * time.Hour

// bench is prune on the halves in memory, with virtual time.
type bench struct {
	*testing.T
	cfg        config.Config
	shards     *memory.Shards
	letters    *memory.DeadLetters
	flights    *memory.Flights
	schedule   *memory.Schedule
	live, bulk *memory.Queue
	notes      usecasetest.Notes
	id         uint64
}

// setup must run inside a synctest bubble, so that every clock is the bubble's.
func setup(t *testing.T) *bench {
	t.Helper()
	clk := clock.System{}
	b := &bench{
		T: t, cfg: config.Default(), shards: memory.NewShards(), letters: memory.NewDeadLetters(),
		schedule: memory.NewSchedule(),
	}
	b.flights = memory.NewFlights(clk)
	b.live = memory.NewQueue(clk, memory.QueueSettings{
		Name: "lull-search-live", Visibility: 40 * time.Second,
		Retention: 60 * day,
	})
	b.bulk = memory.NewQueue(clk, memory.QueueSettings{
		Name: "lull-search-bulk", Visibility: 40 * time.Second,
		Retention: 60 * day,
	})
	return b
}

func (b *bench) pruner() *prune.Pruner {
	return &prune.Pruner{
		Shards: b.shards, Scanner: b.shards, Flights: b.flights, Letters: b.letters, Schedule: b.schedule, Live: b.live,
		Bulk:   b.bulk,
		Config: &b.cfg, Sink: "search", Clock: clock.System{}, Journal: &b.notes,
	}
}

// faulty is a pruner whose I/O goes through an injector.
func (b *bench) faulty(inj fault.Injector) (*prune.Pruner, *fault.Invocation) {
	v := fault.NewInvocation(inj, "prune", 1)
	p := b.pruner()
	p.Shards, p.Scanner, p.Flights, p.Letters = v.Shards(b.shards), v.Scanner(b.shards), v.Flights(b.flights),
		v.DeadLetters(b.letters)
	p.Schedule, p.Live, p.Bulk = v.Schedule(b.schedule), v.Queue(b.live), v.Queue(b.bulk)
	return p, v
}

type decide = usecasetest.Decide

// run does a run that must have its turn and no failures.
func (b *bench) run() prune.Report {
	b.Helper()
	rep, err := b.pruner().Run(b.Context())
	if err != nil || !rep.Ran {
		b.Fatalf("run: %+v, error %v; want one without failures", rep, err)
	}
	return rep
}

// next waits for the next run's turn and does it.
func (b *bench) next() prune.Report {
	b.Helper()
	time.Sleep(b.cfg.Lifecycle.PruneEvery)
	return b.run()
}

func now() shard.Micros { return shard.MicrosOf(time.Now()) }

func doc(id any) shard.DocID { return shard.DocID(fmt.Sprint("content#", id)) }

func (b *bench) key(version int) shard.OrderKey {
	b.Helper()
	v, err := shard.ParseVersion(shard.ClassInt, fmt.Sprint(version))
	if err != nil {
		b.Fatal(err)
	}
	k, err := shard.NewOrderKey(shard.Parts{Version: v})
	if err != nil {
		b.Fatal(err)
	}
	return k
}

func (b *bench) write(w shard.Write) {
	b.Helper()
	if _, err := b.shards.Write(b.Context(), w); err != nil {
		b.Fatalf("%s: %v", w.Transition, err)
	}
}

func (b *bench) row(d shard.DocID) shard.Row {
	b.Helper()
	rows, err := b.shards.Read(b.Context(), []shard.DocID{d}, shard.Consistent)
	if err != nil {
		b.Fatal(err)
	}
	return rows[0]
}

func (b *bench) admit(d shard.DocID, version int) {
	b.Helper()
	b.write(shard.Admit(shard.Admission{Doc: d, Key: b.key(version), Class: shard.ClassInt, Flight: "f", Now: now()}))
}

// claim takes the lease for 13 s.
func (b *bench) claim(d shard.DocID, version int) shard.Lease {
	b.Helper()
	k := b.key(version)
	l := shard.Lease{Doc: d, Key: k, Token: shard.Token(fmt.Sprint("token-", time.Now().UnixNano())), At: now()}
	b.write(shard.Claim(shard.Bid{
		Doc: d, Key: k, Token: l.Token, Now: l.At, Until: l.At.Add(13 * time.Second),
		Again: b.row(d).Claimed == k,
	}))
	return l
}

// commit is a whole life of a version; a delete where del is set.
func (b *bench) commit(d shard.DocID, version int, op shard.Operation) {
	b.Helper()
	if b.row(d).Pending != b.key(version) {
		b.admit(d, version)
	}
	l := b.claim(d, version)
	b.write(shard.Commit(l, op, now(), b.cfg.Expires(time.Now()), b.row(d)))
}

func (b *bench) park(d shard.DocID, version int) {
	b.Helper()
	b.write(shard.Park(d, b.key(version), now(), b.cfg.Expires(time.Now()), b.row(d)))
}

// letter parks a dead letter.
func (b *bench) letter(d shard.DocID, version int, reason deadletter.Reason) string {
	b.Helper()
	m := queue.Message{ID: fmt.Sprint("m-", d, "-", version), Body: fmt.Sprint(d, version), Sent: time.Now()}
	l := deadletter.New(m, reason, "", d, b.key(version), 0, time.Now())
	l.Sink, l.Lane = "search", "live"
	if _, err := b.letters.Park(b.Context(), l); err != nil {
		b.Fatal(err)
	}
	return l.ID
}

func (b *bench) facts(id string) (deadletter.Facts, bool) {
	b.Helper()
	l, ok, err := b.letters.Get(b.Context(), id)
	if err != nil {
		b.Fatal(err)
	}
	return l.Facts, ok
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

// entry is one held version.
type entry struct {
	doc     shard.DocID
	version int
}

// flight stores a manifest, each entry in a message of its own, and admits what it holds.
func (b *bench) flight(entries ...entry) flight.ID {
	b.Helper()
	b.id++
	id := flight.ID(ulid.MustNew(ulid.Timestamp(time.Now()), constant(b.id)).String())
	m := &flight.Manifest{
		Schema: flight.SchemaVersion, Flight: id, Sink: "search", Lane: flight.Live,
		Received: time.Now(),
	}
	for _, e := range entries {
		if r := b.row(e.doc); r.Pending < b.key(e.version) && r.Committed < b.key(e.version) {
			b.admit(e.doc, e.version)
		}
		m.Records = append(m.Records, flight.Record{
			Message: queue.Message{
				ID: fmt.Sprint("m-", e.doc, "-", e.version), Receipt: "r",
				Body: native(e.doc, e.version), Sent: time.Now(), ReceiveCount: 1,
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

func native(d shard.DocID, version int) string {
	return fmt.Sprintf(`{"type":"doc.changed","subject":%q,"sequence":"%d","data":{"title":"v%d"}}`, d.ID(), version,
		version)
}

// constant is not random, so that ids are known.
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
