package memory

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/lullhq/lull/internal/local/emulation"
	"github.com/lullhq/lull/internal/queue"
)

// Handler is a Lambda function behind an event source mapping with ReportBatchItemFailures. It
// returns the ids of the messages that shall stay; all others of the batch are deleted. An error
// keeps the whole batch, and so does an id that is empty or of no message of the batch.
type Handler func(ctx context.Context, batch []queue.Message) (failed []string, err error)

// MappingSettings describe an event source mapping.
type MappingSettings struct {
	Batch   int           // messages in a batch at most: 1 to 10,000
	Window  time.Duration // how long a batch gathers after its first message, 0 for not at all
	Pollers int           // batches handled at once: MaximumConcurrency
	Report  func(error)   // told why a whole batch was kept; nil for nobody. Called concurrently
}

// Mapping receives batches from a queue and hands them to a function.
type Mapping struct {
	queue  *Queue
	set    MappingSettings
	handle Handler
}

// NewMapping returns a mapping that does nothing before Run. Batch and Pollers below one count as
// one.
func NewMapping(q *Queue, set MappingSettings, handle Handler) *Mapping {
	set.Batch, set.Pollers = max(set.Batch, 1), max(set.Pollers, 1)
	if set.Report == nil {
		set.Report = func(error) {}
	}
	return &Mapping{queue: q, set: set, handle: handle}
}

// Run polls until ctx ends and returns when every call of the handler has. The handler's context
// ends with ctx; what it answers then still counts.
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
			return // ctx has ended: there is no other error
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
		// The service deletes whatever became of the function: not under ctx.
		m.queue.Delete(context.WithoutCancel(ctx), done)
	}
}
