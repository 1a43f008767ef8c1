package bridge

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

// Counts are what a bridge did since it began.
type Counts struct {
	Connections int `json:"connections"` // sessions with the broker that began
	Received    int `json:"received"`    // deliveries, repeated ones too
	Confirmed   int `json:"confirmed"`   // accepted by lull's queue, and confirmed to the broker
	Parked      int `json:"parked"`      // kept in the queue for what lull's queue never takes
	Retried     int `json:"retried"`     // messages of tries that failed
}

// Health is what a bridge says of itself.
type Health struct {
	Healthy     bool   `json:"healthy"`
	Problem     string `json:"problem,omitempty"`
	Counts      Counts `json:"counts"`
	Unconfirmed int    `json:"unconfirmed"` // messages that the broker keeps for this bridge now
	Held        int    `json:"held"`        // of these, what lull's queue never takes and nothing may park
}

// patience is how long a message may stay unconfirmed before the bridge calls itself unhealthy.
const patience = time.Minute

type status struct {
	mu        sync.Mutex
	count     Counts
	connected bool
	lost      time.Time            // since when there is no session
	waiting   map[uint64]time.Time // unconfirmed messages of the session, and since when
	held      int
}

func (s *status) connect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connected = true
	s.count.Connections++
}

// disconnect begins anew: tags are those of a session.
func (s *status) disconnect(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connected, s.lost = false, now
	clear(s.waiting)
	s.held = 0
}

func (s *status) received(m Message, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count.Received++
	s.waiting[m.Tag] = now
}

func (s *status) failed(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count.Retried += n
}

// done counts a message that needs no other try.
func (s *status) done(m Message, counted *int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*counted++
	delete(s.waiting, m.Tag)
}

// Health says how the bridge does now. It may be asked at any time.
func (b *Bridge) Health() Health {
	s, now := &b.status, b.o.Clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	h := Health{Counts: s.count, Unconfirmed: len(s.waiting) + s.held, Held: s.held}
	for _, since := range s.waiting {
		if now.Sub(since) > patience {
			h.Problem = "lull's queue has not taken a message for more than " + patience.String()
		}
	}
	if s.held > 0 {
		h.Problem = "messages are held that lull's queue never takes: park them"
	}
	if !s.connected {
		h.Problem = "the bridge does not consume"
		if !s.lost.IsZero() {
			h.Problem += ", for " + now.Sub(s.lost).Round(time.Second).String()
		}
	}
	h.Healthy = h.Problem == ""
	return h
}

// ServeHTTP answers with the health as JSON: 200 where all is well, 503 otherwise.
func (b *Bridge) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	h := b.Health()
	w.Header().Set("Content-Type", "application/json")
	if !h.Healthy {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(h) // whoever asked may have gone
}

// minutes logs a line a minute.
func (b *Bridge) minutes(ctx context.Context) {
	for b.o.Clock.Sleep(ctx, time.Minute) == nil {
		h := b.Health()
		b.line("bridging", h.Counts, "unconfirmed", h.Unconfirmed, "held", h.Held, "problem", h.Problem)
	}
}

// line logs what was done since the beginning.
func (b *Bridge) line(what string, c Counts, more ...any) {
	b.o.Log.Info(what, append([]any{
		"received", c.Received, "confirmed", c.Confirmed, "parked", c.Parked, "retried", c.Retried,
		"connections", c.Connections,
	}, more...)...)
}
