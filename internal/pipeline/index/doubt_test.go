// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/memorysink"
)

// refuse is an answer that refuses a put with this kind of outcome.
func refuse(kind sink.OutcomeKind) memorysink.Answer {
	return memorysink.Answer{Outcome: sink.Outcome{
		Kind: kind, Status: 400, Apart: true, Reason: "illegal_argument_exception",
	}}
}

// reading is a sink from which no document can be read back.
type reading struct {
	sink.Sink
	err error
}

func (r reading) Get(context.Context, shard.DocID) (sink.Stored, bool, error) {
	return sink.Stored{}, false, r.err
}

// A refusal is the document's fault only if the index accepts another document that it accepted
// before.
func TestADocumentDiesOnlyOfWhatIsWrongWithIt(t *testing.T) {
	everything := func(sink.Op) bool { return true }
	version2 := func(op sink.Op) bool { return op.Version == "2" }
	tests := []struct {
		name    string
		kind    sink.OutcomeKind
		whole   bool               // the answer concerns the whole request
		refused func(sink.Op) bool // puts that are refused
		cfg     func(*config.Config)
		before  []string // documents whose version 1 is committed
		events  []string
		change  func(b *bench) // changes something after the commits
		dead    int            // number of events that become dead letters at once
		config  int            // number of alarms
		open    int            // number of times that the circuit opens
		asked   int64          // number of requests of the turn
	}{
		{
			name: "the index's fault", kind: sink.Rejected, refused: everything, before: []string{"a"},
			events: []string{put("a", 2), put("new", 1)}, config: 1, asked: 2,
		},
		{
			name: "the index's fault, refused without a class", kind: sink.Refused, refused: everything,
			before: []string{"a"}, events: []string{put("a", 2), put("new", 1)}, config: 1, asked: 2,
		},
		{
			name: "the cluster's fault", kind: sink.Refused, whole: true, refused: everything, before: []string{"a"},
			events: []string{put("a", 2), put("new", 1)}, config: 1, asked: 2, open: 1,
		},
		{
			name: "the fault of the only index there is", kind: sink.Rejected, refused: everything, before: []string{"a"},
			events: []string{put("a", 2)}, config: 1, asked: 2, open: 1,
			cfg: func(c *config.Config) { c.Collections = map[string]config.Collection{"content": {}} },
		},
		{
			name: "hostile updates of good documents", kind: sink.Rejected, refused: version2, before: []string{"a", "b"},
			events: []string{put("a", 2), put("b", 2), put("new", 2)}, dead: 3, asked: 2,
		},
		{
			name: "a good document of the same request shows that the index works", kind: sink.Rejected, refused: version2,
			before: []string{"a"}, events: []string{put("a", 2), put("good", 1)}, dead: 1, asked: 1,
		},
		{
			name: "nothing was committed before: the refusal is believed", kind: sink.Rejected, refused: everything,
			events: []string{put("new", 1)}, dead: 1, asked: 1,
		},
		{
			name: "the copy is gone: the refusal is believed", kind: sink.Rejected, refused: everything,
			before: []string{"a"}, events: []string{put("a", 2)}, dead: 1, asked: 1,
			change: func(b *bench) {
				b.sink.Write(b.Context(), []sink.Op{{Doc: doc("a"), Kind: shard.Delete, Fence: shard.Fence(now())}})
			},
		},
		{
			name: "reading is denied: the refusal is believed", kind: sink.Rejected, refused: everything,
			before: []string{"a"}, events: []string{put("a", 2)}, dead: 1, asked: 1,
			change: func(b *bench) { b.through = func(s sink.Sink) sink.Sink { return reading{s, sink.ErrDenied} } },
		},
		{
			name: "reading fails: no document becomes a dead letter", kind: sink.Rejected, refused: everything,
			before: []string{"a"}, events: []string{put("a", 2), put("new", 1)}, asked: 1,
			change: func(b *bench) {
				b.through = func(s sink.Sink) sink.Sink { return reading{s, errors.New("reset")} }
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			stage{cfg: tt.cfg}.play(t, func(b *bench) {
				for _, id := range tt.before {
					b.fly(b.hold(put(id, 1)), 2)
				}
				time.Sleep(time.Minute)
				if tt.change != nil {
					tt.change(b)
				}
				b.sink.SetRule(func(op sink.Op) (memorysink.Answer, bool) {
					answer := refuse(tt.kind)
					answer.Outcome.Apart = !tt.whole
					return answer, op.Kind == shard.Put && tt.refused(op)
				})
				before := b.sink.Counts().Requests
				s := b.turn(b.hold(tt.events...))
				b.requests(before+tt.asked, "one request with documents and one test request")
				b.Noted(journal.DeadLettered, tt.dead)
				b.Noted(journal.SinkConfiguration, tt.config)
				b.Noted(journal.CircuitOpened, tt.open)
				for _, id := range []string{"a", "new"} {
					if r := b.Row(doc(id)); r.Refusals != 0 || r.Owner != "" {
						b.Errorf("row of %s: %d refusals, owner %q", id, r.Refusals, r.Owner)
					}
				}
				if tt.dead > 0 {
					return
				}
				b.sink.SetRule(nil)
				b.through = func(s sink.Sink) sink.Sink { return s }
				b.delivers(s, 9, "a", "2")
				b.inQueue(0)
				b.Noted(journal.DeadLettered, 0)
			})
		})
	}
}

// If a document cannot be read back, the note names the row. It does so also if this sink is not
// the first sink of the row's collection.
func TestWhatCannotBeReadBackIsNamedByItsRow(t *testing.T) {
	stage{cfg: func(c *config.Config) {
		c.Sinks["first"] = c.Sinks["search"]
		c.Collections = map[string]config.Collection{"content": {Sinks: []string{"first", "search"}}}
	}}.play(t, func(b *bench) {
		b.Sources = b.Sources.At("search")
		b.fly(b.hold(put("a", 1)), 2)
		time.Sleep(time.Minute)
		b.through = func(s sink.Sink) sink.Sink { return reading{s, errors.New("reset")} }
		b.sink.SetRule(func(sink.Op) (memorysink.Answer, bool) { return refuse(sink.Rejected), true })
		b.turn(b.hold(put("a", 2)))
		if n := b.Notes.Of(journal.CallFailed); len(n) != 1 || n[0].Doc != doc("a").In("search") {
			b.Errorf("notes %+v, want one of %s", n, doc("a").In("search"))
		}
	})
}

// A turn sends at most one test request. A collection that is refused in a later request waits for
// the next turn.
func TestATurnAsksWhoseFaultItIsOnce(t *testing.T) {
	other := func(body string) string { return body[:len(body)-1] + `,"collection":"other"}` }
	stage{cfg: func(c *config.Config) {
		c.Collections["other"] = config.Collection{}
		c.DefaultCollection = "content"
	}}.play(t, func(b *bench) {
		b.fly(b.hold(put("a", 1), other(put("a", 1))), 2)
		time.Sleep(time.Minute)
		s := b.hold(put("a", 2), other(put("a", 2)))
		for _, d := range []shard.DocID{doc("a"), "other#a"} {
			b.Change(d, func(r *shard.Row) { r.Attempts = 3 }) // sent in a separate request
		}
		b.sink.SetRule(func(sink.Op) (memorysink.Answer, bool) { return refuse(sink.Rejected), true })
		before := b.sink.Counts().Requests
		b.turn(s)
		b.requests(before+3, "two requests with documents and one test request")
		b.Noted(journal.DeadLettered, 0)
	})
}

// If the copy gets no answer, the cause stays unknown. The lease of the copied document stays too,
// because a sink without versions may still apply the copy.
func TestACopyWithoutAnAnswerKeepsItsLease(t *testing.T) {
	stage{noVers: true}.play(t, func(b *bench) {
		b.fly(b.hold(put("a", 1)), 2)
		time.Sleep(time.Minute)
		b.sink.SetRule(func(op sink.Op) (memorysink.Answer, bool) {
			if op.Version == "1" && op.Doc == doc("a") {
				return memorysink.Answer{
					Outcome: sink.Outcome{Kind: sink.Unknown, Status: 503, Reason: "time-out"},
				}, true
			}
			return refuse(sink.Rejected), true
		})
		s := b.turn(b.hold(put("a", 2), put("new", 1)))
		b.Noted(journal.DeadLettered, 0)
		b.Noted(journal.OutcomeUnknown, 1)
		if a, other := b.Row(doc("a")), b.Row(doc("new")); a.Owner == "" || a.LeaseUntil <= now() || other.Owner != "" {
			b.Errorf("leases: got owner %q until %d, and owner %q of the other document; want a lease only for the copied document", a.Owner, a.LeaseUntil, other.Owner)
		}
		b.sink.SetRule(nil)
		b.delivers(s, 9, "a", "2")
		b.holds("new", "1")
	})
}

// A thousand hostile documents, new documents and updates, cost one test request per turn and never
// open the circuit.
func TestAThousandHostileDocumentsNeverOpenTheCircuit(t *testing.T) {
	stage{}.play(t, func(b *bench) {
		const n = 500
		good, bad := make([]string, n), make([]string, 2*n)
		for i := range n {
			good[i] = put(fmt.Sprint("d", i), 1)
			bad[i], bad[n+i] = put(fmt.Sprint("d", i), 2), put(fmt.Sprint("new", i), 2)
		}
		b.fly(b.hold(good...), 3)
		time.Sleep(time.Minute)
		b.sink.SetRule(func(op sink.Op) (memorysink.Answer, bool) { return refuse(sink.Rejected), op.Version == "2" })
		before := b.sink.Counts().Requests
		b.fly(b.hold(bad...), 1)
		b.requests(before+2, "one request with documents and one test request")
		b.Noted(journal.DeadLettered, 2*n)
		b.Noted(journal.CircuitOpened, 0)
		b.Noted(journal.SinkConfiguration, 0)
		b.holds("d7", "1")
	})
}

// If all documents of a request are new, lull tests a sink with versions with another document of
// the collection. Without versions lull must not write that document without its lease, so it
// believes the refusal.
func TestNewDocumentsAreJudgedByAnotherOne(t *testing.T) {
	for versions, dead := range map[bool]int{true: 0, false: 1} {
		t.Run(fmt.Sprint("versions ", versions), func(t *testing.T) {
			stage{noVers: !versions}.play(t, func(b *bench) {
				b.fly(b.hold(put("other", 1)), 2)
				time.Sleep(time.Minute)
				b.sink.SetRule(func(sink.Op) (memorysink.Answer, bool) { return refuse(sink.Rejected), true })
				s := b.turn(b.hold(put("new", 1)))
				b.Noted(journal.DeadLettered, dead)
				b.Noted(journal.SinkConfiguration, 1-dead)
				b.sink.SetRule(nil)
				b.fly(s, 3)
				if got := len(b.sink.History(doc("other"))); got != 1 {
					b.Errorf("the other document was written %d times, want 1", got)
				}
				if versions {
					b.holds("new", "1")
				}
			})
		})
	}
}

// The copy of another document overwrites nothing: if the document is deleted or written in the
// meantime, that change stays.
func TestASampleThatIsOutOfDateChangesNothing(t *testing.T) {
	stage{}.play(t, func(b *bench) {
		b.fly(b.hold(put("other", 1)), 2)
		time.Sleep(time.Minute)
		b.through = func(s sink.Sink) sink.Sink {
			gone := sink.Op{Doc: doc("other"), Kind: shard.Delete, Fence: shard.Fence(now())}
			return betweenReadAndWrite{b.sink, func() { s.Write(b.Context(), []sink.Op{gone}) }}
		}
		b.sink.SetRule(func(op sink.Op) (memorysink.Answer, bool) {
			return refuse(sink.Rejected), op.Doc == doc("new")
		})
		b.delivers(b.hold(put("new", 1)), 3, "other", "")
		b.Noted(journal.DeadLettered, 1) // the sink has a newer version of the other document, so the sink works
	})
}

// betweenReadAndWrite is a sink that calls do between the read and the write of a copy.
type betweenReadAndWrite struct {
	*memorysink.Sink
	do func()
}

func (m betweenReadAndWrite) Get(ctx context.Context, doc shard.DocID) (sink.Stored, bool, error) {
	s, there, err := m.Sink.Get(ctx, doc)
	m.do()
	return s, there, err
}

// partly is an index that does not return the field "vector". Mappings allow this.
type partly struct{ *memorysink.Sink }

func (p partly) Get(ctx context.Context, d shard.DocID) (sink.Stored, bool, error) {
	s, there, err := p.Sink.Get(ctx, d)
	s.Document = []byte(`{"title":"x"}`)
	return s, there, err
}

// An index may return less than it has. The test request must not change a document.
func TestTheQuestionChangesNoDocument(t *testing.T) {
	stage{}.play(t, func(b *bench) {
		b.fly(b.hold(put("a", 1)), 2)
		before, _, _ := b.sink.Get(b.Context(), doc("a"))
		time.Sleep(time.Minute)
		b.through = func(sink.Sink) sink.Sink { return partly{b.sink} }
		b.sink.SetRule(func(op sink.Op) (memorysink.Answer, bool) { return refuse(sink.Rejected), op.Version == "2" })
		b.turn(b.hold(put("a", 2)))
		b.requests(3, "the first version, the second version, and the test request")
		b.Noted(journal.DeadLettered, 1)
		if after, _, _ := b.sink.Get(b.Context(), doc("a")); string(after.Document) != string(before.Document) {
			t.Errorf("the sink holds %s, want %s", after.Document, before.Document)
		}
	})
}

// The first request of the turn has no known good document, and the second request has one.
func TestAWitnessOfALaterRequestIsAsked(t *testing.T) {
	stage{noVers: true}.play(t, func(b *bench) {
		b.fly(b.hold(put("a", 1)), 2)
		time.Sleep(time.Minute)
		b.sink.SetRule(func(op sink.Op) (memorysink.Answer, bool) {
			return refuse(sink.Rejected), op.Kind == shard.Put
		})
		s := b.hold(put("new", 1), put("a", 2))
		// the document is sent alone, after the other document
		b.Change(doc("a"), func(r *shard.Row) { r.Attempts = 3 })
		b.turn(s)
		if l := b.TakeLetters(b.dead); len(l) != 1 || l[0].Doc != doc("new") {
			b.Errorf("dead letters %+v, want one for the document that was sent before a known good document was there", l)
		}
		b.Noted(journal.SinkConfiguration, 1)
		b.holds("a", "1")
	})
}
