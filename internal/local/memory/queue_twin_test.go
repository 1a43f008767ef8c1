// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/queue"
)

// plainMessage is a message of a plainQueue. A plainQueue is a slow and simple list, which the
// tests compare with the real queue.
type plainMessage struct {
	body     string
	sent     time.Time
	from     time.Time // the time from which the message is visible
	received time.Time
	receipt  string
	count    int
}

type plainQueue struct {
	set      memory.QueueSettings
	messages []*plainMessage
}

func (q *plainQueue) counts(now time.Time) (c memory.QueueCounts) {
	for _, m := range q.messages {
		switch {
		case !m.from.After(now) && now.Sub(m.sent) >= q.set.Retention:
		case !m.from.After(now):
			c.Visible++
		case m.count == 0:
			c.Delayed++
		default:
			c.InFlight++
		}
	}
	return c
}

func (q *plainQueue) find(receipt string) *plainMessage {
	for _, m := range q.messages {
		if m.receipt == receipt && receipt != "" {
			return m
		}
	}
	return nil
}

// handClock is a clock that the test sets. A call that waits on this clock ends at once with an
// error.
type handClock struct{ now time.Time }

func (c *handClock) pass(d time.Duration) { c.now = c.now.Add(d) }
func (c *handClock) Now() time.Time       { return c.now }

func (c *handClock) Sleep(context.Context, time.Duration) error { return context.DeadlineExceeded }

func (c *handClock) Deadline(ctx context.Context, _ time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx, cancel
}

func TestTheQueueDoesWhatAPlainListDoes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		clk := &handClock{now: time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)}
		dead := memory.NewQueue(clk, memory.QueueSettings{Name: "dead"})
		set := memory.QueueSettings{
			Name: "q", Visibility: 10 * time.Second, Retention: 5 * time.Minute, MaxReceiveCount: 4, DeadLetter: dead,
			MaxInFlight: 12,
		}
		q, twin := memory.NewQueue(clk, set), &plainQueue{set: set}
		ctx := context.Background()
		receipts := []string{"", "0.1", "zzzz.9", "nonsense"}
		n := 0
		t.Repeat(map[string]func(*rapid.T){
			"time": func(t *rapid.T) {
				clk.pass(rapid.SampledFrom([]time.Duration{
					time.Millisecond, time.Second, 3 * time.Second,
					10 * time.Second, time.Minute,
				}).Draw(t, "d"))
			},
			"send": func(t *rapid.T) {
				var out []queue.Outgoing
				for range rapid.IntRange(1, 5).Draw(t, "n") {
					n++
					delay := rapid.SampledFrom([]time.Duration{0, 0, time.Second, 5 * time.Second}).Draw(t, "delay")
					out = append(out, queue.Outgoing{Body: fmt.Sprint(n), Delay: delay})
					twin.messages = append(twin.messages, &plainMessage{
						body: fmt.Sprint(n),
						sent: clk.now.Truncate(time.Millisecond), from: clk.now.Add(delay),
					})
				}
				if errs := q.Send(ctx, out); errs != nil {
					t.Fatal(errs)
				}
			},
			"receive": func(t *rapid.T) {
				limit := rapid.IntRange(1, 8).Draw(t, "limit")
				before := twin.counts(clk.now)
				got, err := q.Receive(ctx, limit, 0)
				if err != nil {
					t.Fatal(err)
				}
				if before.InFlight < set.MaxInFlight && before.Visible > 0 {
					// The queue decides about a message only when it is at the front, which the
					// list cannot know. So the list looks into the dead-letter queue.
					twin.settleUpTo(clk.now, dead)
				}
				for _, m := range got {
					i := slices.IndexFunc(twin.messages, func(p *plainMessage) bool { return p.body == m.Body })
					if i < 0 || twin.messages[i].from.After(clk.now) {
						t.Fatalf("%s came, which is not visible", m.Body)
					}
					p := twin.messages[i]
					p.count++
					p.from, p.received, p.receipt = clk.now.Add(set.Visibility), clk.now, m.Receipt
					if m.ReceiveCount != p.count || !m.Sent.Equal(p.sent) || slices.Contains(receipts, m.Receipt) {
						t.Fatalf("%s came with count %d, receipt %s, sent %s, want %d, a new one, %s", m.Body,
							m.ReceiveCount, m.Receipt, m.Sent, p.count, p.sent)
					}
					receipts = append(receipts, m.Receipt)
				}
				after := twin.counts(clk.now)
				if len(got) < limit && after.Visible > 0 && after.InFlight < set.MaxInFlight {
					t.Fatalf("%d messages came, asked for %d, %d are visible", len(got), limit, after.Visible)
				}
				if after.InFlight > set.MaxInFlight {
					t.Fatalf("%d are in flight", after.InFlight)
				}
			},
			"hold": func(t *rapid.T) {
				r := rapid.SampledFrom(receipts).Draw(t, "receipt")
				d := rapid.SampledFrom([]time.Duration{0, time.Second, 20 * time.Second, queue.MaxHold}).Draw(t, "for")
				err := queue.ErrorAt(q.Hold(ctx, []string{r}, d), 0)
				m := twin.find(r)
				switch {
				case m == nil || !m.from.After(clk.now):
					if !errors.Is(err, queue.ErrGone) {
						t.Fatalf("hold of %q: %v, want ErrGone", r, err)
					}
				case clk.now.Add(d).After(m.received.Add(queue.MaxHold)):
					if err == nil || errors.Is(err, queue.ErrGone) {
						t.Fatalf("hold beyond the limit: %v", err)
					}
				default:
					if err != nil {
						t.Fatalf("hold: %v", err)
					}
					m.from = clk.now.Add(d)
				}
			},
			"delete": func(t *rapid.T) {
				r := rapid.SampledFrom(receipts).Draw(t, "receipt")
				if errs := q.Delete(ctx, []string{r}); errs != nil {
					t.Fatal(errs)
				}
				if m := twin.find(r); m != nil {
					twin.messages = slices.DeleteFunc(twin.messages, func(p *plainMessage) bool { return p == m })
				}
			},
			"": func(t *rapid.T) {
				if got, want := q.Counts(), twin.counts(clk.now); got.InFlight != want.InFlight ||
					got.Delayed != want.Delayed || got.Visible < want.Visible {
					t.Fatalf("counts %+v, want %+v", got, want)
				}
			},
		})
		// In the end every sent message was deleted, expired, or is in exactly one of the queues.
		seen := map[string]int{}
		for range 200 {
			clk.pass(time.Second)
			got, err := q.Receive(ctx, 10, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range got {
				seen[m.Body]++
			}
			q.Delete(ctx, receiptsOf(got))
		}
		for body, times := range seen {
			if times != 1 {
				t.Fatalf("%s came %d times after the end", body, times)
			}
			if !slices.ContainsFunc(twin.messages, func(p *plainMessage) bool { return p.body == body }) {
				t.Fatalf("%s came and was deleted before", body)
			}
		}
		clk.pass(queue.MaxHold) // longer than the longest hold
		if got, want := q.Counts(), (memory.QueueCounts{}); got != want {
			t.Fatalf("counts %+v, want %+v", got, want)
		}
	})
}

// settleUpTo removes messages that moved to the dead-letter queue or expired.
func (q *plainQueue) settleUpTo(now time.Time, dead *memory.Queue) {
	moved, _ := dead.Receive(context.Background(), 1000, 0)
	gone := map[string]bool{}
	for _, m := range moved {
		gone[m.Body] = true
	}
	q.messages = slices.DeleteFunc(q.messages, func(m *plainMessage) bool {
		return gone[m.body] && m.count >= q.set.MaxReceiveCount && !m.from.After(now)
	})
}

func receiptsOf(batch []queue.Message) []string {
	out := make([]string, len(batch))
	for i := range batch {
		out[i] = batch[i].Receipt
	}
	return out
}

func TestNothingIsLostBetweenManySendersAndPollers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const senders, each = 8, 500
		q := memory.NewQueue(clock.NewFast(7), memory.QueueSettings{
			Name: "q", Visibility: 20 * time.Second,
			MaxInFlight: 700,
		})
		var mu sync.Mutex
		done := map[string]int{}
		dice := rand.New(rand.NewPCG(1, 2))
		m := memory.NewMapping(q, memory.MappingSettings{Batch: 100, Window: time.Second, Pollers: 5},
			func(_ context.Context, batch []queue.Message) ([]string, error) {
				mu.Lock()
				defer mu.Unlock()
				if dice.IntN(10) == 0 {
					return nil, errors.New("killed")
				}
				failed := []string{}
				for _, msg := range batch {
					if dice.IntN(3) == 0 {
						failed = append(failed, msg.ID)
					} else {
						done[msg.Body]++
					}
				}
				return failed, nil
			})
		ctx, cancel := context.WithCancel(t.Context())
		var wg, running sync.WaitGroup
		running.Go(func() { m.Run(ctx) })
		for s := range senders {
			wg.Go(func() {
				for i := range each {
					q.Send(ctx, []queue.Outgoing{{
						Body:  fmt.Sprint(s, "-", i),
						Delay: time.Duration(i%3) * time.Second,
					}})
					if i%50 == 0 {
						time.Sleep(100 * time.Millisecond)
					}
				}
			})
		}
		wg.Wait()
		time.Sleep(10 * time.Minute)
		cancel()
		running.Wait()
		if got, want := len(done), senders*each; got != want {
			t.Errorf("%d messages handled, want %d; the queue has %+v", got, want, q.Counts())
		}
		for body, n := range maps.All(done) {
			if n != 1 {
				t.Errorf("%s was handled %d times", body, n)
			}
		}
		if got, want := q.Counts(), (memory.QueueCounts{}); got != want {
			t.Errorf("counts %+v, want %+v", got, want)
		}
	})
}
