package redrive_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/clock"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/deadletter"
	"github.com/lullhq/lull/internal/dlq"
	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/internal/redrive"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/usecasetest"
	"github.com/lullhq/lull/source"
	_ "github.com/lullhq/lull/source/builtin"
)

// bench is the service and dlq on the halves in memory, with virtual time.
type bench struct {
	*testing.T
	service          *redrive.Service
	dlq              *dlq.Handler
	cfg              config.Config
	sources          *source.Set
	shards           *memory.Shards
	letters          *memory.DeadLetters
	flights          *memory.Flights
	live, bulk, dead *memory.Queue
	notes            usecasetest.Notes
}

// setup must run inside a synctest bubble, so that every clock is the bubble's.
func setup(t *testing.T) *bench {
	t.Helper()
	b := &bench{T: t, cfg: config.Default(), shards: memory.NewShards(), letters: memory.NewDeadLetters()}
	b.cfg.Sources["arrival"] = config.Source{Kind: "native", NoVersion: config.NoVersionArrival}
	b.cfg.DefaultSource = "native"
	b.cfg.Complete()
	var err error
	if b.sources, err = source.New(&b.cfg); err != nil {
		t.Fatal(err)
	}
	clk := clock.System{}
	retention := 60 * 24 * time.Hour
	b.flights = memory.NewFlights(clk)
	b.dead = memory.NewQueue(clk, memory.QueueSettings{
		Name: "lull-search-dead", Visibility: 40 * time.Second,
		Retention: retention,
	})
	b.live = memory.NewQueue(clk, memory.QueueSettings{
		Name: "lull-search-live", Visibility: 40 * time.Second,
		Retention: retention,
	})
	b.bulk = memory.NewQueue(clk, memory.QueueSettings{
		Name: "lull-search-bulk", Visibility: 40 * time.Second,
		Retention: retention,
	})
	b.dlq = &dlq.Handler{
		Shards: b.shards, Letters: b.letters, Sources: b.sources, Live: b.live, Bulk: b.bulk, Dead: b.dead,
		Config: &b.cfg, Sink: "search", Clock: clk, Journal: &b.notes,
	}
	b.service = &redrive.Service{
		Shards: b.shards, Letters: b.letters, Flights: b.flights, Config: &b.cfg, Clock: clk, Journal: &b.notes,
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

func body(id string, version int) string {
	return fmt.Sprintf(`{"type":"doc.changed","subject":%q,"sequence":"%d","data":{"title":"v%d"}}`, id, version,
		version)
}

// message is a message as received now.
func message(text string) queue.Message {
	return queue.Message{
		ID: fmt.Sprintf("m-%x", len(text)), Receipt: "r", Body: text, Sent: time.Now(),
		ReceiveCount: 1,
	}
}

// event decodes a message's only event.
func (b *bench) event(m queue.Message) event.Event {
	b.Helper()
	r := b.sources.Decode(m)
	if len(r) != 1 || r[0].Invalid != nil || r[0].Skip != "" {
		b.Fatalf("decode: %+v", r)
	}
	return r[0].Event
}

func (b *bench) write(w shard.Write) {
	b.Helper()
	if _, err := b.shards.Write(b.Context(), w); err != nil {
		b.Fatalf("%s: %v", w.Transition, err)
	}
}

func now() shard.Micros { return shard.MicrosOf(time.Now()) }

func (b *bench) admit(e event.Event) {
	b.Helper()
	b.write(shard.Admit(shard.Admission{Doc: e.Doc, Key: e.Key, Class: e.Class, Flight: "f", Now: now()}))
}

// claim takes the lease for 13 s.
func (b *bench) claim(e event.Event) shard.Lease {
	b.Helper()
	l := shard.Lease{Doc: e.Doc, Key: e.Key, Token: shard.Token(fmt.Sprint("token-", time.Now().UnixNano())), At: now()}
	b.write(shard.Claim(shard.Bid{
		Doc: l.Doc, Key: l.Key, Token: l.Token, Now: l.At, Until: l.At.Add(13 * time.Second),
		Again: b.row(e.Doc).Claimed == l.Key,
	}))
	return l
}

func (b *bench) commit(e event.Event) {
	b.Helper()
	l := b.claim(e)
	b.write(shard.Commit(l, shard.Put, now(), b.cfg.Expires(time.Now()), b.row(l.Doc)))
	time.Sleep(time.Millisecond)
}

func (b *bench) reject(l shard.Lease) {
	b.Helper()
	b.write(shard.Reject(l, "mapper_parsing_exception", b.cfg.Expires(time.Now()), b.row(l.Doc)))
	time.Sleep(time.Millisecond)
}

func (b *bench) row(doc shard.DocID) shard.Row {
	b.Helper()
	rows, err := b.shards.Read(b.Context(), []shard.DocID{doc}, shard.Consistent)
	if err != nil {
		b.Fatal(err)
	}
	return rows[0]
}

// letter sends what index sends for an event that the sink refused for good, and lets dlq park
// it.
func (b *bench) letter(m queue.Message, reason deadletter.Reason) string {
	b.Helper()
	var e event.Event
	if r := b.sources.Decode(m)[0]; r.Invalid == nil {
		e = r.Event
	}
	l := deadletter.New(m, reason, "mapper_parsing_exception: field title", e.Doc, e.Key, e.Index, time.Now())
	l.Sink, l.Lane = "search", "live"
	out, err := l.Message()
	if err != nil {
		b.Fatal(err)
	}
	if err := queue.ErrorAt(b.dead.Send(b.Context(), []queue.Outgoing{out}), 0); err != nil {
		b.Fatal(err)
	}
	ms, err := b.dead.Receive(b.Context(), 10, 0)
	if err != nil || len(ms) != 1 {
		b.Fatalf("received %d dead letters, error %v", len(ms), err)
	}
	if kept := b.dlq.Handle(b.Context(), ms); len(kept) != 0 {
		b.Fatalf("dlq kept %v", kept)
	}
	b.dead.Delete(b.Context(), []string{ms[0].Receipt})
	return l.ID
}

// die is the whole life of a version that the sink refuses: admitted, claimed, its dead letter
// parked, rejected.
func (b *bench) die(m queue.Message) string {
	b.Helper()
	e := b.event(m)
	b.admit(e)
	l := b.claim(e)
	id := b.letter(m, deadletter.RejectedBySink)
	b.reject(l)
	return id
}

// one redrives one dead letter and checks what became of it.
func (b *bench) one(id string, how redrive.How, want redrive.Outcome) {
	b.Helper()
	got, err := b.service.One(b.Context(), id, how)
	if err != nil || got != want {
		b.Errorf("redrive: got %s, error %v; want %s", got, err, want)
	}
}

// facts are what is kept of a dead letter; ok says whether it is.
func (b *bench) facts(id string) (deadletter.Facts, bool) {
	b.Helper()
	l, ok, err := b.letters.Get(b.Context(), id)
	if err != nil {
		b.Fatal(err)
	}
	return l.Facts, ok
}

// received takes everything out of a queue.
func (b *bench) received(q *memory.Queue) []queue.Message {
	b.Helper()
	ms, err := q.Receive(b.Context(), 1000, 0)
	if err != nil {
		b.Fatal(err)
	}
	for _, m := range ms {
		q.Delete(b.Context(), []string{m.Receipt})
	}
	return ms
}

func ids(facts []deadletter.Facts) string {
	var out []string
	for _, f := range facts {
		out = append(out, f.Doc.ID())
	}
	return strings.Join(out, " ")
}
