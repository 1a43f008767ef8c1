// SPDX-License-Identifier: Apache-2.0

package receive

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/fanout"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
)

// hider makes messages invisible, so that no receiver of the queue gets them for some time.
type hider struct {
	*invocation
	ingest queue.Queue
}

// hide makes messages invisible, grouped by the length of the wait. If SQS refuses a call, its
// messages only return earlier. In a backlog almost every message has another wait, so the calls
// run in parallel. Otherwise the calls would take longer than the function's time.
func (h hider) hide(ctx context.Context, call string, waits map[time.Duration][]string) {
	each := slices.Sorted(maps.Keys(waits))
	errs := fanout.Map(h.parallel, maxParallel, each, func(wait time.Duration) error {
		return queue.Failed(h.ingest.Hold(ctx, waits[wait], wait))
	})
	for _, err := range errs {
		h.noteFailed(call, err)
	}
}

// backOff hides messages that could not be held, for a longer time at each receive. Something is
// broken and must not be asked all the time, and each receive costs money.
func (h hider) backOff(ctx context.Context, batch []message, which func(*message) bool) {
	// The key of the map is the wait: one call of Hold serves all messages with the same wait.
	waits := map[time.Duration][]string{}
	for i := range batch {
		if m := &batch[i]; which(m) {
			wait := h.outageHold(m.ReceiveCount)
			waits[wait] = append(waits[wait], m.Receipt)
		}
	}
	h.hide(ctx, "keep messages away", waits)
}

// outageHold returns the wait of a message that was received count times: the queue's visibility,
// doubled at each receive.
func (h hider) outageHold(count int) time.Duration {
	// The bound keeps the shift small, so that the product cannot overflow.
	if count >= 8 {
		return config.TableHold
	}
	return min(config.TableHold, h.config.Queues.Visibility<<max(count-1, 0))
}

// launcher starts flights.
type launcher struct {
	*invocation
	flights  flight.Store
	launcher flight.Launcher
}

// start stores the manifest and then starts the execution of the flight. An execution without a
// manifest ends at once. A manifest without an execution stays until prune finds that all of its
// events are done.
func (l launcher) start(ctx context.Context, m *flight.Manifest, state flight.State, wake time.Time) (started bool) {
	err := backoff.Do(ctx, l.clock, func() error { return l.flights.Put(ctx, m) })
	if err == nil {
		err = backoff.Do(ctx, l.clock, func() error { return l.launcher.Start(ctx, state) })
	}
	n := journal.Note{Step: journal.Launched, Flight: string(m.Flight), Count: len(m.Records), Until: wake}
	if err != nil {
		n.Step, n.Detail = journal.LaunchLost, err.Error()
	}
	l.note(n)
	return err == nil
}
