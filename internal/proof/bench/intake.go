package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/aws/lambda"
	"github.com/lullhq/lull/internal/clock"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/local/dev"
	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/sink"
)

// payload is an invocation as the event source mapping sends it, with n messages.
func payload(t testing.TB, n int, message func(i int) queue.Message) []byte {
	t.Helper()
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
	text, err := json.Marshal(map[string]any{"Records": records})
	check(t, err)
	return text
}

// Allocs are allocations a message.
type Allocs struct {
	Read   float64 // to read the SQS event
	Handle float64 // to decode, collapse, judge, pack into the manifest and answer
}

// MessageAllocs counts the allocations of one more message of a burst. The difference of two
// batches of one document leaves out what is paid once a document or once a batch.
func MessageAllocs(t testing.TB) Allocs {
	const few, many, rounds = 200, 1000, 5
	cfg := base().config(t)
	h := halves{
		config: cfg, sources: newSources(t, cfg), rows: memory.NewShards(),
		flights: memory.NewFlights(clock.System{}), launcher: nowhere{}, schedule: memory.NewSchedule(),
		clk: clock.System{},
	}.receiver()
	doc := 0
	count := func(n int) (least Allocs) {
		for round := range rounds {
			doc++
			now := time.Now()
			text := payload(t, n, func(i int) queue.Message {
				return queue.Message{
					ID: strconv.Itoa(i), Receipt: filler[:200] + strconv.Itoa(i),
					Body: Event{Doc: doc, Version: i + 1}.body(), Sent: now,
				}
			})
			var before, between, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			batch, err := lambda.ReadBatch(text)
			check(t, err)
			runtime.ReadMemStats(&between)
			kept := h.Handle(t.Context(), batch.Messages)
			answer := lambda.Answer(kept)
			runtime.ReadMemStats(&after)
			if len(kept) != n || !bytes.Contains(answer, []byte("batchItemFailures")) {
				t.Fatalf("%d messages of %d are held", len(kept), n)
			}
			read, handle := float64(between.Mallocs-before.Mallocs), float64(after.Mallocs-between.Mallocs)
			if round == 0 {
				least = Allocs{read, handle}
			}
			least = Allocs{min(least.Read, read), min(least.Handle, handle)}
		}
		return least
	}
	a, b := count(few), count(many)
	return Allocs{Read: (b.Read - a.Read) / (many - few), Handle: (b.Handle - a.Handle) / (many - few)}
}

// Intake is how fast the embedded stack takes events in on this machine.
type Intake struct {
	Sink    string
	Events  int
	Taken   time.Duration // until every event was admitted and held
	Written time.Duration // until every document was written
}

// PerSecond is events a second until they are held.
func (i Intake) PerSecond() int { return int(float64(i.Events) / i.Taken.Seconds()) }

// EmbeddedIntake sends events, ten to a burst, as fast as the embedded stack takes them, in real
// time, and waits until all are received: judged by their rows and held in flights.
func EmbeddedIntake(t testing.TB, events int, name string, to sink.Sink) Intake {
	cfg := config.Default()
	cfg.Sinks = map[string]config.Sink{sinkName: {Kind: "memory"}}
	cfg.Queues.Live.Batch, cfg.Queues.Live.Window = 1000, time.Second
	cfg.Complete()
	check(t, cfg.Validate())
	e, err := dev.New(dev.Options{
		Config: &cfg, Clock: clock.System{}, Sinks: map[string]sink.Sink{sinkName: to},
		Pollers: runtime.NumCPU(),
	})
	check(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer e.Stop()
	defer cancel()
	messages := make([]queue.Outgoing, events)
	for i := range messages {
		messages[i].Body = Event{Doc: i / 10, Version: i%10 + 1}.body()
	}
	e.Start(ctx)
	began := time.Now()
	for _, m := range messages {
		check(t, e.Publish(ctx, m))
	}
	in := Intake{Sink: name, Events: events}
	for {
		r, err := e.Report(ctx)
		check(t, err)
		if r.Held+r.Stale+r.Duplicates >= events {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	in.Taken = time.Since(began)
	check(t, e.Settle(ctx))
	in.Written = time.Since(began)
	return in
}
