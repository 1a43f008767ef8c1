// SPDX-License-Identifier: Apache-2.0

package dlq_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
)

var asS3 = map[string]queue.Attribute{queue.AttrSource: queue.Text("s3")}

// faultyRecords makes a body with n S3 records without a key.
func faultyRecords(n int) string {
	return `{"Records":[` + strings.Repeat(`{"eventSource":"aws:s3"},`, n-1) + `{"eventSource":"aws:s3"}]}`
}

// counted is an injector that records the calls of an invocation, in their order.
type counted struct {
	mu    sync.Mutex
	calls []fault.Op
	after func(op fault.Op) // called after each call; nil for nothing
}

func (c *counted) Decide(_ context.Context, _ *fault.Invocation, op fault.Op) fault.Verdict {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, op)
	if c.after != nil {
		c.after(op)
	}
	return fault.OK
}

func (c *counted) of(call string) (n int) {
	for _, op := range c.calls {
		if op.Call == call {
			n++
		}
	}
	return n
}

// A moved message of faulty records is parked once. An earlier version parked it once for each
// record, in every try.
func TestAMessageOfFaultyEventsIsOneDeadLetter(t *testing.T) {
	play(t, nil, func(b *bench) {
		const n = 400
		b.move(b.live, b.send(b.live, faultyRecords(n), asS3))
		var c counted
		b.faulty(&c)
		b.keeps(0, "the message is parked")
		b.want(1, 0, 0)
		if got := c.of("PutLetter"); got != 1 {
			b.Errorf("the message was parked %d times, want once", got)
		}
		if got := b.parked()[0]; !strings.HasPrefix(got.Detail, fmt.Sprint(n, " events")) {
			b.Errorf("detail %q, want the number of events in it", got.Detail)
		}
		b.Noted(journal.DeadLettered, n)
		b.Noted(journal.Parked, 1)
	})
}

// moveMany makes SQS move a message of n deletions that were never committed and are too old to
// run.
func (b *bench) moveMany(n int) queue.Message {
	b.Helper()
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprint("k", i)
	}
	m := b.send(b.live, s3Records(keys...), asS3)
	return m
}

// The tasks of one invocation run in turns over the messages. So a message with few events does not
// wait for a message with many.
func TestManyEventsOfOneMessageDoNotKeepOthersWaiting(t *testing.T) {
	play(t, nil, func(b *bench) {
		const many = 300
		b.h.Parallel = func(_, n int, f func(int)) { // in order, so that the time ends at the same task in each run
			for i := range n {
				f(i)
			}
		}
		b.moveMany(many)
		for i := range 9 {
			b.send(b.live, put(fmt.Sprint("small", i), 1), nil)
		}
		time.Sleep(b.Config.Retry.DeadDeadline + time.Second)
		b.Take(b.live) // this was the last receive, so SQS moves the message
		ctx, end := context.WithCancel(b.Context())
		defer end()
		var c counted
		parks := 0
		c.after = func(op fault.Op) {
			if op.Call == "PutLetter" {
				if parks++; parks == 60 {
					end() // the time is over
				}
			}
		}
		b.faulty(&c)
		ms, err := b.dead.Receive(b.Context(), 100, 0)
		if err != nil || len(ms) != 10 {
			b.Fatalf("%d messages were moved, error %v", len(ms), err)
		}
		kept := b.h.Handle(ctx, ms)
		large := slices.IndexFunc(ms, func(m queue.Message) bool { return len(m.Body) > 5000 })
		if len(kept) != 1 || kept[0] != ms[large].ID {
			b.Errorf("kept %v, want only the large message", kept)
		}
		first := len(b.parked())
		if first != 59 {
			b.Errorf("%d dead letters after the first try, want the 59 for which there was time", first)
		}

		// The next try does not repeat what was done.
		c = counted{}
		b.faulty(&c)
		if kept := b.h.Handle(b.Context(), ms); len(kept) != 0 {
			b.Errorf("kept %v, want none", kept)
		}
		if got := c.of("PutLetter"); got != many+9-first {
			b.Errorf("%d dead letters were parked by the second try, want the remaining %d", got, many+9-first)
		}
		b.want(many+9, 0, 10)
	})
}

// A pointer is loaded only for a part of the invocation's time.
func TestAPointerThatDoesNotLoadLeavesTimeForTheRest(t *testing.T) {
	play(t, nil, func(b *bench) {
		b.Sources = b.Sources.WithLoader(func(ctx context.Context, _, _ string) ([]byte, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		b.h.Sources = b.Sources
		pointer := `["software.amazon.payloadoffloading.PayloadS3Pointer",{"s3BucketName":"b","s3Key":"k"}]`
		b.send(b.live, pointer, nil)
		b.send(b.live, "not JSON", nil)
		time.Sleep(time.Minute)
		b.Take(b.live) // this was the last receive, so SQS moves the messages
		if got := b.dead.Counts().Total(); got != 2 {
			b.Fatalf("%d messages were moved, want 2", got)
		}
		ctx, end := context.WithTimeout(b.Context(), 30*time.Second)
		defer end()
		ms, _ := b.dead.Receive(ctx, 100, 0)
		if kept := b.h.Handle(ctx, ms); len(kept) != 1 {
			b.Errorf("kept %v, want the message with the pointer", kept)
		}
		if ctx.Err() != nil {
			b.Error("the loader used all of the time")
		}
		b.want(1, 0, 2)
	})
}

// Dead letters from receive and index are tasks, too, and take turns with the other tasks.
func TestDeadLettersThatWereSentGoRoundWithTheRest(t *testing.T) {
	play(t, nil, func(b *bench) {
		b.move(b.live, b.moveMany(1))
		for i := range 5 {
			body := put(fmt.Sprint(i), 1)
			b.SendLetter(b.dead, queue.Message{ID: "m", Body: body, Sent: time.Now()}, b.EventOf(body), deadletter.Refusals)
		}
		b.keeps(0, "five dead letters are parked, and the message that never ran is given back")
		b.want(5, 1, 0)
	})
}

// One message may contain pointers to hundreds of bodies. dlq loads only a bounded number of bytes
// for it, and judges the other messages of its batch.
func TestAMessageOfManyPointersLoadsABoundedAmount(t *testing.T) {
	play(t, nil, func(b *bench) {
		loads := 0
		b.h.Sources = b.Sources.WithLoader(func(context.Context, string, string) ([]byte, error) {
			loads++
			return []byte(put("1", 1) + strings.Repeat(" ", 1<<20)), nil
		})
		pointer := `["software.amazon.payloadoffloading.PayloadS3Pointer",{"s3BucketName":"b","s3Key":"k"}]`
		one := `{"basicProperties":{},"data":"` + base64.StdEncoding.EncodeToString([]byte(pointer)) + `"}`
		b.move(b.live, b.send(b.live, `{"rmqMessagesByQueue":{"q::/":[`+strings.Repeat(one+",", 99)+one+`]}}`, nil))
		b.move(b.live, b.send(b.live, "not JSON", nil))
		b.keeps(1, "the message of pointers is kept")
		if loads > 16 {
			b.Errorf("%d MB were loaded for one message, want at most 16", loads)
		}
		b.want(1, 0, 1)

		// The message is not kept for ever: past the dead deadline it becomes a dead letter.
		time.Sleep(b.Config.Retry.DeadDeadline + time.Second)
		b.keeps(0, "the message is parked")
		b.want(3, 0, 0)
	})
}
