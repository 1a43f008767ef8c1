// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/pipeline/index"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// panicky is a source whose projection has a bug: it panics with the document.
type panicky struct{ index.Source }

func (p panicky) Document(m queue.Message, e event.Event) ([]byte, error) {
	if e.Doc == doc("bad") {
		panic("hunter2 " + e.Data)
	}
	return p.Source.Document(m, e)
}

// clumsy is a client that panics if a request contains a certain document.
type clumsy struct {
	sink.Sink
	together *int // requests with that document and others
}

func (c clumsy) Write(ctx context.Context, ops []sink.Op) []sink.Outcome {
	for _, op := range ops {
		if op.Doc == doc("bad") {
			if len(ops) > 1 {
				*c.together++
			}
			panic(fmt.Errorf("hunter2: %s", op.Document))
		}
	}
	return c.Sink.Write(ctx, ops)
}

func (b *bench) good(n int) (bodies []string) {
	for i := range n {
		bodies = append(bodies, put(fmt.Sprint("good-", i), 1))
	}
	return bodies
}

// silent checks that no note and no row contains the content of the document.
func (b *bench) silent() {
	b.Helper()
	for _, n := range b.Notes.All() {
		if strings.Contains(n.Detail+n.Stack, "hunter2") {
			b.Errorf("the note %s contains the document's content: %s", n.Step, n.Detail)
		}
	}
	if strings.Contains(b.Row(doc("bad")).LastError, "hunter2") {
		b.Errorf("the row contains the document's content: %s", b.Row(doc("bad")).LastError)
	}
}

func TestAProjectionThatPanicsCostsItsDocumentAlone(t *testing.T) {
	stage{}.play(t, func(b *bench) {
		b.sources = panicky{b.Sources}
		s := b.hold(append(b.good(5), put("bad", 1))...)
		s = b.turn(s)
		b.Noted(journal.Committed, 5)
		b.fly(s, 10)
		l := b.TakeLetters(b.dead)
		if len(l) != 1 || l[0].Reason != deadletter.Panic || l[0].Doc != doc("bad") ||
			l[0].Detail != "make the document: panic: string" {
			b.Fatalf("dead letters %+v, want one of the document", l)
		}
		if want := b.Config.Retry.MaxRefusals; len(b.Notes.Of(journal.Panicked)) != want {
			b.Errorf("%d tries, want %d", len(b.Notes.Of(journal.Panicked)), want)
		}
		b.requests(1, "nothing was sent for the document")
		b.inQueue(0)
		b.silent()
	})
}

func TestASinksClientThatPanicsCostsItsDocumentAlone(t *testing.T) {
	stage{}.play(t, func(b *bench) {
		together := 0
		b.through = func(s sink.Sink) sink.Sink { return clumsy{s, &together} }
		s := b.hold(append(b.good(20), put("bad", 1), put("bad", 2))...)
		s = b.turn(b.turn(s)) // first all documents together, and after the leases each alone
		b.Noted(journal.Committed, 20)
		if n := s.Panicked.Count(); n != 1 {
			b.Errorf("%d entries are sent alone the next time, want only the entry that failed again", n)
		}
		for turns := 2; b.dead.Counts().Total() == 0; turns++ {
			if turns > 12 {
				b.Fatalf("no dead letter after %d turns", turns)
			}
			s = b.turn(s)
		}
		l := b.TakeLetters(b.dead)
		if len(l) != 1 || l[0].Reason != deadletter.Panic || l[0].Key != b.key("bad", 2) {
			b.Fatalf("dead letters %+v, want one of the newest version", l)
		}
		if together != 1 {
			b.Errorf("%d requests with the document and others, want 1: each was alone after the first", together)
		}
		b.Noted(journal.CircuitOpened, 0)
		b.Noted(journal.DeadLettered, 1)
		b.Noted(journal.Panicked, 6)
		// A version that may be in the sink is not replaced by an older version.
		b.Noted(journal.Blocked, 1)
		b.turn(s)
		b.holds("bad", "")
		if r := b.Row(doc("bad")); r.Dead != b.key("bad", 2) || r.Claimed != r.Dead {
			b.Errorf("row %+v, want version 2 dead, and still claimed", r)
		}
		b.silent()
	})
}

// A panic of the client says nothing about a document that was only in the same request.
func TestNobodyDiesOfAnotherDocumentsPanic(t *testing.T) {
	stage{}.play(t, func(b *bench) {
		together := 0
		b.through = func(s sink.Sink) sink.Sink { return clumsy{s, &together} }
		for i := range 12 { // each time the bad document is sent together with other documents
			s := b.hold(put("bad", i+1), put(fmt.Sprint("good-", i), 1))
			for range 4 {
				if !s.Done {
					s = b.turn(s)
				}
			}
			b.holds(fmt.Sprint("good-", i), "1")
		}
		for _, l := range b.TakeLetters(b.dead) {
			if l.Doc != doc("bad") {
				b.Errorf("dead letter of %s", l.Doc)
			}
		}
	})
}

// mute is a client whose Ping panics.
type mute struct{ sink.Sink }

func (mute) Ping(context.Context) error { panic("hunter2") }

func TestAPanicOfAPingIsAnAnswerThatNeverCame(t *testing.T) {
	stage{}.play(t, func(b *bench) {
		b.through = func(s sink.Sink) sink.Sink { return mute{s} }
		s := b.hold(put("a", 1))
		b.Write(shard.Trip("search", now(), now().Add(time.Millisecond), 1))
		time.Sleep(time.Second)
		if s = b.turn(s); s.Done {
			b.Error("the flight ended, want it to stay")
		}
		b.Noted(journal.Panicked, 1)
		b.Noted(journal.CircuitClosed, 0)
		b.silent()
	})
}

func TestAPanicDoesNotEndAnOutageTurn(t *testing.T) {
	stage{}.play(t, func(b *bench) {
		together := 0
		b.through = func(s sink.Sink) sink.Sink { return clumsy{s, &together} }
		s := b.open(put("bad", 1), put("good", 1))
		b.away()
		s = b.turn(s)
		if s.Done || together != 1 {
			b.Errorf("done %v, %d requests, want the flight to continue after one request", s.Done, together)
		}
		b.Noted(journal.Panicked, 1)
	})
}

// counted is a source that counts how often a message is decoded.
type counted struct {
	index.Source
	n *atomic.Int32
}

func (c counted) DecodeContext(ctx context.Context, m queue.Message) []event.Result {
	c.n.Add(1)
	return c.Source.DecodeContext(ctx, m)
}

// A message with hundreds of events used to be decoded hundreds of times in every turn.
func TestAMessageOfManyEventsIsDecodedOnceInATurn(t *testing.T) {
	stage{}.play(t, func(b *bench) {
		var n atomic.Int32
		b.sources = counted{b.Sources, &n}
		var records []string
		for i := range 300 {
			records = append(records, fmt.Sprintf(`{"basicProperties":{},"data":%q}`,
				base64.StdEncoding.EncodeToString([]byte(put(fmt.Sprint(i), 1)))))
		}
		s := b.hold(`{"rmqMessagesByQueue":{"q::/":[` + strings.Join(records, ",") + `]}}`)
		s = b.turn(s)
		b.Noted(journal.Committed, 300)
		if got := n.Load(); got != 1 || !s.Done {
			b.Errorf("decoded %d times, done %v; want once", got, s.Done)
		}
	})
}
