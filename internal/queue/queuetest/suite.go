package queuetest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/queue"
)

// Settings are what a test needs of its queue. Zero fields leave it to the backend.
type Settings struct {
	Visibility      time.Duration // whole seconds
	MaxReceiveCount int           // not 0: the queue has a dead-letter queue
}

// Receive is ReceiveMessage: up to limit messages, waiting up to wait for the first. It may return
// fewer than there are.
type Receive func(ctx context.Context, limit int, wait time.Duration) ([]queue.Message, error)

// Backend is an empty queue under test.
type Backend struct {
	Queue   queue.Queue
	Receive Receive
	Dead    Receive // from the dead-letter queue, where Settings ask for one
	Moved   string  // MovedFrom of what comes from the dead-letter queue
}

// Capabilities select what applies.
type Capabilities struct {
	// Bubble runs each test where time is virtual: testing/synctest.Test. Nil runs it in real time.
	Bubble func(t *testing.T, f func(t *testing.T))
	// StaleIsGone: a receipt of an earlier receive is refused. SQS may honour it or not.
	StaleIsGone bool
	// TwelveHours: the limit of a hold is kept. Some emulators do not know it.
	TwelveHours bool
	// Redrive: messages received too often move to the dead-letter queue.
	Redrive bool
}

// Open makes an empty queue for one test.
type Open func(t *testing.T, s Settings) Backend

// Run is the suite.
func Run(t *testing.T, open Open, c Capabilities) {
	t.Helper()
	for _, test := range []struct {
		name  string
		needs bool
		run   func(*testing.T, Open)
	}{
		{"a message arrives byte for byte", true, arrives},
		{"many messages are sent by one call", true, sendsMany},
		{"a call may be larger than a message", true, sendsLarge},
		{"what SQS refuses fails alone", true, refuses},
		{"sending, holding and deleting nothing succeeds", true, nothing},
		{"a delayed message comes after its delay", true, delays},
		{"a received message is invisible until its visibility ends, then comes again", true, visibility},
		{"a hold lasts as long as asked for, from now", true, holds},
		{"a hold of zero makes a message visible at once", true, releases},
		{"a hold of a message that is gone says so and harms no other", true, holdGone},
		{"a hold by a stale receipt says so", c.StaleIsGone, holdStale},
		{"a hold of more than ten messages holds them all", true, holdsMany},
		{"a hold beyond twelve hours fails, though the message is not gone", c.TwelveHours, twelveHours},
		{"a deleted message never comes again", true, deletes},
		{"deleting twice, or what is gone, succeeds", true, deletesTwice},
		{"more than ten messages are deleted by one call", true, deletesMany},
		{"a message received too often moves and says from where", c.Redrive, moves},
		{"a call under a context that has ended fails for every entry", true, endedContext},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if !test.needs {
				t.Skip("the backend does not promise this")
			}
			if c.Bubble == nil {
				test.run(t, open)
				return
			}
			c.Bubble(t, func(t *testing.T) { test.run(t, open) })
		})
	}
}

// send sends plain messages.
func (b Backend) send(t *testing.T, bodies ...string) {
	t.Helper()
	out := make([]queue.Outgoing, len(bodies))
	for i, body := range bodies {
		out[i].Body = body
	}
	granted(t, "send", b.Queue.Send(t.Context(), out))
}

// granted wants the answer of a call that succeeded for each entry.
func granted(t *testing.T, call string, errs []error) {
	t.Helper()
	if errs != nil {
		t.Fatalf("%s: %v, want nil", call, errs)
	}
}

// again receives a message for the second time.
func (b Backend) again(t *testing.T, first queue.Message) queue.Message {
	t.Helper()
	m := collect(t, b.Receive, 1)[0]
	if m.ID != first.ID || m.Receipt == first.Receipt || m.ReceiveCount != 2 {
		t.Errorf("got %s, receipt new %v, count %d, want %s, true, 2", m.ID, m.Receipt != first.Receipt, m.ReceiveCount,
			first.ID)
	}
	return m
}

// collect receives until it has n messages or waited twenty times in vain.
func collect(t *testing.T, r Receive, n int) []queue.Message {
	t.Helper()
	var got []queue.Message
	for range 20 + n {
		batch, err := r(t.Context(), min(n-len(got), queue.MaxEntries), time.Second)
		if err != nil {
			t.Fatalf("receive: %v", err)
		}
		if got = append(got, batch...); len(got) >= n {
			break
		}
	}
	if len(got) != n {
		t.Fatalf("received %d messages, want %d", len(got), n)
	}
	return got
}

// none receives for as long as wait and wants nothing.
func (b Backend) none(t *testing.T, wait time.Duration) {
	t.Helper()
	got, err := b.Receive(t.Context(), queue.MaxEntries, wait)
	if err != nil {
		t.Fatalf("receive: %v", err)
	}
	if len(got) > 0 {
		t.Fatalf("received %d messages, want none", len(got))
	}
}

func receipts(batch []queue.Message) []string {
	out := make([]string, len(batch))
	for i := range batch {
		out[i] = batch[i].Receipt
	}
	return out
}

func numbered(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("message %d", i)
	}
	return out
}

// all wants each body once.
func all(t *testing.T, got []queue.Message, want []string) {
	t.Helper()
	seen := map[string]int{}
	for _, m := range got {
		seen[m.Body]++
	}
	for _, body := range want {
		if seen[body] != 1 {
			t.Errorf("%q came %d times, want once", shorten(body), seen[body])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d messages, want %d", len(got), len(want))
	}
}

func shorten(s string) string {
	if len(s) > 40 {
		return s[:40] + "..."
	}
	return s
}

var long = Settings{Visibility: 600 * time.Second}

func body(n int) string { return strings.Repeat("0123456789abcde\n", n/16+1)[:n] }
