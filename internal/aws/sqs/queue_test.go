// SPDX-License-Identifier: Apache-2.0

package sqs

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/aws/awstest"
	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/seam/queue/queuetest"
)

type entry struct {
	Id                string
	MessageBody       string
	DelaySeconds      int
	MessageGroupId    string
	ReceiptHandle     string
	VisibilityTimeout *int
	MessageAttributes map[string]struct {
		DataType    string
		StringValue *string
		BinaryValue []byte
	}
}

type request struct {
	QueueUrl string
	Entries  []entry
}

// outcome returns the answer of a scripted queue for one entry: a code of SQS, or "" for success.
type outcome func(try int, e entry) (code string, senderFault bool)

// fake is a queue that answers each entry with the outcome that f returns. A fake records the
// batches that it receives.
type fake struct {
	mu      sync.Mutex
	batches []request
	tries   map[string]int
	f       outcome
	omit    func(e entry) bool
}

func (q *fake) answer(t *testing.T, c awstest.Call) awstest.Reply {
	var r request
	c.Into(t, &r)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.batches = append(q.batches, r)
	var ok, bad []map[string]any
	for _, e := range r.Entries {
		what := e.MessageBody + e.ReceiptHandle
		q.tries[what]++
		if q.omit != nil && q.omit(e) {
			continue
		}
		if code, fault := q.f(q.tries[what], e); code != "" {
			bad = append(bad, map[string]any{"Id": e.Id, "Code": code, "SenderFault": fault, "Message": "as scripted"})
		} else {
			ok = append(ok, map[string]any{"Id": e.Id, "MessageId": "m"})
		}
	}
	return awstest.Reply{Body: map[string]any{"Successful": ok, "Failed": bad}}
}

const url = "https://sqs.us-east-1.amazonaws.com/123456789012/lull-search-live"

func scripted(t *testing.T, f outcome) (*Queue, *fake) {
	t.Helper()
	if f == nil {
		f = func(int, entry) (string, bool) { return "", false }
	}
	s := &fake{tries: map[string]int{}, f: f}
	q := New(awstest.JSON(t, func(c awstest.Call) awstest.Reply { return s.answer(t, c) }), url)
	return q, s
}

func TestBatchesHoldTenEntriesAndAMebibyte(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		sizes []int
		want  string
	}{
		{"no messages", nil, ""},
		{"eleven small messages", []int{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, "10 1"},
		{"three messages of 400 KiB", []int{400 << 10, 400 << 10, 400 << 10}, "2 1"},
		{"each of the largest messages is alone in its batch", []int{queue.MaxBytes, 1, queue.MaxBytes, 1, 1}, "1 1 1 2"},
		{"just full", []int{queue.MaxBytes - 1, 1, 1}, "2 1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			entries := make([]int, len(tt.sizes))
			for i := range entries {
				entries[i] = i
			}
			next := 0
			var got []string
			for _, b := range batches(entries, tt.sizes) {
				got = append(got, fmt.Sprint(len(b)))
				for _, i := range b {
					if i != next {
						t.Errorf("got entry %d, want %d", i, next)
					}
					next++
				}
			}
			if got := strings.Join(got, " "); got != tt.want {
				t.Errorf("got batches of the sizes %s, want %s", got, tt.want)
			}
		})
	}
}

func TestSendSplitsAndFailsPerEntry(t *testing.T) {
	t.Parallel()
	q, s := scripted(t, func(_ int, e entry) (string, bool) {
		if e.MessageBody == "message 13" {
			return "InvalidMessageContents", true
		}
		return "", false
	})
	out := make([]queue.Outgoing, 25)
	for i := range out {
		out[i] = queue.Outgoing{
			Body: fmt.Sprintf("message %d", i), Delay: 1500 * time.Millisecond,
			Attributes: map[string]queue.Attribute{
				"text": queue.Text("x"), "bytes": {Type: "Binary", Binary: []byte{0, 255}},
			},
		}
	}
	errs := q.Send(awstest.Context(t), out)
	if len(errs) != len(out) {
		t.Fatalf("got %d errors, want %d", len(errs), len(out))
	}
	for i, err := range errs {
		if (err != nil) != (i == 13) {
			t.Errorf("message %d: got %v", i, err)
		}
	}
	if !backoff.Final(errs[13]) {
		t.Errorf("message 13: got %v, want a permanent error", errs[13])
	}
	if len(s.batches) != 3 {
		t.Errorf("got %d batches, want 3", len(s.batches))
	}
	for _, b := range s.batches {
		if b.QueueUrl != url {
			t.Errorf("got queue %s", b.QueueUrl)
		}
		for _, e := range b.Entries {
			a := e.MessageAttributes
			if e.DelaySeconds != 2 || *a["text"].StringValue != "x" || a["text"].DataType != "String" ||
				string(a["bytes"].BinaryValue) != "\x00\xff" || a["bytes"].StringValue != nil {
				t.Errorf("got %+v", e)
			}
		}
	}
}

func TestWhatSQSWouldRefuseIsNotSent(t *testing.T) {
	t.Parallel()
	q, s := scripted(t, nil)
	var sent []string
	taken := queuetest.Refuses(t, q)
	for _, b := range s.batches {
		for _, e := range b.Entries {
			sent = append(sent, e.MessageBody)
		}
	}
	slices.Sort(sent)
	slices.Sort(taken)
	if !slices.Equal(sent, taken) {
		t.Errorf("%d messages were sent, want only the %d valid ones", len(sent), len(taken))
	}
	calls := len(s.batches)
	if queuetest.RefusesToHold(t, q, "a"); len(s.batches) != calls {
		t.Error("Hold sent a visibility timeout that SQS refuses")
	}
}

func TestReceiptsGoOnceAndTellTheirFate(t *testing.T) {
	t.Parallel()
	codes := map[string]string{
		"invalid":   "ReceiptHandleIsInvalid",
		"other":     "com.amazonaws.sqs#MessageNotInflight",
		"third":     "SQS.ReceiptHandleIsInvalidException",
		"old":       "AWS.SimpleQueueService.MessageNotInflight",
		"forgotten": "InvalidParameterValue",
	}
	receipts := []string{"a", "invalid", "a", "other", "third", "old", "forgotten", "b", "a", "invalid"}
	q, s := scripted(t, func(_ int, e entry) (string, bool) { return codes[e.ReceiptHandle], true })
	held := q.Hold(awstest.Context(t), receipts, 1001*time.Millisecond)
	for i, r := range receipts {
		if got, want := errors.Is(queue.ErrorAt(held, i), queue.ErrGone), codes[r] != ""; got != want || !want &&
			held[i] != nil {
			t.Errorf("hold %s: got %v, want ErrGone: %v", r, held[i], want)
		}
	}
	if len(s.batches) != 1 || len(s.batches[0].Entries) != 7 {
		t.Fatalf("got %d batches, want one batch with each of the 7 receipt handles once", len(s.batches))
	}
	if got := *s.batches[0].Entries[0].VisibilityTimeout; got != 2 {
		t.Errorf("the visibility timeout is %d s, want 2: Hold rounds up", got)
	}
	if errs := q.Delete(awstest.Context(t), receipts); errs != nil {
		t.Errorf("delete: got %v, want nil: a message is deleted, or SQS delivers it again", errs)
	}
	if got := len(s.batches[1].Entries); got != 7 {
		t.Errorf("got %d entries, want 7", got)
	}
}

func TestAHoldOfZeroIsSent(t *testing.T) {
	t.Parallel()
	q, s := scripted(t, nil)
	if errs := q.Hold(awstest.Context(t), []string{"a"}, 0); errs != nil {
		t.Fatalf("got %v", errs)
	}
	if v := s.batches[0].Entries[0].VisibilityTimeout; v != nil && *v != 0 {
		t.Errorf("got %d, want 0", *v)
	}
}

func TestOnlyTheEntriesThatMayGoBetterAreSentAgain(t *testing.T) {
	t.Parallel()
	q, s := scripted(t, func(try int, e entry) (string, bool) {
		switch e.MessageBody {
		case "throttled once":
			if try == 1 {
				return "RequestThrottled", true
			}
		case "internal error twice":
			if try < 3 {
				return "InternalError", false
			}
		case "never":
			return "ServiceUnavailable", false
		case "refused":
			return "InvalidMessageContents", true
		}
		return "", false
	})
	s.omit = func(e entry) bool { return e.MessageBody == "left out once" && s.tries[e.MessageBody] == 1 }
	bodies := []string{"good", "throttled once", "internal error twice", "never", "refused", "left out once"}
	out := make([]queue.Outgoing, len(bodies))
	for i := range out {
		out[i].Body = bodies[i]
	}
	errs := q.Send(awstest.Context(t), out)
	for i, want := range []int{1, 2, 3, 4, 1, 2} {
		if got := s.tries[bodies[i]]; got != want {
			t.Errorf("%s: sent %d times, want %d", bodies[i], got, want)
		}
		if failed := bodies[i] == "never" || bodies[i] == "refused"; (errs[i] != nil) != failed {
			t.Errorf("%s: got %v", bodies[i], errs[i])
		}
		if content := bodies[i] == "refused"; errors.Is(errs[i], queue.ErrContent) != content {
			t.Errorf("%s: got %v, want ErrContent: %t", bodies[i], errs[i], content)
		}
	}
}

func TestAFailedCallFailsItsEntries(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		reply awstest.Reply
		final bool
		calls int
		says  string
	}{
		{"no such queue", awstest.Failure(400, "com.amazonaws.sqs#QueueDoesNotExist", "gone"), true, 1, url},
		{
			"no such queue, as the older protocol spells it", awstest.Failure(400, "AWS.SimpleQueueService.NonExistentQueue", "gone"), true,
			1, "deploy",
		},
		{"access denied", awstest.Failure(403, "com.amazonaws.sqs#AccessDeniedException", "no"), true, 1, "grant"},
		{"throttled", awstest.Failure(400, "RequestThrottled", "slow"), false, backoff.Row().Tries, ""},
		{"unavailable", awstest.Failure(503, "ServiceUnavailable", "oops"), false, backoff.Row().Tries, ""},
		{"too long", awstest.Failure(400, "com.amazonaws.sqs#BatchRequestTooLong", "long"), true, 1, "too large"},
		{"characters", awstest.Failure(400, "InvalidMessageContents", "x"), true, 1, queue.ErrContent.Error()},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			calls := 0
			q := New(awstest.JSON(t, func(awstest.Call) awstest.Reply { calls++; return tt.reply }), url)
			errs := q.Delete(awstest.Context(t), []string{"a", "b"})
			if len(errs) != 2 {
				t.Fatalf("got %v, want two errors", errs)
			}
			for _, err := range errs {
				if backoff.Final(err) != tt.final || !strings.Contains(err.Error(), tt.says) {
					t.Errorf("got %v, want final %v and %q", err, tt.final, tt.says)
				}
			}
			if calls != tt.calls {
				t.Errorf("got %d calls, want %d", calls, tt.calls)
			}
		})
	}
}

// An attribute of a message names the message group. The attribute remains, so that copies of the
// message have it as well. If SQS would refuse the group, the message is sent without a group.
func TestSendSetsTheMessageGroup(t *testing.T) {
	t.Parallel()
	group := func(g string) map[string]queue.Attribute {
		return map[string]queue.Attribute{queue.AttrGroup: queue.Text(g)}
	}
	q, s := scripted(t, nil)
	errs := q.Send(t.Context(), []queue.Outgoing{
		{Body: "a", Attributes: group("tenant-a")},
		{Body: "b"},
		{Body: "c", Attributes: group("")},
		{Body: "d", Attributes: group("two words")},
		{Body: "e", Attributes: group(strings.Repeat("x", 129))},
		{Body: "f", Attributes: group("{tenant}:b")},
	})
	if errs != nil {
		t.Fatal(errs)
	}
	var got []string
	for _, e := range s.batches[0].Entries {
		got = append(got, e.MessageGroupId)
		if a, ok := e.MessageAttributes[queue.AttrGroup]; e.MessageBody == "a" &&
			(!ok || *a.StringValue != "tenant-a") {
			t.Errorf("the message has lost its group attribute: %+v", e.MessageAttributes)
		}
	}
	if want := []string{"tenant-a", "", "", "", "", "{tenant}:b"}; !slices.Equal(got, want) {
		t.Errorf("got the message groups %q, want %q", got, want)
	}
}
