// SPDX-License-Identifier: Apache-2.0

package queuetest

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/seam/storetest"
)

func arrives(r run) {
	out := queue.Outgoing{
		Body: "{\"title\":\"größer \\u0000 <&>\",\n\t\"n\":1e400}",
		Attributes: map[string]queue.Attribute{
			queue.AttrSource:    queue.Text("govuk"),
			queue.AttrFirstSent: {Type: "Number", String: "1777888800123"},
			"key":               {Type: "Binary", Binary: []byte{0, 1, 2, 0xff, 0xfe}},
			"kind":              {Type: "String.custom", String: "größer"},
		},
	}
	r.granted("send", r.Queue.Send(r.Context(), []queue.Outgoing{out}))
	got := r.collect(r.Receive, 1)[0]
	if got.Body != out.Body {
		r.Errorf("body %q, want %q", got.Body, out.Body)
	}
	if !reflect.DeepEqual(got.Attributes, out.Attributes) {
		r.Errorf("attributes %v, want %v", got.Attributes, out.Attributes)
	}
	if got.ID == "" || got.Receipt == "" || got.MovedFrom != "" {
		r.Errorf("id %q, receipt %q, moved from %q, want the first two only", got.ID, got.Receipt, got.MovedFrom)
	}
	if got.ReceiveCount != 1 {
		r.Errorf("receive count %d, want 1", got.ReceiveCount)
	}
	if got.Sent.IsZero() || got.FirstReceived.Before(got.Sent) {
		r.Errorf("sent %s, first received %s, want both, in this order", got.Sent, got.FirstReceived)
	}
	if cut := got.Sent.Truncate(time.Millisecond); !cut.Equal(got.Sent) {
		r.Errorf("sent %s, want whole milliseconds", got.Sent)
	}
}

func sendsMany(r run) {
	want := numbered(25)
	r.all(r.sent(want...), want...)
}

func sendsLarge(r run) {
	want := make([]string, 5)
	for i := range want {
		want[i] = string(rune('a'+i)) + body(400<<10)
	}
	r.all(r.sent(want...), want...)
}

// Refuses sends valid messages and messages that SQS refuses in one call. It returns the bodies of
// the messages that the queue must have accepted.
func Refuses(t *testing.T, q queue.Queue) (taken []string) {
	t.Helper()
	attrs := func(n int) map[string]queue.Attribute {
		m := map[string]queue.Attribute{}
		for i := range n {
			m[fmt.Sprintf("a%d", i)] = queue.Text("x")
		}
		return m
	}
	just := body(queue.MaxBytes - 100)
	entries := []struct {
		queue.Outgoing
		bad, tooLarge bool
	}{
		{Outgoing: queue.Outgoing{Body: just}},
		{Outgoing: queue.Outgoing{Body: body(queue.MaxBytes + 1)}, bad: true, tooLarge: true},
		{
			Outgoing: queue.Outgoing{
				Body: just, Attributes: map[string]queue.Attribute{"a": queue.Text(strings.Repeat("x", 200))},
			},
			bad: true, tooLarge: true,
		},
		{Outgoing: queue.Outgoing{Body: "as many attributes as are allowed", Attributes: attrs(queue.MaxAttributes)}},
		{Outgoing: queue.Outgoing{Body: "one attribute too many", Attributes: attrs(queue.MaxAttributes + 1)}, bad: true},
		{Outgoing: queue.Outgoing{Body: ""}, bad: true},
		{Outgoing: queue.Outgoing{Body: "too late", Delay: queue.MaxDelay + time.Second}, bad: true},
		{Outgoing: queue.Outgoing{Body: "too early", Delay: -time.Second}, bad: true},
		{Outgoing: queue.Outgoing{Body: "plain"}},
	}
	out := make([]queue.Outgoing, len(entries))
	for i, e := range entries {
		if out[i] = e.Outgoing; !e.bad {
			taken = append(taken, e.Body)
		}
	}
	errs := q.Send(t.Context(), out)
	if len(errs) != len(out) {
		t.Fatalf("%d errors, want one for each of %d entries", len(errs), len(out))
	}
	for i, e := range entries {
		if errors.Is(errs[i], queue.ErrTooLarge) != e.tooLarge || (errs[i] != nil) != e.bad {
			t.Errorf("entry %d: %v, want refused %v, and as too large %v", i, errs[i], e.bad, e.tooLarge)
		}
	}
	return taken
}

// RefusesToHold holds a message in flight for times that SQS refuses.
func RefusesToHold(t *testing.T, q queue.Queue, receipt string) {
	t.Helper()
	for _, d := range []time.Duration{-1, queue.MaxHold + 1} {
		errs := q.Hold(t.Context(), []string{receipt, receipt}, d)
		if len(errs) != 2 || errs[0] == nil || errs[1] == nil || errors.Is(errs[1], queue.ErrGone) {
			t.Errorf("hold for %s: %v, want an error for each entry that is not ErrGone", d, errs)
		}
	}
}

func refuses(r run) {
	taken := Refuses(r.T, r.Queue)
	got := r.collect(r.Receive, len(taken))
	r.all(got, taken...)
	RefusesToHold(r.T, r.Queue, got[0].Receipt)
}

func nothing(r run) {
	r.granted("send", r.Queue.Send(r.Context(), nil))
	r.hold(time.Second)
	r.drop()
}

func delays(r run) {
	r.granted("send", r.Queue.Send(r.Context(), []queue.Outgoing{
		{Body: "later", Delay: 3 * time.Second},
		{Body: "now"},
	}))
	r.all(r.collect(r.Receive, 1), "now")
	r.none(time.Second)
	r.all(r.collect(r.Receive, 1), "later")
}

func visibility(r run) {
	first := r.sent("a")[0]
	r.none(time.Second)
	again := r.again(first)
	if !again.Sent.Equal(first.Sent) || !again.FirstReceived.Equal(first.FirstReceived) {
		r.Errorf("sent %s, first received %s, want %s and %s", again.Sent, again.FirstReceived, first.Sent,
			first.FirstReceived)
	}
}

func holds(r run) {
	m := r.sent("a")[0]
	r.hold(5*time.Second, m.Receipt)
	r.none(3 * time.Second)
	r.hold(4*time.Second, m.Receipt)
	r.none(3 * time.Second)
	r.again(m)
}

func releases(r run) {
	m := r.sent("a")[0]
	r.none(time.Second)
	r.hold(0, m.Receipt)
	r.again(m)
}

func holdGone(r run) {
	got := r.sent("a", "b")
	r.drop(got[0].Receipt)
	errs := r.Queue.Hold(r.Context(), []string{got[0].Receipt, got[1].Receipt}, 6*time.Second)
	if len(errs) != 2 || !errors.Is(errs[0], queue.ErrGone) || errs[1] != nil {
		r.Errorf("hold: %v, want ErrGone for the first only", errs)
	}
	r.none(4 * time.Second)
}

func holdStale(r run) {
	first := r.sent("a")[0]
	again := r.again(first)
	errs := r.Queue.Hold(r.Context(), []string{first.Receipt, again.Receipt, "no receipt"}, 4*time.Second)
	if len(errs) != 3 || !errors.Is(errs[0], queue.ErrGone) || errs[1] != nil || !errors.Is(errs[2], queue.ErrGone) {
		r.Errorf("hold: %v, want ErrGone for the stale receipt and for the invalid text", errs)
	}
	r.collect(r.Receive, 1) // the message is visible again, so it is not in flight
	if errs := r.Queue.Hold(r.Context(), []string{again.Receipt}, 4*time.Second); !errors.Is(queue.ErrorAt(errs, 0),
		queue.ErrGone) {
		r.Errorf("hold: %v, want ErrGone", errs)
	}
}

func holdsMany(r run) {
	r.hold(60*time.Second, receipts(r.sent(numbered(23)...))...)
	r.none(6 * time.Second)
}

func twelveHours(r run) {
	m := r.sent("a")[0]
	r.none(2 * time.Second)
	err := queue.ErrorAt(r.Queue.Hold(r.Context(), []string{m.Receipt}, queue.MaxHold), 0)
	if err == nil || errors.Is(err, queue.ErrGone) {
		r.Errorf("hold twelve hours, two seconds after the receive: %v, want an error that is not ErrGone", err)
	}
	r.hold(queue.MaxHold-time.Minute, m.Receipt)
}

func deletes(r run) {
	got := r.sent("a", "b")
	r.drop(got[0].Receipt)
	if again := r.collect(r.Receive, 1)[0]; again.ID != got[1].ID {
		r.Errorf("%s was received again, want %s", again.ID, got[1].ID)
	}
	r.none(time.Second)
}

func deletesTwice(r run) {
	got := receipts(r.sent("a", "b"))
	for range 2 {
		r.drop(got[0], got[0], got[1], got[0])
	}
}

func deletesMany(r run) {
	got := receipts(r.sent(numbered(23)...))
	r.drop(append(got, got...)...)
	r.none(6 * time.Second)
}

func moves(r run) {
	first := r.sent("a")[0]
	r.again(first)
	r.none(3 * time.Second)
	dead := r.collect(r.Dead, 1)[0]
	if dead.Body != "a" || dead.MovedFrom != r.Moved || !dead.Sent.Equal(first.Sent) {
		r.Errorf("%q moved from %q, sent %s, want %q from %q, sent %s", dead.Body, dead.MovedFrom, dead.Sent, "a",
			r.Moved, first.Sent)
	}
}

func endedContext(r run) {
	got := receipts(r.sent("a", "b"))
	ended := storetest.Ended(r)
	for name, errs := range map[string][]error{
		"send":   r.Queue.Send(ended, []queue.Outgoing{{Body: "c"}, {Body: "d"}}),
		"hold":   r.Queue.Hold(ended, got, 0),
		"delete": r.Queue.Delete(ended, got),
	} {
		if len(errs) != 2 || errs[0] == nil || errs[1] == nil {
			r.Errorf("%s: %v, want an error for each entry", name, errs)
		}
	}
	r.none(0)
}
