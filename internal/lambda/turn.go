package lambda

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/metrics"
)

// Turn is the index function behind the state machine: a state in, the next one out.
type Turn struct {
	Take    func(ctx context.Context, s flight.State) (flight.State, error)
	Limit   time.Duration // the function's time-out by the settings, from which leases are computed
	Journal *metrics.Journal
	Done    func() // called at the end of each invocation, before the metrics leave; nil for nothing
}

var _ Handler = (*Turn)(nil)

// limitSlack is how much longer than the settings say an invocation may seem to last: the runtime's clock is not ours. The guard of every
// lease, at least two seconds, covers it.
const limitSlack = time.Second

// Invoke takes one turn. Any error means that nothing is known: the state machine tries again after the lease of a lost
// invocation can have ended.
func (t *Turn) Invoke(ctx context.Context, payload []byte) (out []byte, err error) {
	defer finish(ctx, t.Journal, t.Done)
	defer func() {
		if err != nil {
			t.Journal.Count(metrics.TurnsLost, 1)
			t.Journal.Log().Error("turn lost", "error", err.Error())
		}
	}()
	s, err := ReadState(payload)
	if err != nil {
		t.Journal.Count(metrics.BadEvents, 1)
		return nil, err
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) > t.Limit+limitSlack {
		// Leases would end while this invocation may still write.
		t.Journal.Count(metrics.BadSettings, 1)
		return nil, fmt.Errorf("this function may run for %s, but index.timeout is %s: deploy both with the same number", time.Until(deadline).Round(time.Second), t.Limit)
	}
	call, cancel := within(ctx, t.Limit, 0)
	defer cancel()
	next, err := t.take(call, s)
	if err != nil {
		return nil, err
	}
	return json.Marshal(next)
}

func (t *Turn) take(ctx context.Context, s flight.State) (next flight.State, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicked(t.Journal, p)
		}
	}()
	return t.Take(ctx, s)
}

// number is an integer as JSONata may hand it on: 1763665205000000, 1.763665205E15 or 1763665205000000.0.
type number int64

// UnmarshalJSON reads a whole number in any of JSON's spellings. Numbers beyond 2^53 went through a float on their way and are refused.
func (n *number) UnmarshalJSON(b []byte) error {
	if i, err := strconv.ParseInt(string(b), 10, 64); err == nil {
		*n = number(i)
		return nil
	}
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil || f != float64(int64(f)) || f > 1<<53 || f < -1<<53 {
		return errors.New("no whole number")
	}
	*n = number(f)
	return nil
}

// wireState is flight.State as it comes from the state machine, with the time at which the execution began.
type wireState struct {
	Schema       number      `json:"schema"`
	Flight       flight.ID   `json:"flight"`
	WakeAt       string      `json:"wakeAt"`
	VisibleUntil number      `json:"visibleUntil"`
	Left         flight.Left `json:"left"`
	Turn         number      `json:"turn"`
	Leg          number      `json:"leg"`
	Started      number      `json:"started"`
	StartedAt    string      `json:"startedAt"`
	Done         bool        `json:"done"`
}

// ReadState reads the payload of a turn. Of a state with a newer schema it reads no more than whose it is.
func ReadState(payload []byte) (flight.State, error) {
	if schema := gjson.GetBytes(payload, "schema").Int(); schema > flight.SchemaVersion && gjson.ValidBytes(payload) {
		return flight.State{Schema: int(min(schema, 1<<30)), Flight: flight.ID(gjson.GetBytes(payload, "flight").String())}, nil
	}
	var w wireState
	if err := json.Unmarshal(payload, &w); err != nil {
		return flight.State{}, fmt.Errorf("event is no state of a flight: %w", err)
	}
	if w.Flight == "" || strings.ContainsAny(string(w.Flight), "/~") {
		return flight.State{}, errors.New("event is no state of a flight: it names none")
	}
	s := flight.State{
		Schema: int(w.Schema), Flight: w.Flight, WakeAt: w.WakeAt, VisibleUntil: int64(w.VisibleUntil), Left: w.Left,
		Turn: int(w.Turn), Leg: int(w.Leg), Started: int64(w.Started), Done: w.Done,
	}
	if w.StartedAt != "" {
		began, err := time.Parse(time.RFC3339Nano, w.StartedAt)
		if err != nil {
			return flight.State{}, errors.New("event is no state of a flight: startedAt is no time")
		}
		s.Started = began.UnixMicro()
	}
	return s, nil
}
