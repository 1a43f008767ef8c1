package commitfeed

import (
	"context"
	"sync"
)

// buffer is how many events wait for a subscriber. One that is further behind is cut off.
const buffer = 1024

// Hub hands events to those who listen now. The zero Hub is ready, and is safe for concurrent use.
type Hub struct {
	mu   sync.Mutex
	subs map[chan Event]bool
}

// Publish hands an event to all subscribers. It never waits: one that does not keep up is cut off.
func (h *Hub) Publish(e Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.subs {
		select {
		case c <- e:
		default:
			delete(h.subs, c)
			close(c)
		}
	}
}

// Subscribe returns the events from now on, until ctx ends or the subscriber is too far behind.
func (h *Hub) Subscribe(ctx context.Context) <-chan Event {
	c := make(chan Event, buffer)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.subs == nil {
		h.subs = map[chan Event]bool{}
	}
	h.subs[c] = true
	context.AfterFunc(ctx, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.subs[c] {
			delete(h.subs, c)
			close(c)
		}
	})
	return c
}
