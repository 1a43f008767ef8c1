package fault

import (
	"context"
	"errors"
	"time"

	"github.com/lullhq/lull/internal/deadletter"
	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/internal/schedule"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

var errThrottled = errors.New("injected fault: throttled")

// Shards is the store as this invocation sees it.
func (v *Invocation) Shards(s shard.Store) shard.Store { return shards{v, s} }

type shards struct {
	v *Invocation
	s shard.Store
}

func (d shards) Read(ctx context.Context, docs []shard.DocID, c shard.Consistency) (rows []shard.Row, err error) {
	op := Op{Service: Table, Call: "Read", Count: len(docs)}
	err = d.v.do(ctx, op, shard.ErrThrottled, func() (err error) {
		rows, err = d.s.Read(ctx, docs, c)
		return err
	})
	return rows, err
}

func (d shards) Write(ctx context.Context, w shard.Write) (old shard.Row, err error) {
	op := Op{Service: Table, Call: w.Transition.String(), Transition: w.Transition, Doc: w.Doc, Count: 1}
	err = d.v.do(ctx, op, shard.ErrThrottled, func() (err error) {
		old, err = d.s.Write(ctx, w)
		return err
	})
	return old, err
}

// Scanner is the store's scan as this invocation sees it.
func (v *Invocation) Scanner(s shard.Scanner) shard.Scanner { return scanner{v, s} }

type scanner struct {
	v *Invocation
	s shard.Scanner
}

func (d scanner) Scan(ctx context.Context, segment, segments int, cursor string, limit int) (rows []shard.Row,
	next string, err error,
) {
	err = d.v.do(ctx, Op{Service: Table, Call: "Scan", Count: limit}, shard.ErrThrottled, func() (err error) {
		rows, next, err = d.s.Scan(ctx, segment, segments, cursor, limit)
		return err
	})
	return rows, next, err
}

// Queue is the queue as this invocation sees it. A fault concerns a whole batch call of ten, as on
// SQS.
func (v *Invocation) Queue(q queue.Queue) queue.Queue { return queues{v, q} }

type queues struct {
	v *Invocation
	q queue.Queue
}

func (d queues) Send(ctx context.Context, out []queue.Outgoing) []error {
	return batches(ctx, d.v, "SendMessageBatch", out, func(b []queue.Outgoing) []error { return d.q.Send(ctx, b) })
}

func (d queues) Hold(ctx context.Context, receipts []string, dur time.Duration) []error {
	return batches(ctx, d.v, "ChangeMessageVisibilityBatch", receipts,
		func(b []string) []error { return d.q.Hold(ctx, b, dur) })
}

func (d queues) Delete(ctx context.Context, receipts []string) []error {
	return batches(ctx, d.v, "DeleteMessageBatch", receipts, func(b []string) []error { return d.q.Delete(ctx, b) })
}

func batches[T any](ctx context.Context, v *Invocation, call string, in []T, f func([]T) []error) []error {
	var all []error
	for at := 0; at < len(in); at += queue.MaxEntries {
		part := in[at:min(at+queue.MaxEntries, len(in))]
		var errs []error
		err := v.do(ctx, Op{Service: SQS, Call: call, Count: len(part)}, errThrottled, func() error {
			errs = f(part)
			return nil
		})
		if err == nil && errs == nil {
			continue
		}
		if all == nil {
			all = make([]error, len(in))
		}
		for i := range part {
			if all[at+i] = queue.ErrorAt(errs, i); err != nil {
				all[at+i] = err
			}
		}
	}
	return all
}

// Flights is the flight store as this invocation sees it.
func (v *Invocation) Flights(s flight.Store) flight.Store { return flights{v, s} }

type flights struct {
	v *Invocation
	s flight.Store
}

func (d flights) op(call string, id flight.ID) Op {
	return Op{Service: Bucket, Call: call, Flight: string(id), Count: 1}
}

func (d flights) Put(ctx context.Context, m *flight.Manifest) error {
	return d.v.do(ctx, d.op("PutManifest", m.Flight), errThrottled, func() error { return d.s.Put(ctx, m) })
}

func (d flights) Get(ctx context.Context, id flight.ID) (m *flight.Manifest, err error) {
	err = d.v.do(ctx, d.op("GetManifest", id), errThrottled, func() (err error) {
		m, err = d.s.Get(ctx, id)
		return err
	})
	return m, err
}

func (d flights) Continue(ctx context.Context, id flight.ID, n int, s flight.State) (created bool, err error) {
	err = d.v.do(ctx, d.op("PutNext", id), errThrottled, func() (err error) {
		created, err = d.s.Continue(ctx, id, n, s)
		return err
	})
	return created, err
}

func (d flights) Delete(ctx context.Context, id flight.ID) error {
	return d.v.do(ctx, d.op("DeleteManifest", id), errThrottled, func() error { return d.s.Delete(ctx, id) })
}

func (d flights) List(ctx context.Context, cursor string, limit int) (list []flight.Stored, next string, err error) {
	err = d.v.do(ctx, d.op("ListFlights", ""), errThrottled, func() (err error) {
		list, next, err = d.s.List(ctx, cursor, limit)
		return err
	})
	return list, next, err
}

// Launcher is the launcher as this invocation sees it.
func (v *Invocation) Launcher(l flight.Launcher) flight.Launcher { return launcher{v, l} }

type launcher struct {
	v *Invocation
	l flight.Launcher
}

func (d launcher) Start(ctx context.Context, s flight.State) error {
	op := Op{Service: States, Call: "StartExecution", Flight: string(s.Flight), Count: 1}
	return d.v.do(ctx, op, errThrottled, func() error { return d.l.Start(ctx, s) })
}

// Sink is the sink as this invocation sees it. A request that fails leaves every outcome unknown; a
// throttled one is 429 for each item.
func (v *Invocation) Sink(s sink.Sink) sink.Sink { return sinks{v, s} }

type sinks struct {
	v *Invocation
	s sink.Sink
}

// RetryAfter is what a throttled sink asks for.
const RetryAfter = time.Second

func (d sinks) Write(ctx context.Context, ops []sink.Op) (out []sink.Outcome) {
	err := d.v.do(ctx, Op{Service: Search, Call: "_bulk", Count: len(ops)}, errThrottled, func() error {
		out = d.s.Write(ctx, ops)
		return nil
	})
	if err == nil {
		return out
	}
	o := sink.Outcome{Kind: sink.Unknown, Reason: "injected"}
	if errors.Is(err, errThrottled) {
		o = sink.Outcome{Kind: sink.Throttled, Status: 429, RetryAfter: RetryAfter, Reason: "injected"}
	}
	out = make([]sink.Outcome, len(ops))
	for i := range out {
		out[i] = o
	}
	return out
}

func (d sinks) Ping(ctx context.Context) error {
	return d.v.do(ctx, Op{Service: Search, Call: "ping", Count: 1}, errThrottled, func() error { return d.s.Ping(ctx) })
}

func (d sinks) Versions() bool { return d.s.Versions() }

// Letters is the letter store as this invocation sees it.
func (v *Invocation) Letters(s deadletter.Store) deadletter.Store { return letters{v, s} }

type letters struct {
	v *Invocation
	s deadletter.Store
}

func (d letters) Park(ctx context.Context, l deadletter.Letter) (fresh bool, err error) {
	err = d.v.do(ctx, Op{Service: Bucket, Call: "PutLetter", Doc: l.Doc, Count: 1}, errThrottled, func() (err error) {
		fresh, err = d.s.Park(ctx, l)
		return err
	})
	return fresh, err
}

func (d letters) Get(ctx context.Context, id string) (l deadletter.Letter, ok bool, err error) {
	err = d.v.do(ctx, Op{Service: Bucket, Call: "GetLetter", Count: 1}, errThrottled, func() (err error) {
		l, ok, err = d.s.Get(ctx, id)
		return err
	})
	return l, ok, err
}

func (d letters) List(ctx context.Context, f deadletter.Filter, cursor string, limit int) (list []deadletter.Facts,
	next string, err error,
) {
	err = d.v.do(ctx, Op{Service: Table, Call: "ListLetters", Count: limit}, errThrottled, func() (err error) {
		list, next, err = d.s.List(ctx, f, cursor, limit)
		return err
	})
	return list, next, err
}

func (d letters) MarkRedriven(ctx context.Context, id string, at time.Time, auto bool) error {
	op := Op{Service: Table, Call: "MarkRedriven", Count: 1}
	return d.v.do(ctx, op, errThrottled, func() error { return d.s.MarkRedriven(ctx, id, at, auto) })
}

func (d letters) Drop(ctx context.Context, id string) error {
	op := Op{Service: Table, Call: "DropLetter", Count: 1}
	return d.v.do(ctx, op, errThrottled, func() error { return d.s.Drop(ctx, id) })
}

// Schedule is the schedule store as this invocation sees it.
func (v *Invocation) Schedule(s schedule.Store) schedule.Store { return schedules{v, s} }

type schedules struct {
	v *Invocation
	s schedule.Store
}

func (d schedules) Put(ctx context.Context, it schedule.Item) error {
	op := Op{Service: Bucket, Call: "PutScheduled", Doc: it.Doc, Count: 1}
	return d.v.do(ctx, op, errThrottled, func() error { return d.s.Put(ctx, it) })
}

func (d schedules) Due(ctx context.Context, until time.Time, cursor string, limit int) (items []schedule.Item,
	next string, err error,
) {
	err = d.v.do(ctx, Op{Service: Table, Call: "ListScheduled", Count: limit}, errThrottled, func() (err error) {
		items, next, err = d.s.Due(ctx, until, cursor, limit)
		return err
	})
	return items, next, err
}

func (d schedules) Delete(ctx context.Context, id string) error {
	op := Op{Service: Table, Call: "DeleteScheduled", Count: 1}
	return d.v.do(ctx, op, errThrottled, func() error { return d.s.Delete(ctx, id) })
}
