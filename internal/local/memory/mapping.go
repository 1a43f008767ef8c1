// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/lullhq/lull/internal/local/emulation"
	"github.com/lullhq/lull/internal/seam/queue"
)

// Handler is a Lambda function behind an event source mapping with ReportBatchItemFailures. A
// Handler returns the ids of failed messages. The mapping deletes all other messages of the batch.
// If the handler returns an error, or an id that is empty or not in the batch, the mapping deletes
// no message.
type Handler func(ctx context.Context, batch []queue.Message) (failed []string, err error)

// MappingSettings contains the settings of an event source mapping.
type MappingSettings struct {
	Batch   int           // the largest number of messages in a batch, 1 to 10,000
	Window  time.Duration // how long the mapping collects messages after the first one; 0 means that it does not wait
	Pollers int           // how many batches are handled at the same time, like MaximumConcurrency
	// called with the error because of which a batch was not deleted, also concurrently; may be nil
	Report func(error)
}

// Mapping receives batches from a queue and passes them to a function.
type Mapping struct {
	queue  *Queue
	set    MappingSettings
	handle Handler
}

// NewMapping returns a mapping, which starts with Run. NewMapping raises Batch and Pollers to at
// least 1.
func NewMapping(q *Queue, set MappingSettings, handle Handler) *Mapping {
	set.Batch, set.Pollers = max(set.Batch, 1), max(set.Pollers, 1)
	if set.Report == nil {
		set.Report = func(error) {}
	}
	return &Mapping{queue: q, set: set, handle: handle}
}

// Run polls until ctx ends, and returns when all calls of the handler have returned. The context of
// the handler ends with ctx, but its answer still counts.
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
		// SQS deletes the messages even after ctx has ended, so do not use ctx here.
		m.queue.Delete(context.WithoutCancel(ctx), done)
	}
}
