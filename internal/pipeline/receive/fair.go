package receive

import (
	"cmp"
	"slices"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/seam/fanout"
	"github.com/lullhq/lull/internal/seam/queue"
)

// maxEvents is how many events of one batch are judged, besides those of one largest message. An
// invocation has no time to admit more, and their flight would not finish within its turns.
const maxEvents = 4000

// tenant is the owner of a message: its group, or the message itself if it has no group. One
// tenant must not block another.
type tenant struct {
	group string
	msg   int
}

func (b *batch) tenant(msg int) tenant {
	m := &b.msgs[msg]
	if g := cmp.Or(m.Group, queue.Group(m.Attributes)); g != "" {
		return tenant{group: g}
	}
	return tenant{msg: msg}
}

// room counts the events that a batch still has room for. Each message has room for its share.
// Larger messages share the remaining room, and the oldest of them always fits. The others are
// received again, and are older then.
type room struct {
	b      *batch
	share  int
	left   int
	events []int // of each message
	large  []int // the messages with more than the share that have room
}

func (b *batch) newRoom() *room {
	n := max(len(b.msgs), 1)
	all := max(maxEvents, n)
	return &room{b: b, share: all / n, left: all + event.MaxEvents, events: make([]int, n)}
}

// take makes room for a message with so many events. It returns the messages that no longer have
// room, which may include this one.
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

// last returns the large message that loses its room first: the youngest message of the tenant
// that has the most events besides its oldest message.
func (r *room) last() int {
	age := func(x, y int) int { // the older one is less
		return cmp.Or(cmp.Compare(r.b.msgs[y].ReceiveCount, r.b.msgs[x].ReceiveCount),
			cmp.Compare(r.events[x], r.events[y]), cmp.Compare(x, y))
	}
	slices.SortFunc(r.large, age)
	more, seen := make(map[tenant]int), make(map[tenant]bool)
	for _, m := range r.large {
		if t := r.b.tenant(m); seen[t] {
			more[t] += r.events[m]
		} else {
			seen[t] = true
		}
	}
	return slices.MaxFunc(r.large, func(x, y int) int {
		return cmp.Or(cmp.Compare(more[r.b.tenant(x)], more[r.b.tenant(y)]), age(x, y))
	})
}

// fair returns the order in which the events are admitted: tenant by tenant in turns, and within
// a tenant message by message in turns. If the time for the table ends early, every tenant had a
// share of it.
func (b *batch) fair() []int {
	order := make([]int, len(b.events))
	for i := range order {
		order[i] = i
	}
	fanout.ByTurns(order, func(e int) int { return b.events[e].msg })
	fanout.ByTurns(order, func(e int) tenant { return b.tenant(b.events[e].msg) })
	return order
}
