// SPDX-License-Identifier: Apache-2.0

package lambda

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/aws/metrics"
	"github.com/lullhq/lull/internal/seam/fanout"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/shard"
)

const id = "01KAJ0000000000000000000AB"

func TestTheStateComesAsTheMachineHandsItOn(t *testing.T) {
	t.Parallel()
	want := flight.State{
		Schema: 1, Flight: id, WakeAt: "2026-11-20T19:00:05Z", VisibleUntil: 1763665205000001, Remaining: flight.AllRemaining(9),
		Turn: 7, Leg: 2,
		Started: 1763665200123000, Entered: 1763665204500000, Kind: "express",
	}
	left, err := json.Marshal(want.Remaining)
	if err != nil {
		t.Fatal(err)
	}
	for name, numbers := range map[string][2]string{
		"as they were":  {"1763665205000001", "7"},
		"as floats":     {"1763665205000001.0", "7.0"},
		"as exponents":  {"1.763665205000001E15", "7e0"},
		"signed powers": {"1763665205000001E+0", "0.7E1"},
	} {
		payload := `{"schema":1,"flight":"` + id + `","wakeAt":"2026-11-20T19:00:05Z","visibleUntil":` + numbers[0] +
			`,"left":` + string(left) +
			`,"turn":` + numbers[1] + `,"leg":2,"started":0,"done":false,"startedAt":"2025-11-20T19:00:00.123Z","enteredAt":"2025-11-20T19:00:04.5Z","kind":"express"}`
		got, err := ReadState([]byte(payload))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v, want %+v", name, got, err, want)
		}
	}
}

// The state machine of an emulator may not know when it entered a state. Then the index function
// compares its clock with the start of the execution.
func TestAMachineMayNotKnowWhenItCameToATurn(t *testing.T) {
	t.Parallel()
	got, err := ReadState([]byte(`{"flight":"f","startedAt":"2026-11-20T19:00:05.5Z","enteredAt":null}`))
	if err != nil || got.Entered != 0 || got.Started == 0 {
		t.Errorf("got %+v, %v, want the start and no time of entry", got, err)
	}
}

// If flight.State gets a new field, ReadState must keep that field without a change in this
// package.
func TestEveryFieldOfTheStateComesThrough(t *testing.T) {
	t.Parallel()
	var want flight.State
	v := reflect.ValueOf(&want).Elem()
	for i := range v.NumField() {
		if v.Type().Field(i).Tag.Get("json") == "-" {
			continue
		}
		switch f := v.Field(i); f.Interface().(type) {
		case int, int64, shard.Micros, time.Duration:
			f.SetInt(int64(i) + 2)
		case bool:
			f.SetBool(true)
		case []shard.DocID:
			f.Set(reflect.ValueOf([]shard.DocID{"content#a", "content#ü"}))
		case flight.Remaining:
			f.Set(reflect.ValueOf(flight.AllRemaining(9)))
		default:
			f.SetString("2026-11-20T19:00:05Z")
		}
	}
	want.Schema = flight.SchemaVersion
	b, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ReadState(b)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}

func TestAnEventThatIsNotAStateIsRefused(t *testing.T) {
	t.Parallel()
	for _, payload := range []string{
		"", "{", "[]", "null", `{}`, `{"flight":""}`, `{"flight":"a/b"}`, `{"flight":"f","turn":1.5}`,
		`{"flight":"f","turn":"1"}`,
		`{"flight":"f","visibleUntil":1e30}`, `{"flight":"f","left":"*"}`, `{"flight":"f","startedAt":"yesterday"}`,
		`{"schema":9}x`,
	} {
		if got, err := ReadState([]byte(payload)); err == nil {
			t.Errorf("%s: got %+v, want an error", payload, got)
		}
	}
}

func TestAStateOfANewerSchemaIsReadNoFurther(t *testing.T) {
	t.Parallel()
	got, err := ReadState([]byte(`{"schema":99,"flight":"` + id + `","left":{"another":"form"},"turn":"many"}`))
	if err != nil || got.Schema != 99 || got.Flight != id {
		t.Errorf("got %+v, %v", got, err)
	}
}

func FuzzReadState(f *testing.F) {
	b, err := json.Marshal(flight.State{
		Schema: 1, Flight: id, WakeAt: "2026-11-20T19:00:05Z", Remaining: flight.AllRemaining(20),
		Turn: 3,
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"flight":"f","turn":1.0E1,"startedAt":"2026-11-20T19:00:05.5Z"}`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		s, err := ReadState(payload)
		if err != nil || s.Schema > flight.SchemaVersion {
			return
		}
		again, err := json.Marshal(s)
		if err != nil {
			t.Fatalf("encode: %v", err)
		}
		back, err := ReadState(again)
		if err != nil || back.Flight != s.Flight || back.Turn != s.Turn || back.VisibleUntil != s.VisibleUntil ||
			back.Started != s.Started || back.Remaining.Count() != s.Remaining.Count() {
			t.Fatalf("got %+v, %v, want %+v", back, err, s)
		}
	})
}

// turn invokes the function Take with a state. The deadline of the invocation is that far away.
func turn(t *testing.T, left time.Duration, take func(context.Context, flight.State) (flight.State, error)) ([]byte,
	string, error,
) {
	t.Helper()
	j, out := newJournal()
	h := &Turn{Take: take, Limit: 10 * time.Second, Journal: j}
	ctx, cancel := context.WithTimeout(t.Context(), left)
	defer cancel()
	answer, err := h.Invoke(ctx, []byte(`{"schema":1,"flight":"`+id+`","left":"_w","turn":1}`))
	if err != nil && total(t, out, metrics.TurnsLost) != 1 {
		t.Errorf("the metric TurnsLost does not count the lost turn: %s", out)
	}
	return answer, out.String(), err
}

func TestATurnAnswersWithTheNextState(t *testing.T) {
	t.Parallel()
	answer, _, err := turn(t, 10*time.Second, func(ctx context.Context, s flight.State) (flight.State, error) {
		if _, ok := ctx.Deadline(); !ok {
			t.Error("the context of the turn has no deadline")
		}
		s.Turn++
		s.WakeAt = "2026-11-20T19:00:05Z"
		return s, nil
	})
	if err != nil {
		t.Fatalf("Invoke: %v", err)
	}
	got, err := ReadState(answer)
	if err != nil || got.Turn != 2 || got.Remaining.Count() != 8 || got.WakeAt != "2026-11-20T19:00:05Z" {
		t.Errorf("got %s, %v", answer, err)
	}
}

func TestATurnThatFailsOrPanicsIsAnError(t *testing.T) {
	t.Parallel()
	for name, take := range map[string]func(context.Context, flight.State) (flight.State, error){
		"fails": func(context.Context, flight.State) (flight.State, error) {
			return flight.State{}, errors.New("no manifest")
		},
		"panics": func(context.Context, flight.State) (flight.State, error) { panic("hunter2") },
	} {
		answer, out, err := turn(t, 10*time.Second, take)
		if err == nil || answer != nil || strings.Contains(out+err.Error(), "hunter2") {
			t.Errorf("%s: got %s, %v: %s", name, answer, err, out)
		}
	}
}

// A lease is computed from the time-out in the settings. An invocation that may run longer than
// this time-out could write after the end of its lease.
func TestAFunctionThatMayRunLongerThanItsLeaseRefuses(t *testing.T) {
	t.Parallel()
	_, out, err := turn(t, 15*time.Second, func(_ context.Context, s flight.State) (flight.State, error) {
		t.Error("Take was called")
		return s, nil
	})
	if err == nil || !strings.Contains(err.Error(), "index.timeout is 10s") ||
		!strings.Contains(out, metrics.ConfigurationErrors) {
		t.Errorf("got %v: %s", err, out)
	}
	if _, _, err = turn(t, 5*time.Second, func(_ context.Context, s flight.State) (flight.State, error) {
		return s,
			nil
	}); err != nil {
		t.Errorf("less time than the time-out is safe, but the turn returned %v", err)
	}
}

func TestATaskRuns(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		run  func(context.Context, time.Time) error
		says string
	}{
		"well": {func(ctx context.Context, fired time.Time) error {
			if want := time.Date(2026, 11, 20, 16, 0, 0, 0, time.UTC); !fired.Equal(want) {
				return fmt.Errorf("the rule fired at %s, want %s", fired, want)
			}
			return ctx.Err()
		}, ""},
		"fails":  {func(context.Context, time.Time) error { return errors.New("segment rows: denied") }, "segment rows"},
		"panics": {func(context.Context, time.Time) error { panic("hunter2") }, "panic: string"},
	} {
		j, out := newJournal()
		task := &Task{Run: tt.run, Limit: time.Minute, Journal: j}
		answer, err := task.Invoke(t.Context(), []byte(`{"source":"aws.events","time":"2026-11-20T16:00:00Z"}`))
		if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) || err == nil &&
			string(answer) != "{}" {
			t.Errorf("%s: got %s, %v", name, answer, err)
		}
		if strings.Contains(out.String(), "hunter2") {
			t.Errorf("%s: the log contains the panic's value", name)
		}
	}
}

// If a goroutine of an invocation panics, the log names the function that panicked, and not the
// place that recovered. The log never contains the panic's value.
func TestAPanicBesideOthersIsLoggedWhereItHappened(t *testing.T) {
	t.Parallel()
	j, out := newJournal()
	task := &Task{Limit: time.Minute, Journal: j, Run: func(context.Context, time.Time) error {
		fanout.Runner(nil).Each(2, 2, oddPart)
		return nil
	}}
	_, err := task.Invoke(t.Context(), []byte(`{"source":"aws.events"}`))
	if err == nil || !strings.Contains(err.Error(), "panic: string") {
		t.Errorf("got %v, want an error with the type of the panic's value", err)
	}
	if log := out.String(); !strings.Contains(log, "oddPart") || strings.Contains(log, "hunter2") {
		t.Errorf("got the log %s, want the name oddPart and no value of the panic", log)
	}
}

func oddPart(int) { panic("hunter2") }
