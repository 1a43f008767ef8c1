package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strconv"
	"time"

	"github.com/lullhq/lull/internal/aws/lambda"
	"github.com/lullhq/lull/internal/clock"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/local/dev"
	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/internal/receive"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/source"
)

// payload is an invocation as the event source mapping sends it, with n messages.
func payload(n int, message func(i int) queue.Message) ([]byte, error) {
	type attributes struct {
		SentTimestamp                    string
		ApproximateReceiveCount          string
		ApproximateFirstReceiveTimestamp string
	}
	type record struct {
		MessageID  string     `json:"messageId"`
		Receipt    string     `json:"receiptHandle"`
		Body       string     `json:"body"`
		Attributes attributes `json:"attributes"`
		Source     string     `json:"eventSource"`
		ARN        string     `json:"eventSourceARN"`
	}
	records := make([]record, n)
	for i := range records {
		m := message(i)
		sent := strconv.FormatInt(m.Sent.UnixMilli(), 10)
		records[i] = record{
			m.ID, m.Receipt, m.Body,
			attributes{sent, "1", sent},
			"aws:sqs",
			"arn:aws:sqs:us-east-1:123456789012:lull-search-live",
		}
	}
	return json.Marshal(map[string]any{"Records": records})
}

// Allocs are allocations a message.
type Allocs struct {
	Read   float64 // to read the SQS event
	Handle float64 // to decode, collapse, judge, pack into the manifest and answer
}

// MessageAllocs counts the allocations of one more message of a burst. The difference of two
// batches of one document leaves out what is paid once a document or once a batch.
func MessageAllocs(ctx context.Context) (Allocs, error) {
	const few, many, rounds = 200, 1000, 5
	s := base()
	cfg, err := s.config()
	if err != nil {
		return Allocs{}, err
	}
	sources, err := source.New(cfg)
	if err != nil {
		return Allocs{}, err
	}
	h := receive.Handler{
		Shards: memory.NewShards(), Flights: memory.NewFlights(clock.System{}), Launcher: nowhere{},
		Schedule: memory.NewSchedule(), Sources: sources,
		Config: cfg, Sink: sinkName, Lane: flight.Live, Clock: clock.System{}, Journal: journal.Discard{},
		NewID: func() flight.ID { return lambda.NewFlight() },
	}
	doc := 0
	count := func(n int) (read, handle uint64, err error) {
		read, handle = ^uint64(0), ^uint64(0)
		for range rounds {
			doc++
			now := time.Now()
			text, err := payload(n, func(i int) queue.Message {
				return queue.Message{
					ID: strconv.Itoa(i), Receipt: filler[:200] + strconv.Itoa(i),
					Body: Event{Doc: doc, Version: i + 1}.body(), Sent: now,
				}
			})
			if err != nil {
				return 0, 0, err
			}
			var before, between, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			batch, err := lambda.ReadBatch(text)
			if err != nil {
				return 0, 0, err
			}
			runtime.ReadMemStats(&between)
			kept := h.Handle(ctx, batch.Messages)
			answer := lambda.Answer(kept)
			runtime.ReadMemStats(&after)
			if len(kept) != n || !bytes.Contains(answer, []byte("batchItemFailures")) {
				return 0, 0, fmt.Errorf("%d messages of %d are held", len(kept), n)
			}
			read, handle = min(read, between.Mallocs-before.Mallocs), min(handle, after.Mallocs-between.Mallocs)
		}
		return read, handle, nil
	}
	read1, handle1, err := count(few)
	if err != nil {
		return Allocs{}, err
	}
	read2, handle2, err := count(many)
	return Allocs{Read: float64(read2-read1) / (many - few), Handle: float64(handle2-handle1) / (many - few)}, err
}

// Intake is how fast the embedded stack takes events in on this machine.
type Intake struct {
	Events  int
	Taken   time.Duration // until every event was admitted and held
	Settled time.Duration // until every document was written
}

// PerSecond is events a second until they are held.
func (i Intake) PerSecond() float64 { return float64(i.Events) / i.Taken.Seconds() }

// EmbeddedIntake sends events, ten to a burst, as fast as the embedded stack takes them, in real
// time, and waits until all are received: judged by their rows and held in flights.
func EmbeddedIntake(ctx context.Context, events int, out func() (sink.Sink, error)) (Intake, error) {
	cfg := config.Default()
	cfg.Sinks = map[string]config.Sink{sinkName: {Kind: config.SinkMemory}}
	cfg.Queues.Live.Batch, cfg.Queues.Live.Window = 1000, time.Second
	cfg.Complete()
	if err := cfg.Validate(); err != nil {
		return Intake{}, err
	}
	to, err := out()
	if err != nil {
		return Intake{}, err
	}
	e, err := dev.New(dev.Options{
		Config: &cfg, Clock: clock.System{}, Sinks: map[string]sink.Sink{sinkName: to},
		Pollers: runtime.NumCPU(),
	})
	if err != nil {
		return Intake{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		cancel()
		e.Stop()
	}()
	messages := make([]queue.Outgoing, events)
	for i := range messages {
		messages[i].Body = Event{Doc: i / 10, Version: i%10 + 1}.body()
	}
	e.Start(ctx)
	began := time.Now()
	for _, m := range messages {
		if err := e.Publish(ctx, m); err != nil {
			return Intake{}, err
		}
	}
	in := Intake{Events: events}
	for {
		r, err := e.Report(ctx)
		if err != nil {
			return Intake{}, err
		}
		if r.Held+r.Stale+r.Duplicates >= events {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	in.Taken = time.Since(began)
	if err := e.Settle(ctx); err != nil {
		return Intake{}, err
	}
	in.Settled = time.Since(began)
	return in, nil
}

// MemorySink is a sink that costs next to nothing.
func MemorySink() (sink.Sink, error) {
	return memory.NewSink(clock.System{}, memory.SinkSettings{Versions: true}), nil
}
