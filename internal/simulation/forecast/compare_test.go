// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/simulation/sim"
	"github.com/lullhq/lull/setting"
	"github.com/lullhq/lull/source"
)

func comparer(t *testing.T) *Comparer {
	t.Helper()
	c, err := NewComparer(settings())
	if err != nil {
		t.Fatal(err)
	}
	c.within = time.Hour // a busy machine may be slow
	return c
}

// ask runs a comparison and returns the lines of the answer.
func ask(t *testing.T, c *Comparer, q Question) (lines []Line) {
	t.Helper()
	text, err := json.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Compare(t.Context(), text, func(line any) { lines = append(lines, asLine(line)) }); err != nil {
		t.Fatal(err)
	}
	return lines
}

// TestSettingsAreComparedWithThoseThatRun: with a longer quiet window documents are written later,
// and an outage shows in the charts of both settings.
func TestSettingsAreComparedWithThoseThatRun(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("ten simulations")
	}
	c := comparer(t)
	l := minutes(8)
	l.Burst, l.Down = 3, "2m-4m"
	lines := ask(t, c, Question{Settings: strings.Replace(c.Settings(), "quiet: 5s", "quiet: 9s", 1), Load: l})
	var today, yours *Outcome
	share := 0.0
	for _, line := range lines {
		if line.Error != "" || line.Share < share {
			t.Fatalf("%+v", line)
		}
		share = line.Share
		if line.Today != nil {
			today = line.Today
		}
		if line.Yours != nil {
			yours = line.Yours
		}
	}
	if today == nil || yours == nil || share != 1 {
		t.Fatalf("%d lines, the last %+v", len(lines), lines[len(lines)-1])
	}
	for _, o := range []*Outcome{today, yours} {
		if len(o.Violations) > 0 || o.Letters > 0 || o.Events < 300 || o.PerBurst < 0.5 || o.PerBurst > 1.2 ||
			o.Stopped || o.Month.Floor < 1 || o.Month.Ceiling < o.Month.Floor || o.PromiseMS < 9000 {
			t.Errorf("%+v", o)
		}
		worst := slices.MaxFunc(o.Points, func(a, b Point) int { return int(a.P99 - b.P99) })
		if len(o.Points) < 50 || worst.P99 < 60_000 || worst.At < 240 {
			t.Errorf("the outage ends at 240 s, the worst of %d points is %+v", len(o.Points), worst)
		}
	}
	if yours.Freshness.P50 < today.Freshness.P50+3000 || yours.PromiseMS != today.PromiseMS+4000 {
		t.Errorf("p50 %d ms with quiet 5 s, %d ms with 9 s", today.Freshness.P50, yours.Freshness.P50)
	}
}

// mute is a user's own kind of source. lull cannot write a message of this kind.
type mute struct{ *source.Rules }

func (mute) Decode(event.Body) (source.Draft, *event.Invalid) { return source.Draft{Skip: "mute"}, nil }

func init() {
	source.Register(source.Kind{
		Kind: setting.Kind{Name: "mute", Doc: "Messages that lull cannot write."}, Class: source.ClassInt,
		New: func(r *source.Rules) (source.Format, error) { return mute{r}, nil },
	})
}

// TestEventsAreInTheFormOfTheSources: events have the formats of the settings' sources, or are
// native.
func TestEventsAreInTheFormOfTheSources(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"":                                       {"native"},
		"sources: {publishing: {kind: govuk}}\n": {"publishing"},
		"sources: {a: {kind: native}, b: {kind: debezium, match: [{named: true}]}}\ndefaultSource: a\n": {"a", "b"},
		"sources: {own: {kind: mute}}\n": nil,
	} {
		c, err := parse(text + "sinks: {search: {kind: memory}, other: {kind: memory}}\ndefaultSink: search\ndefaultCollection: content\n")
		if err != nil {
			t.Errorf("%s%v", text, err)
			continue
		}
		own, up, formats := events(c, minutes(1))
		sources, err := source.New(own)
		if err != nil || !slices.Equal(formats, want) || len(up.Arrivals) < 30 {
			t.Errorf("%s%d messages of %v, %v, want some of %v", text, len(up.Arrivals), formats, err, want)
			continue
		}
		for _, a := range up.Arrivals {
			m := queue.Message{Body: a.Message.Body, Attributes: a.Message.Attributes, Sent: sim.Begin()}
			for _, r := range sources.Decode(m) {
				if r.Invalid != nil {
					t.Fatalf("%s%s becomes a dead letter: %v", text, a.Message.Body, r.Invalid)
				}
			}
		}
	}
}

func TestTheSameSettingsRunOnce(t *testing.T) {
	t.Parallel()
	c := comparer(t)
	lines := ask(t, c, Question{Settings: c.Settings(), Load: minutes(1)})
	if last := lines[len(lines)-1]; last.Today == nil || last.Share != 1 {
		t.Errorf("the last line is %+v", last)
	}
}

func TestWhatIsWrongIsNamedByField(t *testing.T) {
	t.Parallel()
	c := comparer(t)
	busy := minutes(60)
	busy.Rate = 500
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a]\nc: [*b,*b,*b,*b,*b]\n"
	for name, tt := range map[string]struct {
		question string
		fields   string // the fields that the faults name
		says     string
	}{
		"settings and load": {
			`{"settings":"debounce: {quite: 5s}\nstuck: 1\nsinks: {search: {kind: memory}}\n",
				"load":{"load":0,"burst":0}}`,
			"load burst debounce.quite stuck", "did you mean debounce.quiet?",
		},
		"a contradiction": {
			`{"settings":"debounce: {quiet: 40s, maxWait: 10s}\nsinks: {search: {kind: memory}}",
				"load":{"load":1,"for":"1m"}}`,
			"", "quiet",
		},
		"too many events": {string(must(json.Marshal(Question{c.Settings(), busy}))), "load", "at most 20000"},
		"too long":        {`{"load":{"load":0.001,"for":"240h"}}`, "for", "24h"},
		"no duration":     {`{"load":{"load":1,"for":"soon"}}`, "", "not a duration"},
		"no JSON":         {`]`, "", "read the question"},
		"unknown field":   {`{"loud":{}}`, "", "loud"},
		"many sinks":      {string(must(json.Marshal(Question{manySinks(33, 1), minutes(1)}))), "sinks", "at most 32"},
		"a collection with many sinks": {
			string(must(json.Marshal(Question{manySinks(5, 5), minutes(1)}))), "collections.content.sinks", "at most 4",
		},
		"a bomb":      {string(must(json.Marshal(Question{bomb, minutes(1)}))), "", "anchors"},
		"a long text": {`{"settings":"` + strings.Repeat("#", MaxSettings+1) + `","load":{"load":1}}`, "", "at most 65536"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var lines []Line
			err := comparer(t).Compare(t.Context(), []byte(tt.question), func(l any) {
				lines = append(lines, asLine(l))
			})
			if err != nil || len(lines) != 1 || !strings.Contains(lines[0].Error, tt.says) {
				t.Fatalf("got %v and %+v, want one line that says %q", err, lines, tt.says)
			}
			var fields []string
			for _, f := range lines[0].Faults {
				fields = append(fields, f.Field)
			}
			if got := strings.Join(fields, " "); tt.fields != "" && got != tt.fields {
				t.Errorf("faults of %s, want %s", got, tt.fields)
			}
		})
	}
}

// manySinks returns settings with n sinks. One collection is written to as many sinks as of says.
func manySinks(n, of int) string {
	var sinks, copies []string
	for i := range n {
		sinks = append(sinks, fmt.Sprintf("s%d: {kind: memory}", i))
		copies = append(copies, fmt.Sprint("s", i))
	}
	return fmt.Sprintf("sinks: {%s}\ndefaultSink: s0\ncollections: {content: {sinks: [%s]}}\n"+
		"defaultCollection: content\n", strings.Join(sinks, ", "), strings.Join(copies[:of], ", "))
}

// TestASimulationThatTakesTooLongIsStoppedAndSaysSo compares settings with the largest allowed
// number of sinks. When the time is over, the answer covers only the simulated time, and says so.
func TestASimulationThatTakesTooLongIsStoppedAndSaysSo(t *testing.T) {
	t.Parallel()
	c := comparer(t)
	c.simulating = 0
	lines := ask(t, c, Question{Settings: manySinks(32, 4), Load: minutes(1)})
	got := 0
	for _, l := range lines {
		if l.Error != "" {
			t.Fatalf("%+v", l)
		}
		for _, o := range []*Outcome{l.Today, l.Yours} {
			if o == nil {
				continue
			}
			if got++; !o.Stopped || o.Virtual > Span(2*time.Second) || o.Writes > 0 || o.Month.Ceiling == 0 ||
				len(o.Violations) > 0 {
				t.Errorf("got %+v", o)
			}
		}
	}
	if got != 2 {
		t.Errorf("%d outcomes: %+v", got, lines)
	}
}

// asLine returns a line of an answer. Any other value becomes the zero Line, which makes the test
// fail.
func asLine(told any) Line {
	l, _ := told.(Line)
	return l
}

func must(text []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return text
}

// TestOneComparisonAtATime: only one comparison runs at a time. A cancelled comparison ends at
// once.
func TestOneComparisonAtATime(t *testing.T) {
	t.Parallel()
	c := comparer(t)
	c.patience = 0
	ctx, cancel := context.WithCancel(t.Context())
	long := must(json.Marshal(Question{c.Settings(), minutes(120)}))
	told := 0
	err := c.Compare(ctx, long, func(any) {
		if told++; told == 1 {
			if err := c.Compare(ctx, long, func(any) {}); !errors.Is(err, ErrBusy) {
				t.Errorf("a second comparison returned %v, want ErrBusy", err)
			}
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || told != 1 {
		t.Errorf("got %v after %d lines, want it cancelled after the first", err, told)
	}
	if lines := ask(t, c, Question{Settings: "x: 1", Load: minutes(1)}); lines[0].Error == "" {
		t.Errorf("%+v", lines)
	}
}

// TestAComparisonWaitsForTheOneThatWasStopped: a new comparison waits for the end of a stopped one,
// and does not return ErrBusy.
func TestAComparisonWaitsForTheOneThatWasStopped(t *testing.T) {
	t.Parallel()
	c := comparer(t)
	c.patience = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	begun, ended := make(chan struct{}), make(chan error)
	go func() {
		ended <- c.Compare(ctx, must(json.Marshal(Question{c.Settings(), minutes(120)})), func(any) {
			select {
			case begun <- struct{}{}:
			default:
			}
		})
	}()
	<-begun
	second := make(chan error)
	go func() { second <- c.Compare(t.Context(), []byte("]"), func(any) {}) }()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := <-second; err != nil {
		t.Error(err)
	}
}
