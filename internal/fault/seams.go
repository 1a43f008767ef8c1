// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/pipeline/archive"
	"github.com/lullhq/lull/internal/pipeline/objects"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/seam/schedule"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// ask performs a call that returns one value.
func ask[T any](ctx context.Context, v *Invocation, op Op, f func(context.Context) (T, error)) (answer T, err error) {
	if v.Carry != nil {
		return askCarried(ctx, v, op, f)
	}
	verdict, err := v.decide(ctx, op)
	if err != nil {
		return answer, err
	}
	answer, err = f(ctx)
	return answer, v.outcome(verdict, err)
}

// askCarried is ask if Carry calls f, perhaps after the caller has stopped waiting. Only then the
// answer needs memory of its own.
func askCarried[T any](ctx context.Context, v *Invocation, op Op, f func(context.Context) (T, error)) (answer T,
	err error,
) {
	err = v.Do(ctx, op, func(ctx context.Context) (err error) {
		answer, err = f(ctx)
		return err
	})
	return answer, err
}

// askTwo performs a call that returns two values, such as a page of a list and its cursor.
func askTwo[A, B any](ctx context.Context, v *Invocation, op Op, f func(context.Context) (A, B, error)) (one A, two B,
	err error,
) {
	err = v.Do(ctx, op, func(ctx context.Context) (err error) {
		one, two, err = f(ctx)
		return err
	})
	return one, two, err
}

// Shards returns the store as this invocation sees it.
func (v *Invocation) Shards(s shard.Store) shard.Store { return shards{v, s} }

type shards struct {
	v *Invocation
	s shard.Store
}

func (d shards) Read(ctx context.Context, docs []shard.DocID, c shard.Consistency) ([]shard.Row, error) {
	op := Op{Service: Table, Call: "Read", Count: len(docs)}
	return ask(ctx, d.v, op, func(ctx context.Context) ([]shard.Row, error) { return d.s.Read(ctx, docs, c) })
}

func (d shards) Write(ctx context.Context, w shard.Write) (shard.Row, error) {
	op := Op{Service: Table, Call: w.Transition.String(), Transition: w.Transition, Doc: w.Doc, Count: 1}
	return ask(ctx, d.v, op, func(ctx context.Context) (shard.Row, error) { return d.s.Write(ctx, w) })
}

// Scanner returns the store's scanner as this invocation sees it.
func (v *Invocation) Scanner(s shard.Scanner) shard.Scanner { return scanner{v, s} }

type scanner struct {
	v *Invocation
	s shard.Scanner
}

func (d scanner) Scan(ctx context.Context, segment, segments int, cursor string, limit int) ([]shard.Row, string,
	error,
) {
	return askTwo(ctx, d.v, Op{Service: Table, Call: "Scan", Count: limit},
		func(ctx context.Context) ([]shard.Row, string, error) {
			return d.s.Scan(ctx, segment, segments, cursor, limit)
		})
}

// Queue returns the queue as this invocation sees it. A failure affects a whole batch call of ten
// messages, as on SQS.
func (v *Invocation) Queue(q queue.Queue) queue.Queue { return queues{v, q} }

type queues struct {
	v *Invocation
	q queue.Queue
}

func (d queues) Send(ctx context.Context, out []queue.Outgoing) []error {
	return batches(ctx, d, "SendMessageBatch", out, d.q.Send)
}

func (d queues) Hold(ctx context.Context, receipts []string, dur time.Duration) []error {
	return batches(ctx, d, "ChangeMessageVisibilityBatch", receipts,
		func(ctx context.Context, b []string) []error { return d.q.Hold(ctx, b, dur) })
}

func (d queues) Delete(ctx context.Context, receipts []string) []error {
	return batches(ctx, d, "DeleteMessageBatch", receipts, d.q.Delete)
}

func batches[T any](ctx context.Context, d queues, call string, in []T,
	f func(context.Context, []T) []error,
) []error {
	op := Op{Service: SQS, Call: call}
	if named, ok := d.q.(interface{ QueueName() string }); ok {
		op.Queue = named.QueueName()
	}
	all := make([]error, 0, len(in))
	for part := range slices.Chunk(in, queue.MaxEntries) {
		op.Count = len(part)
		errs, err := ask(ctx, d.v, op,
			func(ctx context.Context) ([]error, error) { return f(ctx, part), nil })
		for i := range part {
			if err != nil {
				all = append(all, err)
			} else {
				all = append(all, queue.ErrorAt(errs, i))
			}
		}
	}
	return queue.Answer(all)
}

// Flights returns the flight store as this invocation sees it.
func (v *Invocation) Flights(s flight.Store) flight.Store { return flights{v, s} }

type flights struct {
	v *Invocation
	s flight.Store
}

func (d flights) op(call string, id flight.ID) Op {
	return Op{Service: Bucket, Call: call, Flight: string(id), Count: 1}
}

func (d flights) Put(ctx context.Context, m *flight.Manifest) error {
	sent := *m // the caller may change m while the request is under way
	return d.v.Do(ctx, d.op("PutManifest", m.Flight), func(ctx context.Context) error { return d.s.Put(ctx, &sent) })
}

func (d flights) Get(ctx context.Context, id flight.ID) (*flight.Manifest, error) {
	return ask(ctx, d.v, d.op("GetManifest", id),
		func(ctx context.Context) (*flight.Manifest, error) { return d.s.Get(ctx, id) })
}

func (d flights) Continue(ctx context.Context, id flight.ID, n int, s flight.State) (bool, error) {
	s.Remaining = s.Remaining.Clone()
	return ask(ctx, d.v, d.op("PutNext", id),
		func(ctx context.Context) (bool, error) { return d.s.Continue(ctx, id, n, s) })
}

func (d flights) Delete(ctx context.Context, id flight.ID) error {
	return d.v.Do(ctx, d.op("DeleteManifest", id), func(ctx context.Context) error { return d.s.Delete(ctx, id) })
}

func (d flights) List(ctx context.Context, cursor string, limit int) ([]flight.Stored, string, error) {
	return askTwo(ctx, d.v, d.op("ListFlights", ""),
		func(ctx context.Context) ([]flight.Stored, string, error) { return d.s.List(ctx, cursor, limit) })
}

// Archive returns the archive as this invocation sees it.
func (v *Invocation) Archive(w archive.Writer) archive.Writer { return archives{v, w} }

type archives struct {
	v *Invocation
	w archive.Writer
}

func (d archives) Put(ctx context.Context, n archive.Name, object []byte) error {
	return d.v.Do(ctx, Op{Service: Bucket, Call: "PutArchive", Count: 1},
		func(ctx context.Context) error { return d.w.Put(ctx, n, object) })
}

// Objects returns a function that opens objects of many documents as this invocation sees them.
// Reading an open object has no further faults.
func (v *Invocation) Objects(open objects.Open) objects.Open {
	return func(ctx context.Context, bucket, key, etag string, from int64) (in io.ReadCloser, err error) {
		err = v.Do(ctx, Op{Service: Bucket, Call: "GetObject", Count: 1}, func(ctx context.Context) (err error) {
			in, err = open(ctx, bucket, key, etag, from)
			return err
		})
		if err != nil && in != nil {
			_ = in.Close() // the answer is lost, so the caller cannot close the object
			in = nil
		}
		return in, err
	}
}

// Launcher returns the launcher as this invocation sees it.
func (v *Invocation) Launcher(l flight.Launcher) flight.Launcher { return launcher{v, l} }

type launcher struct {
	v *Invocation
	l flight.Launcher
}

func (d launcher) Start(ctx context.Context, s flight.State) error {
	s.Remaining = s.Remaining.Clone()
	op := Op{Service: States, Call: "StartExecution", Flight: string(s.Flight), Count: 1}
	return d.v.Do(ctx, op, func(ctx context.Context) error { return d.l.Start(ctx, s) })
}

// Sink returns the sink as this invocation sees it. A failed request leaves every outcome unknown.
// A throttled request returns status 429 for each item.
func (v *Invocation) Sink(s sink.Sink) sink.Sink { return sinks{v, s} }

type sinks struct {
	v *Invocation
	s sink.Sink
}

// RetryAfter is the wait that a throttled sink asks for.
const RetryAfter = time.Second

func (d sinks) Write(ctx context.Context, ops []sink.Op) []sink.Outcome {
	out, err := ask(ctx, d.v, Op{Service: Search, Call: Bulk, Count: len(ops)},
		func(ctx context.Context) ([]sink.Outcome, error) { return d.write(ctx, ops), nil })
	if err == nil {
		return out
	}
	o := sink.Outcome{Kind: sink.Unknown, Reason: "injected"}
	if errors.Is(err, errThrottled) {
		o = sink.Outcome{Kind: sink.Throttled, Status: 429, RetryAfter: RetryAfter, Reason: "injected"}
	}
	return slices.Repeat([]sink.Outcome{o}, len(ops))
}

// write writes the documents that the invocation's Refuses does not refuse.
func (d sinks) write(ctx context.Context, ops []sink.Op) []sink.Outcome {
	if d.v.Refuses == nil || !slices.ContainsFunc(ops, d.v.Refuses) {
		return d.s.Write(ctx, ops)
	}
	out := make([]sink.Outcome, len(ops))
	var taken []sink.Op
	var at []int
	for i, op := range ops {
		out[i] = sink.Outcome{Kind: sink.Rejected, Status: 400, Reason: "injected"}
		if !d.v.Refuses(op) {
			taken, at = append(taken, op), append(at, i)
		}
	}
	if len(taken) > 0 {
		for i, o := range d.s.Write(ctx, taken) {
			out[at[i]] = o
		}
	}
	return out
}

// Get reads a document from the sink, if the sink supports that.
func (d sinks) Get(ctx context.Context, doc shard.DocID) (sink.Stored, bool, error) {
	r, ok := d.s.(interface {
		Get(ctx context.Context, doc shard.DocID) (sink.Stored, bool, error)
	})
	if !ok {
		return sink.Stored{}, false, sink.ErrDenied
	}
	return askTwo(ctx, d.v, Op{Service: Search, Call: "_mget", Doc: doc, Count: 1},
		func(ctx context.Context) (sink.Stored, bool, error) { return r.Get(ctx, doc) })
}

// Sample returns the id of some document, if the sink supports that.
func (d sinks) Sample(ctx context.Context, c shard.Collection) (shard.DocID, bool, error) {
	sampler, ok := d.s.(sink.Sampler)
	if !ok {
		return "", false, nil
	}
	return askTwo(ctx, d.v, Op{Service: Search, Call: "_search", Count: 1},
		func(ctx context.Context) (shard.DocID, bool, error) { return sampler.Sample(ctx, c) })
}

// Generation returns the generation of an index, if the sink supports that.
func (d sinks) Generation(ctx context.Context, c shard.Collection) (string, error) {
	g, ok := d.s.(sink.Generator)
	if !ok {
		return "", nil
	}
	return ask(ctx, d.v, Op{Service: Search, Call: "_settings", Count: 1},
		func(ctx context.Context) (string, error) { return g.Generation(ctx, c) })
}

// Into returns a new index, if the sink supports it. Requests to the new index count as requests to
// the sink.
func (d sinks) Into(c shard.Collection, index string) sink.Sink {
	if m, ok := d.s.(sink.Mirror); ok {
		return sinks{d.v, m.Into(c, index)}
	}
	return nowhere{}
}

// nowhere replaces the new index of a sink that does not support a new index.
type nowhere struct{}

func (nowhere) Write(_ context.Context, ops []sink.Op) []sink.Outcome {
	return slices.Repeat([]sink.Outcome{{Kind: sink.Configuration, Reason: "no_second_index"}}, len(ops))
}

func (nowhere) Ping(context.Context) error { return sink.ErrDenied }

func (d sinks) Ping(ctx context.Context) error {
	return d.v.Do(ctx, Op{Service: Search, Call: "ping", Count: 1}, d.s.Ping)
}

// DeadLetters returns the store of dead letters as this invocation sees it.
func (v *Invocation) DeadLetters(s deadletter.Store) deadletter.Store { return letters{v, s} }

type letters struct {
	v *Invocation
	s deadletter.Store
}

func (d letters) Park(ctx context.Context, l deadletter.Letter) (deadletter.Parking, error) {
	return ask(ctx, d.v, Op{Service: Bucket, Call: "PutLetter", Doc: l.Doc, Count: 1},
		func(ctx context.Context) (deadletter.Parking, error) { return d.s.Park(ctx, l) })
}

func (d letters) Message(ctx context.Context, hash string) ([]deadletter.Facts, error) {
	return ask(ctx, d.v, Op{Service: Table, Call: "ListMessage", Count: 1},
		func(ctx context.Context) ([]deadletter.Facts, error) { return d.s.Message(ctx, hash) })
}

func (d letters) Get(ctx context.Context, id string) (deadletter.Letter, bool, error) {
	return askTwo(ctx, d.v, Op{Service: Bucket, Call: "GetLetter", Count: 1},
		func(ctx context.Context) (deadletter.Letter, bool, error) { return d.s.Get(ctx, id) })
}

func (d letters) List(ctx context.Context, f deadletter.Filter, cursor string, limit int) ([]deadletter.Facts, string,
	error,
) {
	return askTwo(ctx, d.v, Op{Service: Table, Call: "ListLetters", Count: limit},
		func(ctx context.Context) ([]deadletter.Facts, string, error) { return d.s.List(ctx, f, cursor, limit) })
}

func (d letters) Parked(ctx context.Context, forgotten time.Time, atMost int) (int, bool, error) {
	return askTwo(ctx, d.v, Op{Service: Table, Call: "CountLetters", Count: 1},
		func(ctx context.Context) (int, bool, error) { return d.s.Parked(ctx, forgotten, atMost) })
}

func (d letters) MarkRedriven(ctx context.Context, id string, at time.Time, auto bool) error {
	return d.v.Do(ctx, Op{Service: Table, Call: "MarkRedriven", Count: 1},
		func(ctx context.Context) error { return d.s.MarkRedriven(ctx, id, at, auto) })
}

func (d letters) Drop(ctx context.Context, id string) error {
	return d.v.Do(ctx, Op{Service: Table, Call: "DropLetter", Count: 1},
		func(ctx context.Context) error { return d.s.Drop(ctx, id) })
}

// Schedule returns the schedule store as this invocation sees it.
func (v *Invocation) Schedule(s schedule.Store) schedule.Store { return schedules{v, s} }

type schedules struct {
	v *Invocation
	s schedule.Store
}

func (d schedules) Put(ctx context.Context, it schedule.Item) error {
	return d.v.Do(ctx, Op{Service: Bucket, Call: "PutScheduled", Doc: it.Doc, Count: 1},
		func(ctx context.Context) error { return d.s.Put(ctx, it) })
}

func (d schedules) Due(ctx context.Context, until time.Time, cursor string, limit int) ([]schedule.Item, string,
	error,
) {
	return askTwo(ctx, d.v, Op{Service: Table, Call: "ListScheduled", Count: limit},
		func(ctx context.Context) ([]schedule.Item, string, error) { return d.s.Due(ctx, until, cursor, limit) })
}

func (d schedules) List(ctx context.Context, doc shard.DocID, cursor string, limit int) ([]schedule.Item, string,
	error,
) {
	return askTwo(ctx, d.v, Op{Service: Table, Call: "ListScheduled", Count: limit},
		func(ctx context.Context) ([]schedule.Item, string, error) { return d.s.List(ctx, doc, cursor, limit) })
}

func (d schedules) Get(ctx context.Context, id string) (schedule.Item, bool, error) {
	return askTwo(ctx, d.v, Op{Service: Bucket, Call: "GetScheduled", Count: 1},
		func(ctx context.Context) (schedule.Item, bool, error) { return d.s.Get(ctx, id) })
}

func (d schedules) Delete(ctx context.Context, id string) error {
	return d.v.Do(ctx, Op{Service: Table, Call: "DeleteScheduled", Count: 1},
		func(ctx context.Context) error { return d.s.Delete(ctx, id) })
}
