// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"context"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/aws/lambda"
	"github.com/lullhq/lull/internal/aws/lambda/lambdatest"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/local/dev"
	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/sink"
)

// MessageAllocs counts the allocations for one more message of a burst. The function compares two
// batches of one document, so that allocations for each document and for each batch do not count.
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

// TestAMessageAllocatesAsTheTargetSays: the figure does not depend on the machine, so a test checks
// it as well.
func TestAMessageAllocatesAsTheTargetSays(t *testing.T) {
	if a := MessageAllocs(t); !a.few() || math.Round(10*a.Read) > 20 {
		t.Errorf("a message allocates %.2f times, and %.2f times to read it: want at most 8 and 2", a.Handle, a.Read)
	}
}

// EmbeddedIntake sends events as fast as the embedded stack accepts them, in real time. The
// function waits until no event is left in a queue, in a flight or on its way to the sink. first is
// the number of the first document.
func EmbeddedIntake(t testing.TB, in Intake, to sink.Sink, first int) Intake {
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
	messages := make([]queue.Outgoing, in.Events)
	for i := range messages {
		messages[i].Body = Event{Doc: first + i/in.Burst, Version: i%in.Burst + 1}.body()
	}
	e.Start(ctx)
	began, cpu := time.Now(), processorTime(t)
	for _, m := range messages {
		check(t, e.Publish(ctx, m))
	}
	want := in.Events / in.Burst
	written := func() int {
		r, err := e.Report(ctx)
		check(t, err)
		return r.Written
	}
	for written() < want && !e.Idle() {
		check(t, clock.System{}.Sleep(ctx, 5*time.Millisecond))
	}
	in.Took = time.Since(began) - cfg.Debounce.Quiet
	check(t, e.Settle(ctx))
	in.CPU = (processorTime(t) - cpu) / time.Duration(in.Events)
	r, err := e.Report(ctx)
	check(t, err)
	if r.Written != want || len(r.DeadLetters) > 0 {
		t.Fatalf("%s: %d documents of %d are written, %d dead letters", in.Name(), r.Written, want, len(r.DeadLetters))
	}
	return in
}
