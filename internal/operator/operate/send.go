// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/lullhq/lull/internal/operator/feed"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
)

// addressed is a message with its route.
type addressed struct {
	out     queue.Outgoing
	to      feed.Route
	sinks   []string // the sinks whose queues have not accepted the message yet
	refused bool     // the message is never sent, and err says why
	err     error    // of the first queue that did not accept the message
}

// address is a queue in the stack of a part.
type address struct {
	part int
	sink string
	lane flight.Lane
}

// sendAll sends the messages that are not refused, as many in a call as SQS accepts. Each queue
// gets its messages in order. sendAll returns the position of the first message that a queue did
// not accept, or the number of messages. All messages before that position are then sent or
// refused, so that a caller can continue there. Some messages after it may be sent, too.
func (o *sender) sendAll(ctx context.Context, list []addressed) (failed int) {
	var queues []address // in the order of their first messages
	of := map[address][]int{}
	for i, m := range list {
		for _, sink := range m.sinks {
			to := address{m.to.Part, sink, m.to.Lane}
			if of[to] == nil {
				queues = append(queues, to)
			}
			of[to] = append(of[to], i)
		}
	}
	failed = len(list)
	for _, to := range queues {
		for batch := range slices.Chunk(of[to], queue.MaxEntries) {
			batch = slices.DeleteFunc(batch, func(i int) bool { return i > failed })
			if len(batch) == 0 {
				break
			}
			failed = min(failed, o.sendBatch(ctx, to, list, batch))
		}
	}
	return failed
}

// sendBatch sends some of the messages with one call. It returns the position of the first message
// that the queue did not accept, or the number of messages.
func (o *sender) sendBatch(ctx context.Context, to address, list []addressed, batch []int) (failed int) {
	failed = len(list)
	out := make([]queue.Outgoing, len(batch))
	for n, i := range batch {
		out[n] = list[i].out
	}
	errs := o.send(ctx, to.part, to.sink, to.lane, out)
	for n, i := range batch {
		m, err := &list[i], queue.ErrorAt(errs, n)
		switch {
		case err == nil:
			m.sinks = slices.DeleteFunc(m.sinks, func(sink string) bool { return sink == to.sink })
		case errors.Is(err, queue.ErrTooLarge) && m.err == nil:
			m.refused, m.err = true, refusal(err)
		case !m.refused:
			m.err = cmp.Or(m.err, err)
			failed = min(failed, i)
		}
	}
	return failed
}
