package dev

import (
	"context"
	"sync"

	"github.com/lullhq/lull/internal/flight"
)

// How many turns run at once: the concurrency of the index function. More only make each other late
// in front of one index. Flights of the bulk lane get only a part of them, so that a resync never
// keeps a live change from its turn.
const (
	maxTurns     = 16
	maxBulkTurns = 12
)

// slots are the turns that may run. It is safe for concurrent use.
type slots struct {
	all, bulk chan struct{}
	flights   sync.Map // by flight.ID: those of the bulk lane
}

func newSlots() *slots {
	return &slots{all: make(chan struct{}, maxTurns), bulk: make(chan struct{}, maxBulkTurns)}
}

// mark says that a flight is of the bulk lane.
func (s *slots) mark(id flight.ID) { s.flights.Store(id, true) }

// take waits for a slot. The function that it returns gives it back.
func (s *slots) take(ctx context.Context, id flight.ID) (release func(), err error) {
	var held []chan struct{}
	release = func() {
		for _, c := range held {
			<-c
		}
	}
	queues := []chan struct{}{s.all}
	if _, bulk := s.flights.Load(id); bulk {
		queues = []chan struct{}{s.bulk, s.all}
	}
	for _, c := range queues {
		select {
		case c <- struct{}{}:
			held = append(held, c)
		case <-ctx.Done():
			release()
			return nil, ctx.Err()
		}
	}
	return release, nil
}

// turned takes note of a turn's end: before and after are its states. A flight that has ended is
// forgotten; one that goes on in another execution has counted a turn more.
func (s *slots) turned(before, after flight.State) {
	if after.Done && after.Turn == before.Turn {
		s.flights.Delete(before.Flight)
	}
}
