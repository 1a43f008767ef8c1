// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"context"
	"errors"
	"reflect"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullhq/lull/internal/local/emulation"
	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/shard"
)

func wakeIn(d time.Duration, s flight.State) flight.State {
	s.WakeAt = flight.WakeText(time.Now().Add(d))
	return s
}

func start(t *testing.T, m *memory.Machine, s flight.State) {
	t.Helper()
	if err := m.Start(t.Context(), s); err != nil {
		t.Fatal(err)
	}
}

func TestAnExecutionWaitsTurnsAndEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var at []time.Duration
		m := memory.NewMachine(clock.System{}, memory.MachineSettings{},
			func(_ context.Context, s flight.State) (flight.State, error) {
				at = append(at, time.Since(begin))
				if got, want := s.Started, shard.MicrosOf(begin); got != want {
					t.Errorf("started %d, want %d", got, want)
				}
				s.Remaining.Drop(s.Turn)
				s.Turn++
				s.Done = s.Remaining.Empty()
				return wakeIn(10*time.Second, s), nil
			})
		defer m.Close()
		start(t, m, wakeIn(5*time.Second, flight.State{Schema: 1, Flight: "f", Remaining: flight.AllRemaining(3)}))
		if got, want := m.Running(), 1; got != want {
			t.Errorf("%d running, want %d", got, want)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if want := []time.Duration{5 * time.Second, 15 * time.Second, 25 * time.Second}; !reflect.DeepEqual(at, want) {
			t.Errorf("turns at %v, want %v", at, want)
		}
		if got, want := m.Running(), 0; got != want {
			t.Errorf("%d running, want %d", got, want)
		}
	})
}

func TestAFailedTurnIsTriedAgainAfterTheLeaseThenTheFlightIsDead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var at []time.Duration
		var reports atomic.Int64
		lost := errors.New("invocation lost")
		m := memory.NewMachine(clock.System{}, memory.MachineSettings{
			Retries: 2, RetryAfter: 13 * time.Second, Report: func(err error) {
				if errors.Is(err, lost) {
					reports.Add(1)
				}
			},
		}, func(_ context.Context, s flight.State) (flight.State, error) {
			at = append(at, time.Since(begin))
			s.Remaining.Drop(0) // a failed turn's change of the state must be lost
			return s, lost
		})
		defer m.Close()
		start(t, m, wakeIn(0, flight.State{Schema: 1, Flight: "f", Remaining: flight.AllRemaining(1)}))
		time.Sleep(time.Minute)
		synctest.Wait()
		if want := []time.Duration{0, 13 * time.Second, 26 * time.Second}; !reflect.DeepEqual(at, want) {
			t.Errorf("turns at %v, want %v", at, want)
		}
		if m.Running() != 0 || reports.Load() != 1 {
			t.Errorf("%d running and %d failures reported, want 0 and 1", m.Running(), reports.Load())
		}
	})
}

func TestAnExpressExecutionEndsAfterFiveMinutes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		turns := 0
		m := memory.NewMachine(clock.System{}, memory.MachineSettings{},
			func(_ context.Context, s flight.State) (flight.State, error) {
				turns++
				return wakeIn(70*time.Second, s), nil
			})
		defer m.Close()
		start(t, m, wakeIn(0, flight.State{Schema: 1, Flight: "f", Kind: "express"}))
		time.Sleep(emulation.ExpressLimit - time.Second)
		if got, want := m.Running(), 1; got != want {
			t.Errorf("%d running before the limit, want %d", got, want)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if m.Running() != 0 || turns != 5 {
			t.Errorf("%d running after %d turns, want 0 after 5", m.Running(), turns)
		}
	})
}

func TestStopEndsTheExecutionsOfOneFlight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var turns atomic.Int64
		m := memory.NewMachine(clock.System{}, memory.MachineSettings{},
			func(_ context.Context, s flight.State) (flight.State, error) {
				turns.Add(1)
				s.Done = true
				return s, nil
			})
		defer m.Close()
		for _, id := range []flight.ID{"a", "a", "b"} {
			start(t, m, wakeIn(10*time.Second, flight.State{Schema: 1, Flight: id}))
		}
		if got, want := m.Stop("a"), 2; got != want {
			t.Errorf("stopped %d, want %d", got, want)
		}
		time.Sleep(time.Minute)
		if m.Running() != 0 || turns.Load() != 1 {
			t.Errorf("%d running after %d turns, want 0 after 1", m.Running(), turns.Load())
		}
	})
}

func TestCloseEndsWaitsAndTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := memory.NewMachine(clock.System{}, memory.MachineSettings{
			Report: func(err error) { t.Errorf("reported %v", err) },
		},
			func(ctx context.Context, s flight.State) (flight.State, error) {
				<-ctx.Done()
				return s, ctx.Err()
			})
		start(t, m, wakeIn(0, flight.State{Schema: 1, Flight: "a"}))
		start(t, m, wakeIn(time.Hour, flight.State{Schema: 1, Flight: "b"}))
		synctest.Wait()
		m.Close()
		if got, want := m.Running(), 0; got != want {
			t.Errorf("%d running, want %d", got, want)
		}
		if err := m.Start(t.Context(), flight.State{}); err == nil {
			t.Error("a closed machine started an execution")
		}
	})
}

func TestAnUnreadableOrTooLargeStateEndsTheExecution(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var reports atomic.Int64
		m := memory.NewMachine(clock.System{}, memory.MachineSettings{Report: func(error) { reports.Add(1) }},
			func(_ context.Context, s flight.State) (flight.State, error) {
				s.Remaining = flight.AllRemaining(8 * flight.MaxStateBytes)
				return s, nil
			})
		defer m.Close()
		start(t, m, flight.State{Flight: "a", WakeAt: "soon"})
		start(t, m, wakeIn(0, flight.State{Flight: "b"}))
		synctest.Wait()
		if got, want := reports.Load(), int64(2); got != want {
			t.Errorf("%d failures reported, want %d", got, want)
		}
		large := flight.State{Remaining: flight.AllRemaining(8 * flight.MaxStateBytes)}
		if err := m.Start(t.Context(), large); err == nil {
			t.Error("an input of more than 256 KiB was taken")
		}
	})
}
