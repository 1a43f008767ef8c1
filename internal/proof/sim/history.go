package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/local/fault"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// History is what callers asked and what they heard, of every document's row and of the sink: for a
// check of linearizability.
type History struct {
	Rows  []RowCall
	Sinks []SinkCall
}

// Span is whose a call is and when it was. Its moments are numbers of which no two are the same.
type Span struct {
	Client       int64
	Call, Return int64 // Return is 0 where no answer came
	Done         int64 // when the service carried it out, 0 where it never did
}

// RowCall is one conditional write or one consistent read, as its caller saw it.
type RowCall struct {
	Span
	Write   shard.Write // its Doc alone for a read
	Read    bool
	Row     shard.Row // what the answer showed: the row before, a refusal's image, what was read
	Refused bool
}

// SinkCall is one document's part of a bulk request, or a search that finds it.
type SinkCall struct {
	Span
	Doc   shard.DocID
	Read  bool
	Key   shard.OrderKey // written
	Kind  shard.Operation
	Found string // the printed key that a search found, empty for nothing
}

// recorder keeps the history of a world, where the options ask for it.
type recorder struct {
	w     *World
	on    bool
	clock int64
	all   History
}

func (r *recorder) tick() int64 {
	r.clock++
	return r.clock
}

// callKey finds, in a request's context, where its calls stand in the history.
type callKey struct{}

// done notes that the n-th call of a request is being carried out.
func (r *recorder) done(ctx context.Context, n int) {
	switch at := ctx.Value(callKey{}).(type) {
	case rowAt:
		r.all.Rows[at].Done = r.tick()
	case sinkAt:
		r.all.Sinks[int(at)+n].Done = r.tick()
	}
}

// rowAt and sinkAt are places in a History.
type (
	rowAt  int
	sinkAt int
)

// shards is the table as an invocation sees it, with what it asks and hears written down.
func (r *recorder) shards(v *invocation, s shard.Store) shard.Store {
	if !r.on {
		return s
	}
	return recordedStore{r, v, s}
}

type recordedStore struct {
	r *recorder
	v *invocation
	shard.Store
}

func (s recordedStore) Write(ctx context.Context, w shard.Write) (shard.Row, error) {
	if !w.Doc.IsDocument() {
		return s.Store.Write(ctx, w)
	}
	n := len(s.r.all.Rows)
	s.r.all.Rows = append(s.r.all.Rows, RowCall{Span: Span{Client: s.v.ID, Call: s.r.tick()}, Write: w})
	old, err := s.Store.Write(context.WithValue(ctx, callKey{}, rowAt(n)), w)
	call := &s.r.all.Rows[n]
	call.Row = old
	refused, isRefused := shard.AsRefused(err)
	switch {
	case isRefused:
		call.Refused, call.Row = true, refused.Row
		call.Return = s.r.tick()
	case err == nil:
		call.Return = s.r.tick()
	}
	return old, err
}

func (s recordedStore) Read(ctx context.Context, docs []shard.DocID, c shard.Consistency) ([]shard.Row, error) {
	at := s.r.tick()
	rows, err := s.Store.Read(ctx, docs, c)
	if err != nil || c == shard.Eventual {
		return rows, err
	}
	for i, doc := range docs {
		if doc.IsDocument() {
			s.r.all.Rows = append(s.r.all.Rows, RowCall{
				Span:  Span{Client: s.v.ID, Call: at, Return: s.r.tick()},
				Write: shard.Write{Doc: doc}, Read: true, Row: rows[i],
			})
		}
	}
	return rows, err
}

// sink is the sink of a pipe as an invocation sees it, with what it asks and hears written down.
func (r *recorder) sink(v *invocation, p *pipe) sink.Sink {
	s := v.Sink(engineClient{engineReader{v, p.engine}})
	if !r.on {
		return s
	}
	return recordedSink{r, v, asked(s)}
}

// readable is a sink that index may ask what it holds: every one of a world, so that one around it
// passes that on.
type readable interface {
	sink.Sink
	sink.Sampler
	sink.Generator
	Get(ctx context.Context, doc shard.DocID) (sink.Stored, bool, error)
}

// asked is a sink of a world.
func asked(s sink.Sink) readable {
	r, ok := s.(readable)
	if !ok {
		panic(fmt.Sprintf("a %T cannot be read", s))
	}
	return r
}

type recordedSink struct {
	r *recorder
	v *invocation
	readable
}

func (s recordedSink) Write(ctx context.Context, ops []sink.Op) []sink.Outcome {
	at := s.r.tick()
	first := len(s.r.all.Sinks)
	for _, op := range ops {
		s.r.all.Sinks = append(s.r.all.Sinks, SinkCall{
			Span: Span{Client: s.v.ID, Call: at}, Doc: op.Doc, Key: op.Key, Kind: op.Kind,
		})
	}
	out := s.readable.Write(context.WithValue(ctx, callKey{}, sinkAt(first)), ops)
	for i := range ops {
		if len(out) == len(ops) && out[i].Kind == sink.Applied {
			s.r.all.Sinks[first+i].Return = s.r.tick()
		}
	}
	return out
}

// searching is somebody who looks documents up from time to time.
func (r *recorder) searching() {
	const every = 700 * time.Millisecond
	w := r.w
	if w.now > w.options.Upstream.Calm+2*time.Minute {
		return // little happens from now on
	}
	w.after(w.dice.upTo(every), r.searching)
	docs := w.oracle.sorted()
	docs = slices.DeleteFunc(docs, func(d shard.DocID) bool { return !d.IsDocument() })
	if len(docs) == 0 {
		return
	}
	call := SinkCall{Doc: docs[w.dice.IntN(len(docs))], Read: true}
	call.Client = -1 - r.clock
	call.Call = r.tick()
	w.after(w.travel(fault.Search), func() {
		stored, _, _ := w.pipeOf(call.Doc).engine.docs.Get(background, call.Doc) // fails only with its context
		call.Found = stored.Key
		w.after(w.travel(fault.Search), func() {
			call.Return = r.tick()
			call.Done = call.Return
			r.all.Sinks = append(r.all.Sinks, call)
		})
	})
}

// History is what was recorded, where the options asked for it.
func (w *World) History() History { return w.history.all }

// HasDied reports whether any version of a document was a dead letter: what the sink holds then
// depends on what it refused.
func (w *World) HasDied(doc shard.DocID) bool {
	for _, e := range w.oracle.events {
		if e.doc == doc && e.died {
			return true
		}
	}
	return false
}
