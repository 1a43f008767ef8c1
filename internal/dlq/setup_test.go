package dlq_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/clock"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/deadletter"
	"github.com/lullhq/lull/internal/dlq"
	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/usecasetest"
	"github.com/lullhq/lull/source"
	_ "github.com/lullhq/lull/source/builtin"
)

// bench is dlq on the halves in memory, with virtual time.
type bench struct {
	*testing.T
	h                *dlq.Handler
	cfg              config.Config
	sources          *source.Set
	shards           *memory.Shards
	letters          *memory.DeadLetters
	live, bulk, dead *memory.Queue
	notes            usecasetest.Notes
}

// setup must run inside a synctest bubble, so that every clock is the bubble's.
func setup(t *testing.T, change func(*config.Config)) *bench {
	t.Helper()
	b := &bench{T: t, cfg: config.Default(), shards: memory.NewShards(), letters: memory.NewDeadLetters()}
	b.cfg.Sources["s3"] = config.Source{Kind: "s3"}
	b.cfg.Payload.Allow = []config.BucketPrefix{{Bucket: "b"}}
	b.cfg.DefaultSource = "native"
	if change != nil {
		change(&b.cfg)
	}
	b.cfg.Complete()
	var err error
	if b.sources, err = source.New(&b.cfg); err != nil {
		t.Fatal(err)
	}
	clk := clock.System{}
	b.dead = memory.NewQueue(clk, memory.QueueSettings{
		Name: "lull-search-dead", Visibility: 40 * time.Second,
		Retention: 14 * 24 * time.Hour,
	})
	ingest := memory.QueueSettings{
		Name: "lull-search-live", Visibility: 40 * time.Second,
		Retention: 7 * 24 * time.Hour, MaxReceiveCount: 1, DeadLetter: b.dead,
	}
	b.live = memory.NewQueue(clk, ingest)
	ingest.Name = "lull-search-bulk"
	b.bulk = memory.NewQueue(clk, ingest)
	b.h = &dlq.Handler{
		Shards: b.shards, Letters: b.letters, Sources: b.sources, Live: b.live, Bulk: b.bulk, Dead: b.dead,
		Config: &b.cfg, Sink: "search", Clock: clk, Journal: &b.notes,
	}
	return b
}

func body(id string, version int) string {
	return fmt.Sprintf(`{"type":"doc.changed","subject":%q,"sequence":"%d","data":{"title":"v%d"}}`, id, version,
		version)
}

// send sends a message to the lane and gives it back as received, once.
func (b *bench) send(q *memory.Queue, text string, attrs map[string]queue.Attribute) queue.Message {
	b.Helper()
	if err := queue.ErrorAt(q.Send(b.Context(), []queue.Outgoing{{Body: text, Attributes: attrs}}), 0); err != nil {
		b.Fatal(err)
	}
	return b.receive(q)
}

func (b *bench) receive(q *memory.Queue) queue.Message {
	b.Helper()
	ms, err := q.Receive(b.Context(), 1, 0)
	if err != nil || len(ms) != 1 {
		b.Fatalf("received %d messages from %s, error %v; want 1", len(ms), q.Name(), err)
	}
	return ms[0]
}

// move lets SQS move a message to the dead-letter queue by its receive count.
func (b *bench) move(q *memory.Queue, m queue.Message) {
	b.Helper()
	q.Hold(b.Context(), []string{m.Receipt}, 0)
	if ms, err := q.Receive(b.Context(), 1, 0); err != nil || len(ms) != 0 {
		b.Fatalf("received %d messages, error %v; want it to be moved", len(ms), err)
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

// handle gives everything visible in the dead-letter queue to the handler and deletes what it does
// not keep.
func (b *bench) handle() (kept []string) {
	b.Helper()
	ms, err := b.dead.Receive(b.Context(), 100, 0)
	if err != nil {
		b.Fatal(err)
	}
	kept = b.h.Handle(b.Context(), ms)
	if kept == nil {
		b.Error("answer is nil, want never")
	}
	for _, m := range ms {
		if !slices.Contains(kept, m.ID) {
			b.dead.Delete(b.Context(), []string{m.Receipt})
		}
	}
	return kept
}

func (b *bench) write(w shard.Write) shard.Row {
	b.Helper()
	old, err := b.shards.Write(b.Context(), w)
	if err != nil {
		b.Fatalf("%s: %v", w.Transition, err)
	}
	return w.Apply(old)
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
	row := b.row(e.Doc)
	b.write(shard.Claim(shard.Bid{
		Doc: l.Doc, Key: l.Key, Token: l.Token, Now: l.At, Until: l.At.Add(13 * time.Second),
		Again: row.Claimed == l.Key,
	}))
	return l
}

func (b *bench) commit(l shard.Lease) {
	b.Helper()
	b.write(shard.Commit(l, shard.Put, now(), b.cfg.Expires(time.Now()), b.row(l.Doc)))
}

func (b *bench) row(doc shard.DocID) shard.Row {
	b.Helper()
	rows, err := b.shards.Read(b.Context(), []shard.DocID{doc}, shard.Consistent)
	if err != nil {
		b.Fatal(err)
	}
	return rows[0]
}

func (b *bench) parked() []deadletter.Facts {
	b.Helper()
	all, next, err := b.letters.List(b.Context(), deadletter.Filter{}, "", 1000)
	if err != nil || next != "" {
		b.Fatalf("list dead letters: %v, next %q", err, next)
	}
	return all
}

// want checks how many dead letters are parked and how many messages are where.
func (b *bench) want(parked, live, dead int) {
	b.Helper()
	if got := len(b.parked()); got != parked {
		b.Errorf("%d dead letters are parked, want %d", got, parked)
	}
	if got := b.live.Counts().Total(); got != live {
		b.Errorf("%d messages in the live queue, want %d", got, live)
	}
	if got := b.dead.Counts().Total(); got != dead {
		b.Errorf("%d messages in the dead-letter queue, want %d", got, dead)
	}
}

// letterOf is what index sends for an event that the sink refused for good.
func (b *bench) letterOf(m queue.Message, e event.Event, reason deadletter.Reason) {
	b.Helper()
	l := deadletter.New(m, reason, "mapper_parsing_exception: field title", e.Doc, e.Key, e.Index, time.Now())
	l.Sink, l.Lane = "search", "live"
	out, err := l.Message()
	if err != nil {
		b.Fatal(err)
	}
	if err := queue.ErrorAt(b.dead.Send(b.Context(), []queue.Outgoing{out}), 0); err != nil {
		b.Fatal(err)
	}
}
