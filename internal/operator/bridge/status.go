// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"net/http"
	"sync"
	"time"
)

// Counts are a bridge's counters since its start.
type Counts struct {
	Connections int `json:"connections"` // sessions with the broker that were opened
	Received    int `json:"received"`    // deliveries, including repeated ones
	Confirmed   int `json:"confirmed"`   // accepted by lull's queue, and confirmed to the broker
	Parked      int `json:"parked"`      // parked, because lull's queue never accepts them
	Retried     int `json:"retried"`     // messages in failed tries
}

// Health is the state of a bridge.
type Health struct {
	Healthy bool   `json:"healthy"`
	Problem string `json:"problem,omitempty"`
	Counts  Counts `json:"counts"`
	// Parts counts the messages that each part's queue has accepted, if there are several.
	Parts       map[int]int `json:"parts,omitempty"`
	Unconfirmed int         `json:"unconfirmed"` // messages that the broker keeps for this bridge now
	Held        int         `json:"held"`        // unconfirmed messages that can be neither sent nor parked
	// Upstream are the facts of a [Reporter].
	Upstream map[string]any `json:"upstream,omitempty"`

	facts []slog.Attr
}

// patience is how long a message may stay unconfirmed before the bridge is unhealthy.
const patience = time.Minute

type status struct {
	mu        sync.Mutex
	count     Counts
	connected bool
	lost      time.Time            // when the last session ended
	waiting   map[uint64]time.Time // when each unconfirmed message of the session was received, by tag
	held      int
	fix       error // how messages need not be held
	parts     map[int]int
}

func (s *status) connect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connected = true
	s.count.Connections++
}

// disconnect forgets the unconfirmed messages, because a tag is only valid in its session.
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

// sentTo counts a message that a part's queue has accepted.
func (s *status) sentTo(part, parts int) {
	if parts <= 1 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.parts == nil {
		s.parts = map[int]int{}
	}
	s.parts[part]++
}

// done counts a message that needs no retry.
func (s *status) done(m Message, counted *int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*counted++
	delete(s.waiting, m.Tag)
}

// hold counts a message that can be neither sent nor parked.
func (s *status) hold(m Message, fix error) {
	s.done(m, &s.held)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fix = fix
}

// Health returns the current state. It may be called at any time.
func (b *Bridge) Health() Health {
	s, now := &b.status, b.o.Clock.Now()
	var facts []slog.Attr
	var problem string
	if r, ok := b.o.Broker.(Reporter); ok {
		facts, problem = r.Report()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h := Health{
		Counts: s.count, Parts: maps.Clone(s.parts), Unconfirmed: len(s.waiting) + s.held, Held: s.held,
		Problem: problem, facts: facts,
	}
	for _, f := range facts {
		if h.Upstream == nil {
			h.Upstream = map[string]any{}
		}
		h.Upstream[f.Key] = f.Value.Any()
	}
	for _, since := range s.waiting {
		if now.Sub(since) > patience {
			h.Problem = "lull's queue has not accepted a message for more than " + patience.String() +
				": the log has the reason"
		}
	}
	if s.held > 0 {
		h.Problem = "messages are held that lull's queue refuses for good: " + s.fix.Error()
	}
	if !s.connected {
		h.Problem = "the bridge does not consume: the log has the reason"
		if !s.lost.IsZero() {
			h.Problem += ", for " + now.Sub(s.lost).Round(time.Second).String()
		}
	}
	h.Healthy = h.Problem == ""
	return h
}

// ServeHTTP answers with the health as JSON, and with status 200 if it is healthy, or else 503.
func (b *Bridge) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	h := b.Health()
	w.Header().Set("Content-Type", "application/json")
	if !h.Healthy {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(h) // the client may be gone
}

// minutes logs a line a minute.
func (b *Bridge) minutes(ctx context.Context) {
	for b.o.Clock.Sleep(ctx, time.Minute) == nil {
		h := b.Health()
		more := []any{"unconfirmed", h.Unconfirmed, "held", h.Held, "problem", h.Problem}
		if h.Parts != nil {
			more = append(more, "parts", h.Parts)
		}
		for _, f := range h.facts {
			more = append(more, f)
		}
		b.line("bridging", h.Counts, more...)
	}
}

// line logs the counters since the start.
func (b *Bridge) line(what string, c Counts, more ...any) {
	b.o.Log.Info(what, append([]any{
		"received", c.Received, "confirmed", c.Confirmed, "parked", c.Parked, "retried", c.Retried,
		"connections", c.Connections,
	}, more...)...)
}
