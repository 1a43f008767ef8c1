// SPDX-License-Identifier: Apache-2.0

package lambda

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/internal/aws/metrics"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/shard"
)

// Turn is the handler of the index function, which the state machine invokes. A Turn gets the state
// of a flight and returns the next state.
type Turn struct {
	Take    func(ctx context.Context, s flight.State) (flight.State, error)
	Limit   time.Duration // the time-out of the function in the settings, from which leases are computed
	Journal *Journal
}

var _ Handler = (*Turn)(nil)

// limitSlack is how much longer an invocation may seem to last than the settings say. The clock of
// Lambda may differ from the clock of the function. The guard of every lease is at least two
// seconds, which covers that difference.
const limitSlack = time.Second

// Invoke runs one turn. After any error the outcome is unknown. The state machine retries the turn
// only after the lease of a lost invocation has certainly ended.
func (t *Turn) Invoke(ctx context.Context, payload []byte) (out []byte, err error) {
	defer t.Journal.finish(ctx)
	defer func() {
		if err != nil {
			t.Journal.Count(metrics.TurnsLost, 1)
			t.Journal.Log.Error("turn lost", "error", err.Error())
		}
	}()
	s, err := ReadState(payload)
	if err != nil {
		t.Journal.Count(metrics.InvalidEvents, 1)
		return nil, err
	}
	// The time between WakeAt and Entered is the delay that the state machine caused.
	t.Journal.Log.Debug("turn", "flight", string(s.Flight), "wake", s.WakeAt, "entered", s.Entered.Time())
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) > t.Limit+limitSlack {
		// A lease could end while this invocation still writes.
		t.Journal.Count(metrics.ConfigurationErrors, 1)
		return nil,
			fmt.Errorf("this function may run for %s, but index.timeout is %s: deploy both with the same number",
				time.Until(deadline).Round(time.Second), t.Limit)
	}
	call, cancel := within(ctx, t.Limit, 0)
	defer cancel()
	next, err := guard(t.Journal, func() (flight.State, error) { return t.Take(call, s) })
	if err != nil {
		return nil, err
	}
	return json.Marshal(next)
}

// ReadState parses the payload of a turn. The payload contains the state. The field startedAt is
// the start of the execution, and the field enteredAt is the start of this turn. JSONata may write
// whole numbers as 1763665205000000, 1.763665205E15 or 1763665205000000.0. From a state with a
// newer schema, ReadState reads only the schema and the flight.
func ReadState(payload []byte) (flight.State, error) {
	if !gjson.ValidBytes(payload) || !gjson.ParseBytes(payload).IsObject() {
		return flight.State{}, errNoState
	}
	in := gjson.ParseBytes(payload)
	if schema := in.Get("schema").Int(); schema > flight.SchemaVersion {
		return flight.State{Schema: int(min(schema, 1<<30)), Flight: flight.ID(in.Get("flight").String())}, nil
	}
	plain, began, entered, err := plainState(in)
	if err != nil {
		return flight.State{}, err
	}
	var s flight.State
	if err := json.Unmarshal(plain, &s); err != nil {
		return flight.State{}, fmt.Errorf("%w: %w", errNoState, err)
	}
	if s.Flight == "" || strings.ContainsAny(string(s.Flight), "/~") {
		return flight.State{}, fmt.Errorf("%w: it names no flight", errNoState)
	}
	if !began.IsZero() {
		s.Started = shard.MicrosOf(began)
	}
	if !entered.IsZero() {
		s.Entered = shard.MicrosOf(entered)
	}
	return s, nil
}

var errNoState = errors.New("the event is not a state of a flight")

// plainState returns the JSON of the state, with numbers as integers, and without the members that
// the state machine added.
func plainState(in gjson.Result) (plain []byte, began, entered time.Time, err error) {
	plain = append(make([]byte, 0, len(in.Raw)), '{')
	in.ForEach(func(key, value gjson.Result) bool {
		raw := value.Raw
		switch {
		case key.Str == "startedAt", key.Str == "enteredAt":
			at := &began
			if key.Str == "enteredAt" {
				if value.Type == gjson.Null { // an older state machine does not set enteredAt
					return true
				}
				at = &entered
			}
			if *at, err = time.Parse(time.RFC3339Nano, value.String()); err != nil {
				err = fmt.Errorf("%w: %s is not a time", errNoState, key.Str)
			}
			return err == nil
		case value.Type == gjson.Number:
			var n int64
			if n, err = whole(raw); err != nil {
				return false
			}
			raw = strconv.FormatInt(n, 10)
		}
		if len(plain) > 1 {
			plain = append(plain, ',')
		}
		plain = append(append(append(plain, key.Raw...), ':'), raw...)
		return true
	})
	return append(plain, '}'), began, entered, err
}

// whole parses a whole number in any spelling that JSON permits. The function refuses a number
// above 2^53 that is not written as an integer. Such a number was a float before and may be
// rounded.
func whole(raw string) (int64, error) {
	if n, err := strconv.ParseInt(raw, 10, 64); err == nil {
		return n, nil
	}
	f, err := strconv.ParseFloat(raw, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, fmt.Errorf("%w: it holds a number that is not whole", errNoState)
	}
	return int64(f), nil
}
