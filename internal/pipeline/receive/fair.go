package receive

import (
	"cmp"
	"slices"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/fanout"
	"github.com/lullhq/lull/internal/queue"
)

// maxEvents is how many events of one batch are judged, besides those of one largest message. More
// would not be admitted in the time of an invocation, and their flight would not end in its turns.
const maxEvents = 4000

// tenant is whose message it is: its group's, otherwise its own. What one tenant sends must not
// starve another.
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

// room is what a batch has room for. Each message has room for its share. What brings more, a large
// message, gets what is left; the oldest of them always fits. The others are received again, and
// are older then.
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

// take makes room for a message of so many events and returns the messages that have none any more,
// perhaps itself.
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

// last is the large message that goes first where there is no room: the youngest of the tenant that
// has the most besides its oldest message.
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

// fair is the order in which the events are admitted: tenant by tenant, and message by message of
// each. Where the time for the table ends, everybody had a share of it.
func (b *batch) fair() []int {
	order := make([]int, len(b.events))
	for i := range order {
		order[i] = i
	}
	fanout.ByTurns(order, func(e int) int { return b.events[e].msg })
	fanout.ByTurns(order, func(e int) tenant { return b.tenant(b.events[e].msg) })
	return order
}
