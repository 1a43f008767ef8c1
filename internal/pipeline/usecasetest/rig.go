// SPDX-License-Identifier: Apache-2.0

package usecasetest

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/shard/shardtest"
	"github.com/lullhq/lull/source"
	_ "github.com/lullhq/lull/source/builtin" // the kinds that configurations name
)

// Rig is the base of the bench of every use case. It has rows and dead letters in memory, the
// sources, and methods that bring a row into a wanted state.
type Rig struct {
	*testing.T
	Config  config.Config
	Shards  *memory.Shards
	Letters *memory.DeadLetters
	Sources *source.Set
	Notes   Notes
}

// Story runs a story in a synctest bubble, in parallel to other tests.
func Story(t *testing.T, story func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, story)
}

// Table runs a story for every row of a table, in parallel. Each row has its own bench in its own
// synctest bubble. play opens the bench.
func Table[Bench, Row any](t *testing.T, play func(t *testing.T, story func(b Bench)), rows map[string]Row,
	story func(b Bench, row Row),
) {
	t.Helper()
	for name, row := range rows {
		t.Run(name, func(t *testing.T) { play(t, func(b Bench) { story(b, row) }) })
	}
}

// Open completes the default configuration after change has changed it; change may be nil. Call
// Open inside a synctest bubble, so that every clock is the clock of the bubble.
func Open(t *testing.T, change func(*config.Config)) *Rig {
	t.Helper()
	r := &Rig{T: t, Config: config.Default(), Shards: memory.NewShards(), Letters: memory.NewDeadLetters()}
	if change != nil {
		change(&r.Config)
	}
	for name, s := range r.Config.Sources { // every message of a test may name its source
		s.Match = append(s.Match, source.Match{Named: true})
		r.Config.Sources[name] = s
	}
	if _, ok := r.Config.Collections["content"]; !ok && len(r.Config.Collections) > 0 {
		r.Config.Collections["content"] = config.Collection{} // the events of a test may name this collection
	}
	r.Config.Complete()
	var err error
	if r.Sources, err = source.New(&r.Config); err != nil {
		t.Fatal(err)
	}
	return r
}

// OK ends the test if a step has failed that the test needs.
func OK(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Must is like OK, for a step with a result: v := Must(step())(t).
func Must[V any](v V, err error) func(t testing.TB) V {
	return func(t testing.TB) V {
		t.Helper()
		OK(t, err)
		return v
	}
}

// Queue makes a queue in memory with the configuration's visibility.
func (r *Rig) Queue(name string, retention time.Duration) *memory.Queue {
	return memory.NewQueue(clock.System{}, memory.QueueSettings{
		Name: name, Visibility: r.Config.Queues.Visibility, Retention: retention,
	})
}

// Put returns the body of a native event: one version of a document in the collection "content".
func Put(id string, version int) string {
	return fmt.Sprintf(`{"type":"doc.changed","subject":%q,"sequence":"%d","data":{"title":"v%d"}}`, id, version,
		version)
}

// Doc returns the id of a document in the collection "content".
func Doc(id any) shard.DocID { return shard.DocID(fmt.Sprint("content#", id)) }

// Now returns the time of the synctest bubble.
func Now() shard.Micros { return shard.MicrosOf(time.Now()) }

// Event decodes a message that has only one event.
func (r *Rig) Event(m queue.Message) event.Event {
	r.Helper()
	got := r.Sources.Decode(m)
	if len(got) != 1 || got[0].Invalid != nil || got[0].Skip != "" {
		r.Fatalf("decode: %+v", got)
	}
	return got[0].Event
}

// EventOf decodes a body that has only one event.
func (r *Rig) EventOf(body string) event.Event {
	r.Helper()
	return r.Event(queue.Message{Body: body})
}

// Row returns the row of a document, read consistently.
func (r *Rig) Row(doc shard.DocID) shard.Row {
	r.Helper()
	rows, err := r.Shards.Read(r.Context(), []shard.DocID{doc}, shard.Consistent)
	if err != nil {
		r.Fatal(err)
	}
	return rows[0]
}

// Write applies a write, which the row must accept.
func (r *Rig) Write(w shard.Write) {
	r.Helper()
	if _, err := r.Shards.Write(r.Context(), w); err != nil {
		r.Fatalf("%s: %v", w.Transition, err)
	}
}

// Change changes the row of a document with f.
func (r *Rig) Change(doc shard.DocID, f func(row *shard.Row)) {
	r.Helper()
	row := r.Row(doc)
	f(&row)
	r.Write(shardtest.Put(row))
}

// Admit admits an event into flight "f".
func (r *Rig) Admit(e event.Event) {
	r.Helper()
	r.Write(shard.Admit(shard.Admission{Doc: e.Doc, Key: e.Key, Class: e.Class, Flight: "f", Now: Now()}))
}

// Claim takes the lease of an event's version for 13 s.
func (r *Rig) Claim(e event.Event) shard.Lease {
	r.Helper()
	l := shard.Lease{Doc: e.Doc, Key: e.Key, Token: shard.Token(fmt.Sprint("token-", time.Now().UnixNano())), At: Now()}
	r.Write(shard.Claim(shard.Bid{
		Doc: l.Doc, Key: l.Key, Token: l.Token, Now: l.At, Until: l.At.Add(13 * time.Second),
		Again: r.Row(e.Doc).Claimed == l.Key,
	}))
	return l
}

// Commit ends a lease, as index does after the sink has the version.
func (r *Rig) Commit(l shard.Lease, op shard.Operation) {
	r.Helper()
	r.Write(shard.Commit(l, op, Now(), r.Config.Lifecycle.Expires(time.Now()), r.Row(l.Doc)))
}

// Take receives and deletes all visible messages of a queue.
func (r *Rig) Take(q *memory.Queue) []queue.Message {
	r.Helper()
	ms, err := q.Receive(r.Context(), 1000, 0)
	if err != nil {
		r.Fatal(err)
	}
	for _, m := range ms {
		q.Delete(r.Context(), []string{m.Receipt})
	}
	return ms
}

// TakeLetters receives and deletes all visible dead letters of a queue.
func (r *Rig) TakeLetters(dead *memory.Queue) []deadletter.Letter {
	r.Helper()
	var out []deadletter.Letter
	for _, m := range r.Take(dead) {
		l, err := deadletter.Read(m)
		if err != nil {
			r.Fatalf("read a dead letter: %v", err)
		}
		out = append(out, l)
	}
	return out
}

// WantLetters takes the visible dead letters and checks their number.
func (r *Rig) WantLetters(dead *memory.Queue, want int) {
	r.Helper()
	if l := r.TakeLetters(dead); len(l) != want {
		r.Errorf("dead letters %+v, want %d", l, want)
	}
}

// InQueue checks how many messages a queue has, visible or not.
func (r *Rig) InQueue(q *memory.Queue, want int, why string) {
	r.Helper()
	if got := q.Counts().Total(); got != want {
		r.Errorf("%d messages in the queue, want %d: %s", got, want, why)
	}
}

// SendLetter sends the dead letter that index sends for an event that it rejects.
func (r *Rig) SendLetter(dead *memory.Queue, m queue.Message, e event.Event, why deadletter.Reason) deadletter.Letter {
	r.Helper()
	l := deadletter.New(m, why, "mapper_parsing_exception: field title", e.Doc, e.Key, e.Index, time.Now())
	l.Sink, l.Lane = "search", "live"
	out, err := l.Message()
	if err != nil {
		r.Fatal(err)
	}
	if err := queue.ErrorAt(dead.Send(r.Context(), []queue.Outgoing{out}), 0); err != nil {
		r.Fatal(err)
	}
	return l
}

// Facts returns what is stored of a dead letter; ok says whether the dead letter is stored.
func (r *Rig) Facts(id string) (facts deadletter.Facts, ok bool) {
	r.Helper()
	l, ok, err := r.Letters.Get(r.Context(), id)
	if err != nil {
		r.Fatal(err)
	}
	return l.Facts, ok
}

// Noted checks how many notes of a step there are.
func (r *Rig) Noted(step journal.Step, want int) {
	r.Helper()
	if got := len(r.Notes.Of(step)); got != want {
		r.Errorf("%d notes %q, want %d", got, step, want)
	}
}
