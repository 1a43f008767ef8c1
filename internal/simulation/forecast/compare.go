package forecast

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/config/yamlfile"
	"github.com/lullhq/lull/internal/proof/cost"
	"github.com/lullhq/lull/internal/proof/sim"
)

// Bounds of one comparison. It takes up to some 150 MB and a processor.
const (
	MaxEvents   = 20_000 // of each simulation
	MaxLasting  = 24 * time.Hour
	MaxSettings = 64 << 10 // bytes of text: the YAML parser takes quadratic time
	within      = 2 * time.Minute
	messageSize = 700 // bytes, as `lull cost` has it by default
	points      = 120 // of a chart
)

// Question is what a comparison is asked.
type Question struct {
	Settings string `json:"settings"` // the text of a lull.yaml
	Load     Load   `json:"load"`
}

// Line is one line of an answer: what is being done, then the outcomes, or what is wrong with the
// question.
type Line struct {
	Doing  string   `json:"doing,omitempty"`
	Share  float64  `json:"share"` // of all that has to be done, from 0 to 1
	Today  *Outcome `json:"today,omitempty"`
	Yours  *Outcome `json:"yours,omitempty"`
	Error  string   `json:"error,omitempty"`
	Faults []Wrong  `json:"faults,omitempty"`
}

// Wrong is one fault of a question.
type Wrong struct {
	Field   string `json:"field"` // a setting, or a field of the load
	Line    int    `json:"line,omitempty"`
	Value   string `json:"value,omitempty"`
	Problem string `json:"problem"`
	Fix     string `json:"fix,omitempty"`
}

// Outcome is what one of the two settings makes of the load.
type Outcome struct {
	// Sources are those in whose form the events were; empty where lull can write none of theirs, and
	// the events were native.
	Sources    []string   `json:"sources"`
	Events     int        `json:"events"`
	Bursts     int        `json:"bursts"`
	Virtual    Span       `json:"virtual"`    // until everything was written
	PromiseMS  int64      `json:"promise_ms"` // quiet + window + 1 s
	Freshness  sim.Spread `json:"freshness_ms"`
	Writes     int64      `json:"writes"` // documents that the sinks took
	PerBurst   float64    `json:"writes_per_burst"`
	Requests   int64      `json:"sink_requests"`
	Letters    int        `json:"dead_letters"`
	Violations []string   `json:"violations"`
	Month      Month      `json:"month"`
	Points     []Point    `json:"points"`
}

// Month is what a month of the load costs, in dollars: with as few pollers as AWS may use, and with
// as many as it begins with. The sinks' own price is not in it.
type Month struct {
	Prices     string  `json:"prices"`
	Floor      float64 `json:"floor"`
	Ceiling    float64 `json:"ceiling"`
	PerMillion float64 `json:"per_million_events"` // at the ceiling
}

// Point is a stretch of time on a chart.
type Point struct {
	At        float64 `json:"at"` // seconds since the beginning
	Committed int     `json:"committed"`
	P50       int64   `json:"p50_ms"` // of the versions committed, 0 of none
	P99       int64   `json:"p99_ms"`
	Written   float64 `json:"written"` // documents a second
	Throttled float64 `json:"throttled"`
	Waiting   int     `json:"waiting"`
}

// ErrBusy says that a comparison runs: there is one at a time.
var ErrBusy = errors.New("another simulation runs: wait for its end, or stop it")

// Comparer compares settings with those that run. It is safe for concurrent use.
type Comparer struct {
	running config.Config
	text    string
	busy    *semaphore.Weighted
	// patience is how long a comparison waits for the end of another one, which may have been stopped.
	patience time.Duration
	within   time.Duration // a comparison that takes longer is given up
}

// NewComparer returns one for the settings that run, which must be valid.
func NewComparer(running *config.Config) (*Comparer, error) {
	text, err := yamlfile.Text(*running)
	if err != nil {
		return nil, err
	}
	return &Comparer{
		running: *running, text: string(text), busy: semaphore.NewWeighted(1), patience: 5 * time.Second,
		within: within,
	}, nil
}

// Settings is the text of the settings that run.
func (c *Comparer) Settings() string { return c.text }

// Compare reads a [Question] and tells its answer, a [Line] at a time. What is wrong with the
// question is a line too: the error is ErrBusy, or the context's. A comparison that takes longer
// than two minutes is given up.
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

// read returns every fault of the question at once.
func (c *Comparer) read(question []byte) (l Load, yours *config.Config, err error) {
	q := Question{Settings: c.text, Load: Steady()}
	d := json.NewDecoder(bytes.NewReader(question))
	d.DisallowUnknownFields()
	if err := d.Decode(&q); err != nil {
		return l, nil, fmt.Errorf("read the question: %w", err)
	}
	l = q.Load
	events, lasting := l.Rate*time.Duration(l.Lasting).Seconds(), time.Duration(l.Lasting)
	_, strained := l.Sim(lasting)
	load := errors.Join(l.Validate(), strained,
		want(lasting <= MaxLasting, "for", l.Lasting, "want at most %s", MaxLasting),
		want(!(events > MaxEvents), "load", l.Rate,
			"%.0f events in %s: want at most %d, so fewer a second or a shorter time", events, lasting, MaxEvents))
	yours, err = parse(q.Settings)
	return l, yours, errors.Join(load, err)
}

func parse(text string) (*config.Config, error) {
	if len(text) > MaxSettings {
		return nil, fmt.Errorf("the settings are %d bytes: want at most %d", len(text), MaxSettings)
	}
	c, err := yamlfile.Parse([]byte(text))
	if err != nil {
		return nil, err
	}
	c.Complete()
	return &c, c.Validate()
}

// wrong takes an error apart for a page. Text that is not YAML is one sentence.
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

// both runs the settings that run, and the others where they differ.
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
		o, err := outcome(ctx, side.of, l, func(doing string, share float64) {
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

// simulating is about which share of the work the simulation is: the rest is the bill.
const simulating = 0.5

func outcome(ctx context.Context, c *config.Config, l Load, tell func(doing string, share float64)) (*Outcome, error) {
	own, up, formats := events(c, l)
	strain, err := l.Sim(up.Calm)
	if err != nil {
		return nil, err
	}
	r, err := Run(ctx, sim.Options{
		Config: own, Seed: 1, Faults: sim.NoFaults, Upstream: up, Pollers: cost.FirstPollers, Strain: strain,
		Timeline: true,
	}, func(share float64) { tell("events", share*simulating) })
	if err != nil {
		return nil, err
	}
	tell("the bill of a month", simulating)
	bill, err := cost.Of(ctx, c, cost.Load{
		Rate: l.Rate, Burst: l.Burst, Spread: time.Duration(l.Spread), Hours: 24, Documents: l.Documents,
		Bytes: messageSize,
	})
	if err != nil {
		return nil, err
	}
	s := r.Summary(sim.NoFaults)
	o := &Outcome{
		Sources: formats, Events: r.Counts.Events, Bursts: (r.Counts.Events + l.Burst - 1) / l.Burst,
		Virtual:   Span(len(r.Timeline)) * Span(time.Second),
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

// events is what the load sends: in the form of the settings' sources, or, where lull can write
// none of theirs, as native events. All else of such settings can be simulated.
func events(c *config.Config, l Load) (own *config.Config, up sim.Upstream, formats []string) {
	up, formats, err := l.Of(1, c)
	if err != nil {
		return cost.Native(c), l.Upstream(1), nil
	}
	return c, up, formats
}

// promise is how fresh a document of the default collection is at p99, while its sink is well.
func promise(c *config.Config) time.Duration {
	return c.For(c.DefaultCollection).Quiet + c.Queues.Live.Window + time.Second
}
