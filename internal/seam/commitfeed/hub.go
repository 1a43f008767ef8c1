// SPDX-License-Identifier: Apache-2.0

package commitfeed

import (
	"context"
	"sync"
)

// buffer is how many events may wait for a subscriber. If more wait, the subscriber is
// disconnected.
const buffer = 1024

// Hub passes events to the present subscribers. The zero Hub is ready to use. It is safe for
// concurrent use.
type Hub struct {
	mu   sync.Mutex
	subs map[chan Event]bool
}

// Publish passes an event to all subscribers. Publish never waits: it disconnects a subscriber that
// is too slow.
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

// Subscribe returns the events from now on. The channel closes when ctx ends or the subscriber is
// too slow.
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
