// SPDX-License-Identifier: Apache-2.0

package receive

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/fanout"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/source"
)

const (
	// maxLoads bounds the number of bodies that are loaded in parallel. Each body may be as large
	// as one bulk request.
	maxLoads = 12
	// maxLoadBytes bounds the bytes that are loaded. After that many bytes, no other body is
	// loaded, and the remaining messages are received again.
	maxLoadBytes = 32 << 20
)

// decode decodes every message. If a message is a pointer to a body, decode loads the body. Bodies
// are loaded in parallel, for a part of the invocation's time. A message whose body was not loaded
// in that time is received again, and does not stop the other messages from being admitted. A
// message without room in the batch has no results.
func decode(ctx context.Context, in *invocation, sources Decoder, batch []message) [][]event.Result {
	ctx, cancel := in.until(source.LoadAtMost(ctx, maxLoadBytes), loadShare)
	defer cancel()
	results, room := make([][]event.Result, len(batch)), newRoom(batch)
	var mu sync.Mutex
	in.parallel.Each(maxLoads, len(batch), func(i int) {
		if batch[i].full || batch[i].newer {
			return
		}
		decoded := decodeOne(ctx, in, sources, &batch[i].Message)
		for j := range decoded {
			// These strings may be parts of a loaded body, and would keep all of the body in
			// memory. The order key is computed already, and index decodes again.
			e := &decoded[j].Event
			e.Data, e.DataRef, e.Version = "", "", ""
		}
		mu.Lock()
		defer mu.Unlock()
		results[i] = decoded
		for _, over := range room.take(i, len(decoded)) {
			results[over] = nil
		}
	})
	return results
}

// panicTries is the number of receives after which a message whose decoding panics becomes a dead
// letter. Until then, another build of lull may be able to decode the message.
const panicTries = 3

// decodeOne decodes one message. A panic affects only this message.
func decodeOne(ctx context.Context, in *invocation, sources Decoder, m *queue.Message) (results []event.Result) {
	p := fanout.Catch(func() { results = sources.DecodeContext(ctx, *m) })
	if p == nil {
		return results
	}
	in.note(journal.Note{
		Step: journal.Panicked, Message: m.ID, Sent: m.Sent, Detail: "decode: " + p.Error(), Stack: string(p.Stack),
	})
	bad := &event.Invalid{Reason: deadletter.Panic, Problem: "decode: " + p.Error()}
	if m.ReceiveCount < panicTries {
		bad.Err = p
	}
	return []event.Result{{Invalid: bad}}
}

// maxEvents is the number of events of one batch that are judged, besides the events of one largest
// message. An invocation has no time to admit more events, and their flight would not finish within
// its turns.
const maxEvents = 4000

// room counts how many more events fit into a batch. Each message may use its share. Larger
// messages share the remaining room, and the oldest larger message always fits. Messages without
// room are received again, and are older then.
type room struct {
	batch  []message
	share  int
	left   int
	events []int // number of events of each message
	large  []int // the messages with more events than the share, if they have room
}

func newRoom(batch []message) *room {
	n := max(len(batch), 1)
	all := max(maxEvents, n)
	return &room{batch: batch, share: all / n, left: all + event.MaxEvents, events: make([]int, n)}
}

// take gives room to a message with the given number of events. It returns the messages that no
// longer have room, and the message itself may be among them.
func (r *room) take(msg, events int) (over []int) {
	r.events[msg] = events
	if r.left -= events; events > r.share {
		r.large = append(r.large, msg)
	}
	for r.left < 0 {
		last := r.last()
		r.large = slices.DeleteFunc(r.large, func(m int) bool { return m == last })
		r.left += r.events[last]
		over = append(over, last)
	}
	return over
}

// last returns the large message that loses its room first. It belongs to the tenant with the most
// events, not counting the oldest message of each tenant. It is the youngest message of that
// tenant.
func (r *room) last() int {
	age := func(x, y int) int { // the older message is less
		return cmp.Or(cmp.Compare(r.batch[y].ReceiveCount, r.batch[x].ReceiveCount),
			cmp.Compare(r.events[x], r.events[y]), cmp.Compare(x, y))
	}
	slices.SortFunc(r.large, age)
	more, seen := make(map[tenant]int), make(map[tenant]bool)
	for _, m := range r.large {
		if t := r.batch[m].tenant(); seen[t] {
			more[t] += r.events[m]
		} else {
			seen[t] = true
		}
	}
	return slices.MaxFunc(r.large, func(x, y int) int {
		return cmp.Or(cmp.Compare(more[r.batch[x].tenant()], more[r.batch[y].tenant()]), age(x, y))
	})
}
