// SPDX-License-Identifier: Apache-2.0

package emulation_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lullhq/lull/internal/local/emulation"
	"github.com/lullhq/lull/internal/seam/queue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var origin = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// open returns a queue with the given messages, which were sent at the origin.
func open(t *testing.T, set emulation.QueueSettings, bodies ...string) *emulation.Queue {
	t.Helper()
	set.Name, set.Origin, set.MaxInFlight = "q", origin, emulation.MaxInFlight
	q := emulation.NewQueue(set)
	for _, body := range bodies {
		m, err := q.New(0, &queue.Outgoing{Body: body})
		if err != nil {
			t.Fatal(err)
		}
		q.Enter(0, m, 0)
	}
	return q
}

// receive fills a batch and returns its messages.
func receive(q *emulation.Queue, now time.Duration, limit int) []queue.Message {
	q.Advance(now)
	b := emulation.NewBatch(limit, 0)
	b.Fill(q, now, 0)
	return b.Messages
}

func TestAMessagePastItsRetentionGoes(t *testing.T) {
	t.Parallel()
	q := open(t, emulation.QueueSettings{Retention: time.Hour, Visibility: 50 * time.Minute}, "a", "b")
	receive(q, 0, 1)
	for _, c := range []struct {
		now  time.Duration
		want emulation.Counts
	}{{59 * time.Minute, emulation.Counts{Visible: 2}}, {time.Hour, emulation.Counts{}}} {
		q.Advance(c.now)
		q.Expire(c.now)
		if got := q.Counts(); got != c.want {
			t.Errorf("after %s: %+v, want %+v", c.now, got, c.want)
		}
	}
}

func TestAMessageReceivedTooOftenMovesAndKeepsItsIdentity(t *testing.T) {
	t.Parallel()
	var moved []queue.Message
	q := open(t, emulation.QueueSettings{
		Retention: time.Hour, Visibility: time.Second, MaxReceiveCount: 2,
		Dead: func(m queue.Message) { moved = append(moved, m) },
	}, "a")
	first := receive(q, time.Second, 1)[0]
	if again := receive(q, 2*time.Second, 1); len(again) != 1 || again[0].ReceiveCount != 2 ||
		!again[0].FirstReceived.Equal(first.FirstReceived) {
		t.Errorf("received again: %+v", again)
	}
	if got := receive(q, 3*time.Second, 1); len(got) != 0 {
		t.Errorf("received %v after the last permitted receive", got)
	}
	want := queue.Message{ID: first.ID, Body: "a", Sent: origin, MovedFrom: "q"}
	if len(moved) != 1 || moved[0].ID != want.ID || moved[0].MovedFrom != want.MovedFrom ||
		!moved[0].Sent.Equal(want.Sent) || moved[0].ReceiveCount != 0 || moved[0].Receipt != "" ||
		!moved[0].FirstReceived.IsZero() {
		t.Errorf("moved %+v, want %+v", moved, want)
	}
	if got := q.Counts().Total(); got != 0 {
		t.Errorf("%d messages are left in the source queue", got)
	}
}

// A batch keeps the receipts of its own receives. If a message is received again, the receipt in
// the batch is no longer valid.
func TestABatchKeepsTheReceiptsOfItsReceives(t *testing.T) {
	t.Parallel()
	q := open(t, emulation.QueueSettings{Retention: time.Hour, Visibility: time.Second}, "a")
	b := emulation.NewBatch(10, 5*time.Second)
	b.Fill(q, 0, 10)
	q.Advance(time.Second)
	again := receive(q, time.Second, 1)
	if _, latest := q.Find(b.Messages[0].Receipt); latest || again[0].Receipt == b.Messages[0].Receipt {
		t.Errorf("the batch has receipt %s, the message %s", b.Messages[0].Receipt, again[0].Receipt)
	}
	b.GiveBack(q, time.Second)
	if got, want := q.Counts(), (emulation.Counts{InFlight: 1}); got != want {
		t.Errorf("given back by a stale receipt: %+v, want %+v", got, want)
	}
}

func TestTheMappingDeletesWhatIsNotReportedAsFailed(t *testing.T) {
	t.Parallel()
	batch := []queue.Message{{ID: "a", Receipt: "1"}, {ID: "b", Receipt: "2"}, {ID: "b", Receipt: "3"}}
	for _, c := range []struct {
		name   string
		failed []string
		done   int // -1: the whole batch stays
	}{
		{"nothing", nil, 3},
		{"one", []string{"a"}, 2},
		{"one twice", []string{"a", "a"}, 2},
		{"one that was delivered twice", []string{"b"}, 1},
		{"an unknown one", []string{"a", "x"}, -1},
		{"an unknown one beside one that was delivered twice", []string{"b", "x"}, -1},
		{"an empty one", []string{""}, -1},
	} {
		done, err := emulation.Succeeded(batch, c.failed)
		if err == nil && len(done) != c.done || err != nil && c.done >= 0 {
			t.Errorf("%s: %v, %v, want %d to be deleted", c.name, done, err, c.done)
		}
	}
}
