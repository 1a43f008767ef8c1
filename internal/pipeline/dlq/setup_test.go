// SPDX-License-Identifier: Apache-2.0

package dlq_test

import (
	"slices"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/pipeline/dlq"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/queue"
)

// bench runs dlq on the halves in memory, with virtual time.
type bench struct {
	*usecasetest.Rig
	h                *dlq.Handler
	live, bulk, dead *memory.Queue
}

var (
	put = usecasetest.Put
	now = usecasetest.Now
)

// stage changes the settings of a bench; nil changes nothing.
type stage func(*config.Config)

// play runs a story on a bench, in a synctest bubble.
func play(t *testing.T, change func(*config.Config), story func(b *bench)) {
	t.Helper()
	stage(change).play(t, story)
}

func (change stage) play(t *testing.T, story func(b *bench)) {
	t.Helper()
	usecasetest.Story(t, func(t *testing.T) { story(setup(t, change)) })
}

// setup must run inside a synctest bubble, so that every clock is the clock of the bubble.
func setup(t *testing.T, change func(*config.Config)) *bench {
	t.Helper()
	b := &bench{Rig: usecasetest.Open(t, func(c *config.Config) {
		c.Sources["s3"] = config.Source{Kind: "s3"}
		c.Payload.Allow = []config.BucketPrefix{{Bucket: "b"}}
		c.DefaultSource = "native"
		if change != nil {
			change(c)
		}
	})}
	clk := clock.System{}
	b.dead = b.Queue("lull-search-dead", 14*24*time.Hour)
	ingest := memory.QueueSettings{
		Name: "lull-search-live", Visibility: 40 * time.Second,
		Retention: 7 * 24 * time.Hour, MaxReceiveCount: 1, DeadLetter: b.dead,
	}
	b.live = memory.NewQueue(clk, ingest)
	ingest.Name = "lull-search-bulk"
	b.bulk = memory.NewQueue(clk, ingest)
	b.h = &dlq.Handler{
		Shards: b.Shards, Letters: b.Letters, Sources: b.Sources, Live: b.live, Bulk: b.bulk, Dead: b.dead,
		Config: &b.Config, Sink: "search", Clock: clk, Journal: &b.Notes,
	}
	return b
}

// send sends a message to a lane and returns the message as received once.
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

// move makes SQS move a message to the dead-letter queue by its receive count.
func (b *bench) move(q *memory.Queue, m queue.Message) {
	b.Helper()
	q.Hold(b.Context(), []string{m.Receipt}, 0)
	if ms, err := q.Receive(b.Context(), 1, 0); err != nil || len(ms) != 0 {
		b.Fatalf("received %d messages, error %v; want the message moved", len(ms), err)
	}
}

// handle gives all visible messages of the dead-letter queue to the handler. It deletes the
// messages that the handler does not keep.
func (b *bench) handle() (kept []string) {
	b.Helper()
	ms, err := b.dead.Receive(b.Context(), 100, 0)
	if err != nil {
		b.Fatal(err)
	}
	kept = b.h.Handle(b.Context(), ms)
	if kept == nil {
		b.Error("the answer is nil, want a list")
	}
	for _, m := range ms {
		if !slices.Contains(kept, m.ID) {
			b.dead.Delete(b.Context(), []string{m.Receipt})
		}
	}
	return kept
}

// keeps handles the visible messages and checks how many of them the answer keeps.
func (b *bench) keeps(want int, why string) {
	b.Helper()
	if kept := b.handle(); len(kept) != want {
		b.Fatalf("kept %v, want %d: %s", kept, want, why)
	}
}

func (b *bench) parked() []deadletter.Facts {
	b.Helper()
	all, next, err := b.Letters.List(b.Context(), deadletter.Filter{}, "", 1000)
	if err != nil || next != "" {
		b.Fatalf("list dead letters: %v, next %q", err, next)
	}
	return all
}

// one returns the only parked dead letter, which must have this reason.
func (b *bench) one(reason deadletter.Reason) deadletter.Facts {
	b.Helper()
	all := b.parked()
	if len(all) != 1 || all[0].Reason != reason {
		b.Fatalf("parked %+v, want one for %s", all, reason)
	}
	return all[0]
}

// sends puts a dead letter of a sink into the queue.
func (b *bench) sends(sink string, l deadletter.Letter) {
	b.Helper()
	l.Sink, l.Lane = sink, "live"
	out, err := l.Message()
	if err != nil {
		b.Fatal(err)
	}
	b.dead.Send(b.Context(), []queue.Outgoing{out})
}

// want checks the number of parked dead letters, and of messages in each queue.
func (b *bench) want(parked, live, dead int) {
	b.Helper()
	if got := len(b.parked()); got != parked {
		b.Errorf("%d dead letters are parked, want %d", got, parked)
	}
	b.InQueue(b.live, live, "of the live lane")
	b.InQueue(b.dead, dead, "of dead letters")
}
