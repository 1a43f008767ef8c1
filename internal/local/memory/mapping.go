package memory

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/lullhq/lull/internal/local/emulation"
	"github.com/lullhq/lull/internal/seam/queue"
)

// Handler is a Lambda function behind an event source mapping with ReportBatchItemFailures. It
// returns the ids of the messages to keep; the mapping deletes all others of the batch. An error
// keeps the whole batch. An id that is empty or not in the batch does the same.
type Handler func(ctx context.Context, batch []queue.Message) (failed []string, err error)

// MappingSettings describe an event source mapping.
type MappingSettings struct {
	Batch   int           // in a batch at most, 1 to 10,000
	Window  time.Duration // how long it collects after the first message; 0: not at all
	Pollers int           // concurrent batches: MaximumConcurrency
	Report  func(error)   // called with the error that kept a batch, concurrently; may be nil
}

// Mapping receives batches from a queue and passes them to a function.
type Mapping struct {
	queue  *Queue
	set    MappingSettings
	handle Handler
}

// NewMapping returns a mapping that starts with Run. Batch and Pollers are at least one.
func NewMapping(q *Queue, set MappingSettings, handle Handler) *Mapping {
	set.Batch, set.Pollers = max(set.Batch, 1), max(set.Pollers, 1)
	if set.Report == nil {
		set.Report = func(error) {}
	}
	return &Mapping{queue: q, set: set, handle: handle}
}

// Run polls until ctx ends, and returns when every call of the handler has returned. The handler's
// context ends with ctx; its answer still counts.
func (m *Mapping) Run(ctx context.Context) {
	var wg sync.WaitGroup
	for range m.set.Pollers {
		wg.Go(func() { m.poll(ctx) })
	}
	wg.Wait()
}

func (m *Mapping) poll(ctx context.Context) {
	for {
		batch, err := m.queue.Gather(ctx, m.set.Batch, m.set.Window)
		if err != nil {
			return // ctx has ended: the only possible error
		}
		failed, err := m.handle(ctx, batch)
		if err != nil {
			m.set.Report(fmt.Errorf("handle batch of %d: %w", len(batch), err))
			continue
		}
		done, err := emulation.Succeeded(batch, failed)
		if err != nil {
			m.set.Report(err)
			continue
		}
		// The service deletes the messages even after the function was stopped, so not with ctx.
		m.queue.Delete(context.WithoutCancel(ctx), done)
	}
}
