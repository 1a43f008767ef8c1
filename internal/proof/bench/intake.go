package bench

import (
	"bytes"
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/aws/lambda"
	"github.com/lullhq/lull/internal/aws/lambda/lambdatest"
	"github.com/lullhq/lull/internal/clock"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/local/dev"
	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/sink"
)

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
			bodies := make([]string, n)
			for i := range bodies {
				bodies[i] = Event{Doc: doc, Version: i + 1}.body()
			}
			text := lambdatest.Batch(t, liveQueue, bodies...)
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
