// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/aws/client"
	"github.com/lullhq/lull/internal/aws/dynamodb"
	"github.com/lullhq/lull/internal/aws/s3"
	"github.com/lullhq/lull/internal/aws/sqs"
	"github.com/lullhq/lull/internal/aws/stepfunctions"
	"github.com/lullhq/lull/internal/pipeline/index"
	"github.com/lullhq/lull/internal/pipeline/receive"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/fanout"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/opensearch"
	"github.com/lullhq/lull/source"
)

// workload is a list of receive batches. All messages are already due, so that nothing waits.
type workload struct {
	events  int
	docs    []shard.DocID
	batches [][]queue.Message
}

// newWorkload cuts bursts into batches in the same way as the trace of a scenario. The events of a
// burst are spread over A consecutive batches.
func newWorkload(bursts, burst, a, documentsPerBatch, round int) workload {
	w := workload{events: bursts * burst}
	sent := time.Now().Add(-20 * time.Second).Truncate(time.Millisecond)
	for first := 0; first < bursts; first += documentsPerBatch {
		parts := make([][]queue.Message, a)
		for d := first; d < min(first+documentsPerBatch, bursts); d++ {
			w.docs = append(w.docs, shard.DocID("content#"+docName(round*bursts+d)))
			for v := range burst {
				p := v * a / burst
				id := strconv.Itoa(round) + "-" + strconv.Itoa(d) + "-" + strconv.Itoa(v)
				parts[p] = append(parts[p], queue.Message{
					ID: id, Receipt: "AQEB" + id + filler[:120],
					Body: Event{Doc: round*bursts + d, Version: v + 1}.body(), Sent: sent, FirstReceived: sent,
					ReceiveCount: 1,
				})
			}
		}
		w.batches = append(w.batches, parts...)
	}
	return w
}

// worker processes a workload with real clients.
type worker interface {
	do(ctx context.Context, w workload) error
}

// lullWorker runs receive and index with the AWS halves of their stores.
type lullWorker struct {
	receive *receive.Handler
	index   *index.Handler
	net     *inprocess

	mu     sync.Mutex
	states []flight.State
}

func newLullWorker(t testing.TB, withSink bool) *lullWorker {
	cfg, net := base().config(t), newInprocess()
	account := net.config()
	live := sqs.New(account, "https://sqs.us-east-1.amazonaws.com/123456789012/live")
	l := &lullWorker{net: net}
	h := halves{
		config: cfg, sources: newSources(t, cfg), rows: sdkRows{dynamodb.New(account, "shards")},
		flights: s3.NewFlights(s3.New(account, "lull")),
		launcher: collecting{
			stepfunctions.New(account, stepfunctions.Machines{Express: "arn:aws:states:us-east-1:123456789012:stateMachine:flight"}), l,
		},
		live: live, dead: live, sink: newSink(t, net, withSink), clk: clock.System{},
	}
	l.receive, l.index = h.receiver(), h.indexer()
	return l
}

// newSink returns the OpenSearch client. If real is false, it returns a sink that reports every
// document as written, to measure the other parts alone.
func newSink(t testing.TB, p *inprocess, real bool) sink.Sink {
	if !real {
		return takenForWritten{}
	}
	s, err := opensearch.New(opensearch.Options{
		URL: "http://search.invalid", Collections: []shard.Collection{"content"}, Versions: true, Transport: p,
	})
	check(t, err)
	t.Cleanup(func() { _ = s.Close() }) // every document is written by then
	return s
}

type takenForWritten struct{}

func (takenForWritten) Write(_ context.Context, ops []sink.Op) []sink.Outcome {
	return make([]sink.Outcome, len(ops))
}
func (takenForWritten) Ping(context.Context) error { return nil }

// collecting starts executions and stores their input.
type collecting struct {
	flight.Launcher
	to *lullWorker
}

func (c collecting) Start(ctx context.Context, s flight.State) error {
	c.to.mu.Lock()
	c.to.states = append(c.to.states, s)
	c.to.mu.Unlock()
	return c.Launcher.Start(ctx, s)
}

// maxTurnsEach limits the turns of one flight. A flight of a workload needs only a few turns.
const maxTurnsEach = 10

// do receives every batch, and then runs the turns of the flights. The newest flight is first, so
// that an older one finds its documents committed.
func (l *lullWorker) do(ctx context.Context, w workload) error {
	l.states = l.states[:0]
	for _, b := range w.batches {
		if kept := l.receive.Handle(ctx, b); len(kept) != len(b) {
			return fmt.Errorf("receive holds %d messages of %d", len(kept), len(b))
		}
	}
	for i := len(l.states) - 1; i >= 0; i-- {
		s := l.states[i]
		for n := 0; !s.Done; n++ {
			var err error
			if s, err = l.index.Turn(ctx, s); err != nil {
				return err
			}
			if n == maxTurnsEach {
				return fmt.Errorf("flight %s is not done after %d turns", s.Flight, n)
			}
		}
	}
	rows, err := l.net.rows.Read(ctx, w.docs, shard.Consistent)
	if err != nil {
		return err
	}
	for _, r := range rows { // a flight that does not find its manifest would also end as done
		if r.Committed == "" {
			return fmt.Errorf("document %s is not committed", r.Doc)
		}
	}
	return nil
}

// loopWorker is the idempotency loop: two table writes and one sink request for each message. The
// loop decodes messages like lull.
type loopWorker struct {
	table   *sdk.Client
	sources *source.Set
	sink    sink.Sink
}

func newLoopWorker(t testing.TB, withSink bool) *loopWorker {
	net := newInprocess()
	return &loopWorker{
		table: sdk.NewFromConfig(client.Plain(net.config())), sources: newSources(t, base().config(t)),
		sink: newSink(t, net, withSink),
	}
}

func (l *loopWorker) do(ctx context.Context, w workload) error {
	for _, b := range w.batches {
		errs := make([]error, len(b))
		fanout.Runner(nil).Each(peerParallel, len(b), func(i int) { errs[i] = l.one(ctx, b[i]) })
		if err := errors.Join(errs...); err != nil {
			return err
		}
	}
	return nil
}

// one processes a message: PutItem "in progress" under a condition, the write of the document,
// UpdateItem "completed".
func (l *loopWorker) one(ctx context.Context, m queue.Message) error {
	r := l.sources.Decode(m)[0]
	if r.Invalid != nil {
		return r.Invalid
	}
	body, err := l.sources.Document(m, r.Event)
	if err != nil {
		return err
	}
	now := strconv.FormatInt(time.Now().Unix(), 10)
	id := &types.AttributeValueMemberS{Value: "consumer#" + m.ID}
	_, err = l.table.PutItem(ctx, &sdk.PutItemInput{
		TableName: aws.String("idempotency"),
		Item: map[string]types.AttributeValue{
			"id": id, "expiration": &types.AttributeValueMemberN{Value: now},
			"status":                 &types.AttributeValueMemberS{Value: "INPROGRESS"},
			"in_progress_expiration": &types.AttributeValueMemberN{Value: now},
		},
		ConditionExpression: aws.String(
			"attribute_not_exists(#id) OR #expiry < :now OR (#status = :inprogress AND " +
				"attribute_exists(#in_progress_expiry) AND #in_progress_expiry < :now)"),
		ExpressionAttributeNames: map[string]string{
			"#id": "id", "#expiry": "expiration", "#status": "status",
			"#in_progress_expiry": "in_progress_expiration",
		},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":now":        &types.AttributeValueMemberN{Value: now},
			":inprogress": &types.AttributeValueMemberS{Value: "INPROGRESS"},
		},
	})
	if err != nil {
		return err
	}
	if o := l.sink.Write(ctx, []sink.Op{op(r.Event, body)}); o[0].Kind != sink.Applied {
		return fmt.Errorf("sink: %s", o[0].Reason)
	}
	_, err = l.table.UpdateItem(ctx, &sdk.UpdateItemInput{
		TableName: aws.String("idempotency"), Key: map[string]types.AttributeValue{"id": id},
		UpdateExpression: aws.String(
			"SET #response_data = :response_data, #expiry = :expiry, #status = :status"),
		ExpressionAttributeNames: map[string]string{
			"#response_data": "data", "#expiry": "expiration",
			"#status": "status",
		},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":response_data": &types.AttributeValueMemberS{Value: "{}"},
			":expiry":        &types.AttributeValueMemberN{Value: now},
			":status":        &types.AttributeValueMemberS{Value: "COMPLETED"},
		},
	})
	return err
}

func op(e event.Event, body []byte) sink.Op {
	return sink.Op{
		Doc: e.Doc, Kind: e.Op, Fence: shard.Fence(time.Now().UnixMicro()), Key: e.Key, Version: e.Version,
		At: time.Now(), Document: body,
	}
}

// measure runs a workload, and divides the processor time and the allocations of the process by the
// number of events. The time includes garbage collection.
func measure(t testing.TB, x worker, w workload) Cost {
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := processorTime(t)
	check(t, x.do(t.Context(), w))
	runtime.GC()
	spent := processorTime(t) - began
	runtime.ReadMemStats(&after)
	n := float64(w.events)
	return Cost{CPU: time.Duration(float64(spent) / n), Allocs: float64(after.Mallocs-before.Mallocs) / n}
}

// processorTime returns the processor time that this process has used on all cores.
func processorTime(t testing.TB) time.Duration {
	var u syscall.Rusage
	check(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// pairs are the workloads for the comparison of processor time.
var pairs = []Pair{
	{Name: "base: bursts of 5, five pollers", Burst: 5, A: 4, Flight: 200, Sink: true},
	{Name: "bursts of 5, two pollers", Burst: 5, A: 3, Flight: 500, Sink: true},
	{Name: "the same without the sink's client", Burst: 5, A: 3, Flight: 500},
	{Name: "bursts of 10, one poller (friendlier than AWS)", Burst: 10, A: 2, Flight: 1000, Sink: true},
	{Name: "bursts of 100, one poller (friendlier than AWS)", Burst: 100, A: 2, Flight: 1000, Sink: true},
	{Name: "single events", Burst: 1, A: 1, Flight: 500, Sink: true},
}

// compare measures in rounds: lull, loop, lull, loop. Other load on the machine then affects both.
func (p Pair) compare(t testing.TB, s Size) Pair {
	l, o := newLullWorker(t, p.Sink), newLoopWorker(t, p.Sink)
	var lulls, loops []Cost
	for round := range s.Rounds + 1 {
		w := newWorkload(s.Events/p.Burst, p.Burst, p.A, max(1, p.Flight*p.A/p.Burst), round)
		cl, co := measure(t, l, w), measure(t, o, w)
		if round > 0 { // the first round opens connections and fills caches
			lulls, loops = append(lulls, cl), append(loops, co)
			p.Ratios = append(p.Ratios, float64(cl.CPU)/float64(co.CPU))
		}
	}
	slices.Sort(p.Ratios)
	p.Lull, p.Loop = median(lulls), median(loops)
	return p
}

func median(c []Cost) Cost {
	slices.SortFunc(c, func(a, b Cost) int { return int(a.CPU - b.CPU) })
	return c[len(c)/2]
}
