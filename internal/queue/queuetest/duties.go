package queuetest

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/internal/storetest"
)

func arrives(t *testing.T, open Open) {
	b := open(t, long)
	out := queue.Outgoing{
		Body: "{\"title\":\"größer \\u0000 <&>\",\n\t\"n\":1e400}",
		Attributes: map[string]queue.Attribute{
			queue.AttrSource:    queue.Text("govuk"),
			queue.AttrFirstSent: {Type: "Number", String: "1777888800123"},
			"key":               {Type: "Binary", Binary: []byte{0, 1, 2, 0xff, 0xfe}},
			"kind":              {Type: "String.custom", String: "größer"},
		},
	}
	granted(t, "send", b.Queue.Send(t.Context(), []queue.Outgoing{out}))
	got := collect(t, b.Receive, 1)[0]
	if got.Body != out.Body {
		t.Errorf("body %q, want %q", got.Body, out.Body)
	}
	if !reflect.DeepEqual(got.Attributes, out.Attributes) {
		t.Errorf("attributes %v, want %v", got.Attributes, out.Attributes)
	}
	if got.ID == "" || got.Receipt == "" || got.MovedFrom != "" {
		t.Errorf("id %q, receipt %q, moved from %q, want the first two only", got.ID, got.Receipt, got.MovedFrom)
	}
	if got.ReceiveCount != 1 {
		t.Errorf("receive count %d, want 1", got.ReceiveCount)
	}
	if got.Sent.IsZero() || got.FirstReceived.Before(got.Sent) {
		t.Errorf("sent %s, first received %s, want both, in this order", got.Sent, got.FirstReceived)
	}
	if cut := got.Sent.Truncate(time.Millisecond); !cut.Equal(got.Sent) {
		t.Errorf("sent %s, want whole milliseconds", got.Sent)
	}
}

func sendsMany(t *testing.T, open Open) {
	b := open(t, long)
	want := numbered(25)
	b.send(t, want...)
	all(t, collect(t, b.Receive, 25), want)
}

func sendsLarge(t *testing.T, open Open) {
	b := open(t, long)
	want := make([]string, 5)
	for i := range want {
		want[i] = string(rune('a'+i)) + body(400<<10)
	}
	b.send(t, want...)
	all(t, collect(t, b.Receive, 5), want)
}

// Refuses sends what SQS takes and what it refuses by one call, and holds for times that SQS
// refuses. It returns the bodies that the queue has to have taken.
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
		{Outgoing: queue.Outgoing{Body: "as many attributes as may be", Attributes: attrs(queue.MaxAttributes)}},
		{Outgoing: queue.Outgoing{Body: "one more", Attributes: attrs(queue.MaxAttributes + 1)}, bad: true},
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
			t.Errorf("entry %d: %v, want refused: %v, as too large: %v", i, errs[i], e.bad, e.tooLarge)
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

func refuses(t *testing.T, open Open) {
	b := open(t, long)
	taken := Refuses(t, b.Queue)
	got := collect(t, b.Receive, len(taken))
	all(t, got, taken)
	RefusesToHold(t, b.Queue, got[0].Receipt)
}

func nothing(t *testing.T, open Open) {
	b := open(t, long)
	granted(t, "send", b.Queue.Send(t.Context(), nil))
	granted(t, "hold", b.Queue.Hold(t.Context(), nil, time.Second))
	granted(t, "delete", b.Queue.Delete(t.Context(), nil))
}

func delays(t *testing.T, open Open) {
	b := open(t, long)
	granted(t, "send", b.Queue.Send(t.Context(), []queue.Outgoing{
		{Body: "later", Delay: 3 * time.Second},
		{Body: "now"},
	}))
	all(t, collect(t, b.Receive, 1), []string{"now"})
	b.none(t, time.Second)
	all(t, collect(t, b.Receive, 1), []string{"later"})
}

func visibility(t *testing.T, open Open) {
	b := open(t, Settings{Visibility: 3 * time.Second})
	b.send(t, "a")
	first := collect(t, b.Receive, 1)[0]
	b.none(t, time.Second)
	again := b.again(t, first)
	if !again.Sent.Equal(first.Sent) || !again.FirstReceived.Equal(first.FirstReceived) {
		t.Errorf("sent %s, first received %s, want %s and %s", again.Sent, again.FirstReceived, first.Sent,
			first.FirstReceived)
	}
}

func holds(t *testing.T, open Open) {
	b := open(t, Settings{Visibility: 2 * time.Second})
	b.send(t, "a")
	m := collect(t, b.Receive, 1)[0]
	granted(t, "hold", b.Queue.Hold(t.Context(), []string{m.Receipt}, 5*time.Second))
	b.none(t, 3*time.Second)
	granted(t, "hold again", b.Queue.Hold(t.Context(), []string{m.Receipt}, 4*time.Second))
	b.none(t, 3*time.Second)
	b.again(t, m)
}

func releases(t *testing.T, open Open) {
	b := open(t, long)
	b.send(t, "a")
	m := collect(t, b.Receive, 1)[0]
	b.none(t, time.Second)
	granted(t, "hold", b.Queue.Hold(t.Context(), []string{m.Receipt}, 0))
	b.again(t, m)
}

func holdGone(t *testing.T, open Open) {
	b := open(t, Settings{Visibility: 2 * time.Second})
	b.send(t, "a", "b")
	got := collect(t, b.Receive, 2)
	granted(t, "delete", b.Queue.Delete(t.Context(), []string{got[0].Receipt}))
	errs := b.Queue.Hold(t.Context(), []string{got[0].Receipt, got[1].Receipt}, 6*time.Second)
	if len(errs) != 2 || !errors.Is(errs[0], queue.ErrGone) || errs[1] != nil {
		t.Errorf("hold: %v, want ErrGone for the first only", errs)
	}
	b.none(t, 4*time.Second)
}

func holdStale(t *testing.T, open Open) {
	b := open(t, Settings{Visibility: 2 * time.Second})
	b.send(t, "a")
	first := collect(t, b.Receive, 1)[0]
	again := b.again(t, first)
	errs := b.Queue.Hold(t.Context(), []string{first.Receipt, again.Receipt, "no receipt"}, 4*time.Second)
	if len(errs) != 3 || !errors.Is(errs[0], queue.ErrGone) || errs[1] != nil || !errors.Is(errs[2], queue.ErrGone) {
		t.Errorf("hold: %v, want ErrGone for the stale one and for what is not a receipt", errs)
	}
	collect(t, b.Receive, 1) // visible again: not in flight
	if errs := b.Queue.Hold(t.Context(), []string{again.Receipt}, 4*time.Second); !errors.Is(queue.ErrorAt(errs, 0),
		queue.ErrGone) {
		t.Errorf("hold: %v, want ErrGone", errs)
	}
}

func holdsMany(t *testing.T, open Open) {
	b := open(t, Settings{Visibility: 4 * time.Second})
	want := numbered(23)
	b.send(t, want...)
	granted(t, "hold", b.Queue.Hold(t.Context(), receipts(collect(t, b.Receive, 23)), 60*time.Second))
	b.none(t, 6*time.Second)
}

func twelveHours(t *testing.T, open Open) {
	b := open(t, Settings{Visibility: 5 * time.Second})
	b.send(t, "a")
	m := collect(t, b.Receive, 1)[0]
	b.none(t, 2*time.Second)
	err := queue.ErrorAt(b.Queue.Hold(t.Context(), []string{m.Receipt}, queue.MaxHold), 0)
	if err == nil || errors.Is(err, queue.ErrGone) {
		t.Errorf("hold twelve hours, two seconds after the receive: %v, want an error that is not ErrGone", err)
	}
	granted(t, "hold within the limit", b.Queue.Hold(t.Context(), []string{m.Receipt}, queue.MaxHold-time.Minute))
}

func deletes(t *testing.T, open Open) {
	b := open(t, Settings{Visibility: 2 * time.Second})
	b.send(t, "a", "b")
	got := collect(t, b.Receive, 2)
	granted(t, "delete", b.Queue.Delete(t.Context(), []string{got[0].Receipt}))
	if again := collect(t, b.Receive, 1)[0]; again.ID != got[1].ID {
		t.Errorf("%s came again, want %s", again.ID, got[1].ID)
	}
	b.none(t, time.Second)
}

func deletesTwice(t *testing.T, open Open) {
	b := open(t, long)
	b.send(t, "a", "b")
	got := receipts(collect(t, b.Receive, 2))
	for range 2 {
		granted(t, "delete", b.Queue.Delete(t.Context(), []string{got[0], got[0], got[1], got[0]}))
	}
}

func deletesMany(t *testing.T, open Open) {
	b := open(t, Settings{Visibility: 4 * time.Second})
	b.send(t, numbered(23)...)
	got := receipts(collect(t, b.Receive, 23))
	granted(t, "delete", b.Queue.Delete(t.Context(), append(got, got...)))
	b.none(t, 6*time.Second)
}

func moves(t *testing.T, open Open) {
	b := open(t, Settings{Visibility: time.Second, MaxReceiveCount: 2})
	b.send(t, "a")
	first := collect(t, b.Receive, 1)[0]
	b.again(t, first)
	b.none(t, 3*time.Second)
	dead := collect(t, b.Dead, 1)[0]
	if dead.Body != "a" || dead.MovedFrom != b.Moved || !dead.Sent.Equal(first.Sent) {
		t.Errorf("%q moved from %q, sent %s, want %q from %q, sent %s", dead.Body, dead.MovedFrom, dead.Sent, "a",
			b.Moved, first.Sent)
	}
}

func endedContext(t *testing.T, open Open) {
	b := open(t, long)
	b.send(t, "a", "b")
	got := receipts(collect(t, b.Receive, 2))
	ended := storetest.Ended(t)
	for name, errs := range map[string][]error{
		"send":   b.Queue.Send(ended, []queue.Outgoing{{Body: "c"}, {Body: "d"}}),
		"hold":   b.Queue.Hold(ended, got, 0),
		"delete": b.Queue.Delete(ended, got),
	} {
		if len(errs) != 2 || errs[0] == nil || errs[1] == nil {
			t.Errorf("%s: %v, want an error for each entry", name, errs)
		}
	}
	b.none(t, 0)
}
