// SPDX-License-Identifier: Apache-2.0

package lambda

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/aws/awstest"
	"github.com/lullhq/lull/internal/aws/metrics"
	"github.com/lullhq/lull/internal/seam/queue"
)

func newJournal() (*Journal, *bytes.Buffer) {
	var out bytes.Buffer
	return NewJournal(&out, slog.LevelInfo, metrics.Base{Stack: "lull", Sink: "search", Function: "test"}), &out
}

// total returns the sum of the values of a metric in all lines.
func total(t *testing.T, out *bytes.Buffer, name string) float64 {
	t.Helper()
	sum := 0.0
	for _, m := range awstest.Lines(t, out) {
		if n, ok := m[name].(float64); ok && m["_aws"] != nil {
			sum += n
		}
	}
	return sum
}

// messages returns an SQS event of the queue q. The messages have the ids 0 to n-1.
func messages(n int) []byte {
	records := make([]string, n)
	for i := range records {
		records[i] = record(func(r map[string]any) { r["messageId"] = fmt.Sprint(i) })
	}
	return []byte(`{"Records":[` + strings.Join(records, ",") + `]}`)
}

// failures returns the ids of the failed messages in an answer, sorted.
func failures(t *testing.T, answer []byte) []string {
	t.Helper()
	var a struct {
		BatchItemFailures []struct{ ItemIdentifier string }
	}
	if err := json.Unmarshal(answer, &a); err != nil {
		t.Fatalf("answer %q: %v", answer, err)
	}
	ids := make([]string, len(a.BatchItemFailures))
	for i, f := range a.BatchItemFailures {
		ids[i] = f.ItemIdentifier
	}
	slices.Sort(ids)
	return ids
}

func queues(j *Journal, h Handle) *Queues {
	return &Queues{Handles: map[string]Handle{"q": h}, Limit: 6 * time.Second, Journal: j}
}

func TestTheAnswerIsWhatTheHandleKeeps(t *testing.T) {
	t.Parallel()
	j, out := newJournal()
	var writes int64
	j.rows = func() (int64, int64, int64) { return 0, writes, 0 }
	q := queues(j, func(_ context.Context, msgs []queue.Message) []string {
		writes += 3
		// An unknown, empty or repeated id in the answer makes Lambda fail or delete the whole
		// batch.
		return []string{msgs[1].ID, "unknown", "", msgs[1].ID}
	})
	answer, err := q.Invoke(t.Context(), messages(3))
	if err != nil || !slices.Equal(failures(t, answer), []string{"1"}) {
		t.Errorf("got %s, %v", answer, err)
	}
	if total(t, out, metrics.RowWrites) != 3 {
		t.Errorf("the log does not count the 3 row writes of the handle: %s", out)
	}
}

func TestAPanicFailsTheMessagesThatCauseIt(t *testing.T) {
	t.Parallel()
	for _, poison := range [][]string{{"0"}, {"99"}, {"17", "18"}, {"5", "50", "95"}} {
		j, out := newJournal()
		good := map[string]int{}
		q := queues(j, func(_ context.Context, msgs []queue.Message) []string {
			for _, m := range msgs {
				if slices.Contains(poison, m.ID) {
					panic("hunter2")
				}
			}
			for _, m := range msgs {
				good[m.ID]++
			}
			return nil
		})
		answer, err := q.Invoke(t.Context(), messages(100))
		got := failures(t, answer)
		if err != nil || !slices.Equal(got, poison) {
			t.Errorf("got %v, %v, want %v", got, err, poison)
		}
		if len(good) != 100-len(poison) {
			t.Errorf("%v: %d messages were handled, want the other %d", poison, len(good), 100-len(poison))
		}
		if strings.Contains(out.String(), "hunter2") {
			t.Error("the log contains the panic's value")
		}
		if total(t, out, metrics.Panics) == 0 {
			t.Error("the metric Panics counts no panic")
		}
	}
}

func TestARuntimeErrorIsNamed(t *testing.T) {
	t.Parallel()
	j, out := newJournal()
	q := queues(j, func(_ context.Context, msgs []queue.Message) []string { return []string{msgs[len(msgs)].ID} })
	answer, err := q.Invoke(t.Context(), messages(1))
	if err != nil || len(failures(t, answer)) != 1 || !strings.Contains(out.String(), "index out of range") {
		t.Errorf("got %s, %v: %s", answer, err, out)
	}
}

func TestAPanicThatLastsEndsWithTheTime(t *testing.T) {
	t.Parallel()
	j, _ := newJournal()
	calls := 0
	ctx, cancel := context.WithCancel(t.Context())
	q := queues(j, func(context.Context, []queue.Message) []string {
		calls++
		cancel()
		panic("again")
	})
	answer, err := q.Invoke(ctx, messages(1000))
	if err != nil || len(failures(t, answer)) != 1000 || calls != 1 {
		t.Errorf("got %d failures after %d calls, %v; want 1000 failures after one call", len(failures(t, answer)), calls, err)
	}
}

func TestTheContextEndsBeforeTheInvocation(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		deadline time.Duration // 0 for none
		limit    time.Duration
		want     time.Duration
	}{
		{"Lambda's deadline is earlier", 3 * time.Second, 6 * time.Second, 3*time.Second - answerMargin},
		{"the time-out of the settings is earlier", time.Minute, 6 * time.Second, 6*time.Second - answerMargin},
		{"Lambda gives no deadline", 0, 6 * time.Second, 6*time.Second - answerMargin},
		{"the deadline has passed", -time.Second, 6 * time.Second, -time.Second - answerMargin},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			if tt.deadline != 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithDeadline(ctx, time.Now().Add(tt.deadline))
				defer cancel()
			}
			start := time.Now()
			got, cancel := within(ctx, tt.limit, answerMargin)
			defer cancel()
			end, ok := got.Deadline()
			if diff := end.Sub(start) - tt.want; !ok || diff < -time.Second || diff > time.Second {
				t.Errorf("got %s, want %s", end.Sub(start), tt.want)
			}
			if tt.deadline < 0 && got.Err() == nil {
				t.Error("the context is still alive, although the deadline has passed")
			}
		})
	}
}

func TestRecordsThatCannotBeReadStay(t *testing.T) {
	t.Parallel()
	j, out := newJournal()
	q := queues(j, func(context.Context, []queue.Message) []string { return nil })
	payload := []byte(`{"Records":[` + record(func(map[string]any) {}) + `,` +
		record(func(r map[string]any) { r["messageId"] = "bad"; delete(r, "attributes") }) + `]}`)
	answer, err := q.Invoke(t.Context(), payload)
	if err != nil || !slices.Equal(failures(t, answer), []string{"bad"}) || total(t, out, metrics.InvalidEvents) != 1 {
		t.Errorf("got %s, %v, want only the unreadable record as failed: %s", answer, err, out)
	}
}

func TestAnotherQueuesMessagesStay(t *testing.T) {
	t.Parallel()
	j, out := newJournal()
	q := queues(j, nil)
	q.Handles = map[string]Handle{"another": func(context.Context, []queue.Message) []string {
		t.Error("it was handled")
		return nil
	}}
	answer, err := q.Invoke(t.Context(), messages(3))
	if err != nil || len(failures(t, answer)) != 3 || total(t, out, metrics.ConfigurationErrors) != 1 {
		t.Errorf("got %s, %v: %s", answer, err, out)
	}
}

func TestAnEventThatIsNotABatchFailsTheInvocation(t *testing.T) {
	t.Parallel()
	j, out := newJournal()
	q := queues(j, func(context.Context, []queue.Message) []string { return nil })
	if answer, err := q.Invoke(t.Context(), []byte(`{"detail":"hunter2"}`)); !errors.Is(err, errNoBatch) ||
		answer != nil {
		t.Errorf("got %s, %v", answer, err)
	}
	if strings.Contains(out.String(), "hunter2") || total(t, out, metrics.InvalidEvents) != 1 {
		t.Errorf("got %s", out)
	}
}
