// SPDX-License-Identifier: Apache-2.0

package queuetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/seam/storetest"
)

// Settings are the settings that a test needs of its queue. If a field is zero, the backend chooses
// the setting.
type Settings struct {
	Visibility      time.Duration // whole seconds
	MaxReceiveCount int           // if not 0, the queue has a dead-letter queue
}

// Receive is ReceiveMessage. It returns up to limit messages, and waits up to wait for the first
// message. It may return fewer messages than the queue has.
type Receive func(ctx context.Context, limit int, wait time.Duration) ([]queue.Message, error)

// Backend is an empty queue under test.
type Backend struct {
	Queue   queue.Queue
	Receive Receive
	Dead    Receive // receives from the dead-letter queue, if Settings ask for one
	Moved   string  // the MovedFrom of messages in the dead-letter queue
}

// Capabilities select the tests that a backend can pass.
type Capabilities struct {
	// Bubble runs each test with virtual time, as testing/synctest.Test does. If Bubble is nil,
	// tests run in real time.
	Bubble func(t *testing.T, f func(t *testing.T))
	// StaleIsGone says that a receipt handle of an earlier receive is refused. SQS may accept such
	// a handle or not.
	StaleIsGone bool
	// TwelveHours says that the backend refuses to hold a message for longer than twelve hours.
	// Some emulators do not refuse this.
	TwelveHours bool
	// Redrive says that messages received too often move to the dead-letter queue.
	Redrive bool
}

// Open makes an empty queue for one test.
type Open func(t *testing.T, s Settings) Backend

// Run runs the suite.
func Run(t *testing.T, open Open, c Capabilities) {
	t.Helper()
	long, brief := Settings{Visibility: 600 * time.Second}, Settings{Visibility: 2 * time.Second}
	lasts := func(seconds time.Duration) Settings { return Settings{Visibility: seconds * time.Second} }
	for _, test := range []struct {
		name     string
		needs    bool
		settings Settings
		check    func(run)
	}{
		{"a message arrives byte for byte", true, long, arrives},
		{"many messages are sent by one call", true, long, sendsMany},
		{"the messages of one call may be larger than one message may be", true, long, sendsLarge},
		{"a message that SQS refuses fails alone", true, long, refuses},
		{"sending, holding and deleting nothing succeeds", true, long, nothing},
		{"a delayed message arrives after its delay", true, long, delays},
		{
			"a received message is invisible until its visibility ends, then arrives again", true, lasts(3), visibility,
		},
		{"a hold lasts for its time from now", true, brief, holds},
		{"a hold of zero makes a message visible at once", true, long, releases},
		{"a hold of a deleted message fails with ErrGone and does not affect other messages", true, brief, holdGone},
		{"a hold by a stale receipt fails with ErrGone", c.StaleIsGone, brief, holdStale},
		{"a hold of more than ten messages holds them all", true, lasts(4), holdsMany},
		{"a hold beyond twelve hours fails, but not with ErrGone", c.TwelveHours, lasts(5), twelveHours},
		{"a deleted message never arrives again", true, brief, deletes},
		{"deleting a message again succeeds", true, long, deletesTwice},
		{"more than ten messages are deleted by one call", true, lasts(4), deletesMany},
		{
			"a message received too often is moved, and MovedFrom names its queue", c.Redrive,
			Settings{Visibility: time.Second, MaxReceiveCount: 2},
			moves,
		},
		{"a call under a context that has ended fails for every entry", true, long, endedContext},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if !test.needs {
				t.Skip("the backend does not promise this")
			}
			check := func(t *testing.T) { test.check(run{t, open(t, test.settings)}) }
			if c.Bubble == nil {
				check(t)
				return
			}
			c.Bubble(t, check)
		})
	}
}

// run is one test of a queue.
type run struct {
	*testing.T
	Backend
}

// send sends messages that have only a body.
func (r run) send(bodies ...string) {
	r.Helper()
	out := make([]queue.Outgoing, len(bodies))
	for i, body := range bodies {
		out[i].Body = body
	}
	r.granted("send", r.Queue.Send(r.Context(), out))
}

// sent sends messages that have only a body, and receives them in any order.
func (r run) sent(bodies ...string) []queue.Message {
	r.Helper()
	r.send(bodies...)
	return r.collect(r.Receive, len(bodies))
}

// granted requires that a call succeeded for each entry.
func (r run) granted(call string, errs []error) {
	r.Helper()
	if errs != nil {
		r.Fatalf("%s: %v, want nil", call, errs)
	}
}

// hold holds messages, and requires success for each.
func (r run) hold(d time.Duration, receipts ...string) {
	r.Helper()
	r.granted("hold", r.Queue.Hold(r.Context(), receipts, d))
}

// drop deletes messages, and requires success for each.
func (r run) drop(receipts ...string) {
	r.Helper()
	r.granted("delete", r.Queue.Delete(r.Context(), receipts))
}

// again receives a message for the second time.
func (r run) again(first queue.Message) queue.Message {
	r.Helper()
	m := r.collect(r.Receive, 1)[0]
	if m.ID != first.ID || m.Receipt == first.Receipt || m.ReceiveCount != 2 {
		r.Errorf("got %s, receipt new %v, count %d, want %s, true, 2", m.ID, m.Receipt != first.Receipt, m.ReceiveCount,
			first.ID)
	}
	return m
}

// collect receives until it has n messages. It stops after 20 + n calls.
func (r run) collect(receive Receive, n int) []queue.Message {
	r.Helper()
	var got []queue.Message
	for range 20 + n {
		batch, err := receive(r.Context(), min(n-len(got), queue.MaxEntries), time.Second)
		storetest.OK(r, "receive", err)
		if got = append(got, batch...); len(got) >= n {
			break
		}
	}
	if len(got) != n {
		r.Fatalf("received %d messages, want %d", len(got), n)
	}
	return got
}

// none receives for the time wait and requires that no message arrives.
func (r run) none(wait time.Duration) {
	r.Helper()
	got, err := r.Receive(r.Context(), queue.MaxEntries, wait)
	storetest.OK(r, "receive", err)
	if len(got) > 0 {
		r.Fatalf("received %d messages, want none", len(got))
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

// all requires that the messages have these bodies, each exactly once.
func (r run) all(got []queue.Message, want ...string) {
	r.Helper()
	bodies := make([]string, len(got))
	for i, m := range got {
		bodies[i] = m.Body
	}
	slices.Sort(bodies)
	if want = slices.Sorted(slices.Values(want)); !slices.Equal(bodies, want) {
		r.Errorf("got %.40q, want %.40q", bodies, want)
	}
}

func body(n int) string { return strings.Repeat("0123456789abcde\n", n/16+1)[:n] }
