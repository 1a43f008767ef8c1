// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/config/yamlfile"
	"github.com/lullhq/lull/internal/simulation/cost"
	"github.com/lullhq/lull/internal/simulation/sim"
)

// Bounds of one comparison. A comparison uses one processor and, with one sink, at most 512 MB.
// Each further sink of a document takes as much memory again.
const (
	MaxEvents   = 20_000 // the most events of each simulation
	MaxLasting  = 24 * time.Hour
	MaxSettings = 64 << 10 // bytes of text: the YAML parser takes quadratic time
	MaxSinks    = 32       // the most sinks in the settings
	MaxCopies   = 4        // the most sinks of a collection: each event is simulated for each sink
	within      = 2 * time.Minute
	messageSize = 700 // bytes of a message, the default of `lull cost`
	points      = 120 // the number of points of a chart
	memory      = 512 // MB
	simulating  = 0.8 // the share of the time for simulations; bills take the rest
)

// Question is the input of a comparison.
type Question struct {
	Settings string `json:"settings"` // the text of a lull.yaml
	Load     Load   `json:"load"`
}

// Line is one line of an answer. The first lines show the progress. The last lines have the
// outcomes, or the faults of the question.
type Line struct {
	Doing  string   `json:"doing,omitempty"`
	Share  float64  `json:"share"` // the finished share of the work, from 0 to 1
	Today  *Outcome `json:"today,omitempty"`
	Yours  *Outcome `json:"yours,omitempty"`
	Error  string   `json:"error,omitempty"`
	Faults []Wrong  `json:"faults,omitempty"`
}

// Wrong is one fault in a question.
type Wrong struct {
	Field   string `json:"field"` // the name of a setting, or of a field of the load
	Line    int    `json:"line,omitempty"`
	Value   string `json:"value,omitempty"`
	Problem string `json:"problem"`
	Fix     string `json:"fix,omitempty"`
}

// Outcome is the result of a load with one of the two settings.
type Outcome struct {
	// Sources are the sources whose formats the events had. If lull cannot write any format of the
	// settings, Sources is empty and the events were native.
	Sources []string `json:"sources"`
	Events  int      `json:"events"`
	Bursts  int      `json:"bursts"`
	Virtual Span     `json:"virtual"` // virtual time until everything was written, or until the simulation was stopped
	// Stopped says that the simulation ran out of time. The outcome then covers only the virtual
	// time, and the writes, before that moment.
	Stopped    bool       `json:"stopped,omitempty"`
	PromiseMS  int64      `json:"promise_ms"` // quiet + window + 1 s
	Freshness  sim.Spread `json:"freshness_ms"`
	Writes     int64      `json:"writes"` // documents that the sinks accepted
	PerBurst   float64    `json:"writes_per_burst"`
	Requests   int64      `json:"sink_requests"`
	Letters    int        `json:"dead_letters"`
	Violations []string   `json:"violations"`
	Month      Month      `json:"month"`
	Points     []Point    `json:"points"`
}

// Month is the cost of a month of the load, in dollars. Floor is for the fewest pollers that AWS
// may use, Ceiling for the number with which AWS starts. The price of the sinks is not included.
type Month struct {
	Prices     string  `json:"prices"`
	Floor      float64 `json:"floor"`
	Ceiling    float64 `json:"ceiling"`
	PerMillion float64 `json:"per_million_events"` // at the ceiling
}

// Point is a period of time on a chart.
type Point struct {
	At        float64 `json:"at"` // seconds since the beginning
	Committed int     `json:"committed"`
	P50       int64   `json:"p50_ms"` // median freshness of the committed versions, 0 if there are none
	P99       int64   `json:"p99_ms"`
	Written   float64 `json:"written"` // documents written in a second
	Throttled float64 `json:"throttled"`
	Waiting   int     `json:"waiting"`
}

// ErrBusy says that another comparison is running. Only one comparison runs at a time.
var ErrBusy = errors.New("another simulation runs: wait for its end, or stop it")

// Comparer compares given settings with the running settings. A Comparer is safe for concurrent
// use.
type Comparer struct {
	running config.Config
	text    string
	busy    *semaphore.Weighted
	// patience is how long a new comparison waits for the end of another one. The other one may
	// just have been stopped.
	patience time.Duration
	within   time.Duration // a comparison that takes longer is cancelled
	// simulating is the share of within for simulations. A simulation that takes longer is stopped.
	simulating float64
}

// NewComparer returns a Comparer for the running settings, which must be valid.
func NewComparer(running *config.Config) (*Comparer, error) {
	text, err := yamlfile.Text(*running)
	if err != nil {
		return nil, err
	}
	return &Comparer{
		running: *running, text: string(text), busy: semaphore.NewWeighted(1), patience: 5 * time.Second,
		within: within, simulating: simulating,
	}, nil
}

// Settings returns the text of the running settings.
func (c *Comparer) Settings() string { return c.text }

// Compare reads a [Question] and calls tell for each [Line] of the answer. Faults in the question
// are also reported as a Line. Compare returns only ErrBusy or the error of ctx. A simulation that
// takes too long is stopped, and its Outcome says so. A comparison that takes longer than two
// minutes is cancelled.
func (c *Comparer) Compare(ctx context.Context, question []byte, tell func(line any)) error {
	if !c.room(ctx) {
		return ErrBusy
	}
	defer c.busy.Release(1)
	limited, cancel := context.WithTimeout(ctx, c.within)
	defer cancel()
	load, yours, err := c.read(question)
	if err == nil {
		err = c.both(limited, load, yours, func(l Line) { tell(l) })
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		tell(Line{Error: fmt.Sprintf("not done after %s: try fewer events, a shorter time or a faster sink", c.within)})
	case err != nil:
		tell(Line{Error: err.Error(), Faults: wrong(err)})
	}
	return nil
}

// room waits a little for the end of a comparison that was just stopped.
func (c *Comparer) room(ctx context.Context) bool {
	if c.busy.TryAcquire(1) {
		return true
	}
	patient, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	return c.busy.Acquire(patient, 1) == nil
}

// read parses a question. read returns all faults of the question at once.
func (c *Comparer) read(question []byte) (l Load, yours *config.Config, err error) {
	q := Question{Settings: c.text, Load: Steady()}
	d := json.NewDecoder(bytes.NewReader(question))
	d.DisallowUnknownFields()
	if err := d.Decode(&q); err != nil {
		return l, nil, fmt.Errorf("read the question: %w", err)
	}
	l = q.Load
	events, lasting := l.Rate*l.surged()*time.Duration(l.Lasting).Seconds(), time.Duration(l.Lasting)
	_, strained := l.Sim(lasting)
	load := errors.Join(l.Validate(), strained,
		want(lasting <= MaxLasting, "for", l.Lasting, "use at most %s", MaxLasting),
		want(!(events > MaxEvents), "load", l.Rate,
			"%.0f events in %s: use at most %d: lower the rate or the duration", events, lasting, MaxEvents))
	if yours, err = parse(q.Settings); err == nil {
		err = fewSinks(yours)
	}
	return l, yours, errors.Join(load, err)
}

// fewSinks refuses settings with more sinks than a comparison has memory for.
func fewSinks(c *config.Config) error {
	var all []error
	few := func(n, most int, setting string) {
		if n > most {
			all = append(all, &config.Fault{
				Setting: setting, Value: fmt.Sprintf("%d sinks", n), Problem: "are too many to simulate",
				Fix: fmt.Sprintf("leave at most %d", most),
			})
		}
	}
	few(len(c.Sinks), MaxSinks, "sinks")
	for _, name := range slices.Sorted(maps.Keys(c.Collections)) {
		few(len(c.SinksFor(name)), MaxCopies, "collections."+name+".sinks")
	}
	return errors.Join(all...)
}

func parse(text string) (*config.Config, error) {
	if len(text) > MaxSettings {
		return nil, fmt.Errorf("the settings are %d bytes: use at most %d", len(text), MaxSettings)
	}
	c, err := yamlfile.Parse([]byte(text))
	if err != nil {
		return nil, err
	}
	c.Complete()
	return &c, c.Validate()
}

// wrong splits an error into faults for the page. An error about text that is not YAML becomes one
// sentence.
func wrong(err error) []Wrong {
	var all []Wrong
	for _, f := range Faults(err) {
		all = append(all, Wrong{Field: f.Field, Value: f.Value, Problem: f.Problem})
	}
	for _, f := range config.Faults(err) {
		all = append(all, Wrong{Field: f.Setting, Line: f.Line, Value: f.Value, Problem: f.Problem, Fix: f.Fix})
	}
	return all
}

// both simulates the running settings. both also simulates the question's settings if they differ.
func (c *Comparer) both(ctx context.Context, l Load, yours *config.Config, tell func(Line)) error {
	running := c.running
	sides := []struct {
		name string
		of   *config.Config
		put  func(*Line, *Outcome)
	}{
		{"today's settings", &running, func(l *Line, o *Outcome) { l.Today = o }},
		{"your settings", yours, func(l *Line, o *Outcome) { l.Yours = o }},
	}
	if reflect.DeepEqual(&running, yours) {
		sides = sides[:1]
	}
	for i, side := range sides {
		part := func(share float64) float64 { return (float64(i) + share) / float64(len(sides)) }
		most := time.Duration(float64(c.within) * c.simulating / float64(len(sides)))
		o, err := outcome(ctx, side.of, l, time.Now().Add(most), func(doing string, share float64) {
			tell(Line{Doing: side.name + ": " + doing, Share: part(share)})
		})
		if err != nil {
			return err
		}
		line := Line{Share: part(1)}
		side.put(&line, o)
		tell(line)
	}
	return nil
}

// simulated is the approximate share of the work for the simulation. The bill takes the rest.
const simulated = 0.5

// outcome simulates until the time is over, and calculates the bill.
func outcome(ctx context.Context, c *config.Config, l Load, over time.Time, tell func(doing string, share float64)) (
	*Outcome, error,
) {
	own, up, formats := events(c, l)
	strain, err := l.Sim(up.Calm)
	if err != nil {
		return nil, err
	}
	r, err := Run(ctx, sim.Options{
		Config: own, Seed: 1, Faults: sim.NoFaults, Upstream: up, Pollers: cost.FirstPollers, Strain: strain,
		Timeline: true, GoOn: func(time.Duration) bool { return time.Now().Before(over) },
	}, func(share float64) { tell("events", share*simulated) })
	if err != nil {
		return nil, err
	}
	tell("the bill of a month", simulated)
	bill, err := cost.Of(ctx, c, cost.Load{
		Rate: l.Rate, Burst: l.Burst, Spread: time.Duration(l.Spread), Hours: 24, Documents: l.Documents,
		Bytes: messageSize, Most: MaxEvents,
	})
	if err != nil {
		return nil, err
	}
	s := r.Summary(sim.NoFaults)
	o := &Outcome{
		Sources: formats, Events: r.Counts.Events, Bursts: (r.Counts.Events + l.Burst - 1) / l.Burst,
		Virtual: Span(len(r.Timeline)) * Span(time.Second), Stopped: r.Stopped,
		PromiseMS: promise(own).Milliseconds(),
		Freshness: s.Freshness, Writes: r.Counts.Applied, Requests: r.Counts.Requests, Letters: r.Extremes.Letters,
		Violations: s.Violations,
		Month: Month{
			Prices: bill.Prices, Floor: bill.Floor.Total, Ceiling: bill.Ceiling.Total,
			PerMillion: bill.Ceiling.PerMillion,
		},
		Points: []Point{},
	}
	o.PerBurst = float64(o.Writes) / float64(max(o.Bursts, 1))
	for _, p := range sim.Points(r.Timeline, points) {
		o.Points = append(o.Points, Point{
			At: p.From.Seconds(), Committed: p.Committed, P50: p.P50.Milliseconds(), P99: p.P99.Milliseconds(),
			Written: p.Written, Throttled: p.Throttled, Waiting: p.Waiting,
		})
	}
	return o, nil
}

// events returns the load's events in the formats of the settings' sources. If lull cannot write
// any of these formats, the events are native. Settings with such formats can still be simulated,
// with native events.
func events(c *config.Config, l Load) (own *config.Config, up sim.Upstream, formats []string) {
	up, formats, err := l.Of(1, c)
	if err != nil {
		return cost.Native(c), l.Upstream(1), nil
	}
	return c, up, formats
}

// promise returns the p99 freshness that lull promises for the default collection while its sink is
// healthy.
func promise(c *config.Config) time.Duration {
	return c.For(c.DefaultCollection).Quiet + c.Queues.Live.Window + time.Second
}
