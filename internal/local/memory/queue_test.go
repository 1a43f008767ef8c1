// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/queue"
)

func send(t *testing.T, q *memory.Queue, bodies ...string) {
	t.Helper()
	out := make([]queue.Outgoing, len(bodies))
	for i, b := range bodies {
		out[i] = queue.Outgoing{Body: b}
	}
	if errs := q.Send(t.Context(), out); errs != nil {
		t.Errorf("send: %v", errs)
	}
}

func receive(t *testing.T, q *memory.Queue, limit int, wait time.Duration) []queue.Message {
	t.Helper()
	got, err := q.Receive(t.Context(), limit, wait)
	if err != nil {
		t.Fatalf("receive: %v", err)
	}
	return got
}

func texts(batch []queue.Message) string {
	out := make([]string, len(batch))
	for i := range batch {
		out[i] = batch[i].Body
	}
	return strings.Join(out, " ")
}

func TestABatchClosesWhenItsWindowHasPassedSinceTheFirstMessage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := memory.NewQueue(clock.System{}, memory.QueueSettings{Name: "q", Visibility: 40 * time.Second})
		start := time.Now()
		go func() {
			for i := range 5 {
				time.Sleep(900 * time.Millisecond)
				send(t, q, fmt.Sprint(i))
			}
		}()
		got, err := q.Gather(t.Context(), 100, 2*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := texts(got), "0 1 2"; got != want {
			t.Errorf("batch %q, want %q", got, want)
		}
		if got, want := time.Since(start), 2900*time.Millisecond; got != want {
			t.Errorf("batch after %s, want %s", got, want)
		}
		synctest.Wait()
		time.Sleep(5 * time.Second)
		if got, want := q.Counts(), (memory.QueueCounts{Visible: 2, InFlight: 3}); got != want {
			t.Errorf("counts %+v, want %+v", got, want)
		}
	})
}

func TestABatchClosesAtItsSizeAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := memory.NewQueue(clock.System{}, memory.QueueSettings{Name: "q"})
		start := time.Now()
		go send(t, q, "a", "b", "c")
		got, _ := q.Gather(t.Context(), 2, time.Minute)
		if got, want := texts(got), "a b"; got != want {
			t.Errorf("batch %q, want %q", got, want)
		}
		big := strings.Repeat("x", 1<<20-1)
		send(t, q, big, big, big, big, big, big, big)
		got, _ = q.Gather(t.Context(), 100, time.Minute)
		if got, want := len(got), 6; got != want { // "c" and five large messages: a sixth would exceed 6 MB
			t.Errorf("%d messages in the batch, want %d", got, want)
		}
		if got := time.Since(start); got != 0 {
			t.Errorf("waited %s, want no wait", got)
		}
	})
}

func TestVisibilityCountsFromThePollBeforeTheWindow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := memory.NewQueue(clock.System{}, memory.QueueSettings{Name: "q", Visibility: 10 * time.Second})
		send(t, q, "a")
		got, _ := q.Gather(t.Context(), 10, 3*time.Second)
		start := time.Now()
		again := receive(t, q, 1, time.Minute)
		if got, want := time.Since(start), 7*time.Second; got != want {
			t.Errorf("visible again %s after the batch was handed over, want %s", got, want)
		}
		if len(again) != 1 || again[0].ID != got[0].ID || again[0].ReceiveCount != 2 ||
			again[0].Receipt == got[0].Receipt {
			t.Errorf("received again: %+v, first %+v", again, got)
		}
	})
}

func TestAWaitingReceiverLearnsThatAHoldWasShortened(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := memory.NewQueue(clock.System{}, memory.QueueSettings{Name: "q", Visibility: time.Hour})
		send(t, q, "a", "b")
		first := receive(t, q, 2, 0)
		start := time.Now()
		type answer struct {
			body string
			at   time.Duration
		}
		answers := make(chan answer, 2)
		for range 2 {
			go func() {
				got, _ := q.Receive(t.Context(), 1, never)
				answers <- answer{texts(got), time.Since(start)}
			}()
		}
		synctest.Wait()
		q.Hold(t.Context(), []string{first[0].Receipt}, 0)
		if got, want := <-answers, (answer{"a", 0}); got != want {
			t.Errorf("got %v, want %v", got, want)
		}
		q.Hold(t.Context(), []string{first[1].Receipt}, 5*time.Second)
		if got, want := <-answers, (answer{"b", 5 * time.Second}); got != want {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

const never = 1000 * time.Hour

func TestReceiversWaitWhileTooManyMessagesAreInFlight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := memory.NewQueue(clock.System{}, memory.QueueSettings{Name: "q", Visibility: time.Minute, MaxInFlight: 2})
		send(t, q, "a", "b", "c")
		got := receive(t, q, 3, 0)
		if got, want := texts(got), "a b"; got != want {
			t.Errorf("received %q, want %q", got, want)
		}
		go func() {
			time.Sleep(7 * time.Second)
			q.Delete(t.Context(), []string{got[0].Receipt})
		}()
		start := time.Now()
		if got, want := texts(receive(t, q, 3, never)), "c"; got != want {
			t.Errorf("received %q, want %q", got, want)
		}
		if got, want := time.Since(start), 7*time.Second; got != want {
			t.Errorf("received after %s, want %s", got, want)
		}
	})
}

func TestGatheringThatIsCalledOffGivesItsMessagesBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := memory.NewQueue(clock.System{}, memory.QueueSettings{Name: "q", Visibility: time.Hour})
		send(t, q, "a")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if got, err := q.Gather(ctx, 10, time.Minute); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, %v, want the context's error", got, err)
		}
		if got, want := q.Counts(), (memory.QueueCounts{Visible: 1}); got != want {
			t.Errorf("counts %+v, want %+v", got, want)
		}
	})
}

func TestPollersShareWhatComesInTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := memory.NewQueue(clock.System{}, memory.QueueSettings{Name: "q"})
		sizes := make(chan int, 2)
		for range 2 {
			go func() {
				got, _ := q.Gather(t.Context(), 1000, time.Second)
				sizes <- len(got)
			}()
		}
		synctest.Wait()
		for i := range 40 {
			send(t, q, fmt.Sprint(i))
		}
		if a, b := <-sizes, <-sizes; a != 20 || b != 20 {
			t.Errorf("batches of %d and %d, want 20 each", a, b)
		}
	})
}
