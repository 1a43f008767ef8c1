// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/queue"
)

func TestTheMappingDeletesWhatIsNotReportedAsFailed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		failed func([]queue.Message) ([]string, error)
		left   int
	}{
		{"nothing reported: all deleted", func([]queue.Message) ([]string, error) { return nil, nil }, 0},
		{"one reported: it stays", func(b []queue.Message) ([]string, error) { return []string{b[1].ID}, nil }, 1},
		{
			"an unknown id keeps the whole batch",
			func(b []queue.Message) ([]string, error) { return []string{b[1].ID, "x"}, nil }, 3,
		},
		{
			"an error keeps the whole batch", func([]queue.Message) ([]string, error) { return nil, errors.New("killed") },
			3,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				q := memory.NewQueue(clock.System{}, memory.QueueSettings{Name: "q", Visibility: time.Hour})
				var reports atomic.Int64
				m := memory.NewMapping(q, memory.MappingSettings{
					Batch: 10, Window: time.Second, Pollers: 2, Report: func(error) { reports.Add(1) },
				}, func(_ context.Context, b []queue.Message) ([]string, error) { return c.failed(b) })
				ctx, cancel := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				wg.Go(func() { m.Run(ctx) })
				send(t, q, "a", "b", "c")
				time.Sleep(2 * time.Second)
				synctest.Wait()
				if got, want := q.Counts(), (memory.QueueCounts{InFlight: c.left}); got != want {
					t.Errorf("counts %+v, want %+v", got, want)
				}
				if got, want := reports.Load() == 1, c.left == 3; got != want {
					t.Errorf("reported %v, want %v", got, want)
				}
				cancel()
				wg.Wait()
			})
		})
	}
}

func TestTheMappingStopsWithItsHandlers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := memory.NewQueue(clock.System{}, memory.QueueSettings{Name: "q", Visibility: time.Hour})
		handled := false
		m := memory.NewMapping(q, memory.MappingSettings{},
			func(ctx context.Context, _ []queue.Message) ([]string, error) {
				<-ctx.Done()
				time.Sleep(time.Second)
				handled = true
				return nil, nil
			})
		send(t, q, "a")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		m.Run(ctx)
		if !handled {
			t.Error("Run returned before its handler did")
		}
		if got, want := q.Counts().Total(), 0; got != want {
			t.Errorf("%d messages left, want %d: an answer counts after the end too", got, want)
		}
	})
}
