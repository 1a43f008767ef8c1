package bench

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/lullhq/lull/sink"
)

// Numbers are everything that docs/numbers.md tells.
type Numbers struct {
	Date     time.Time
	Machine  string
	Axes     []Axis
	Results  map[string]map[string]Result // by scenario's key, by contender
	Variants map[string]Result            // of the month
	Pairs    []Pair
	Allocs   Allocs
	Intakes  []NamedIntake
	Binaries []Binary
	Start    Start
}

// NamedIntake is an intake into a sink.
type NamedIntake struct {
	Sink string
	Intake
}

// Job is one run in virtual time.
type Job struct {
	Key       string // of the scenario
	Scenario  Scenario
	Contender Contender
	Variant   bool
}

// axisKey names a scenario of an axis; the base scenario is one on every axis, and is run once.
func axisKey(a Axis, s Scenario) string {
	plain := s
	plain.Name = baseName
	if plain == base() {
		return baseName
	}
	return a.Name + ": " + s.Name
}

// Jobs lists every run, each once.
func Jobs() []Job {
	var jobs []Job
	seen := map[string]bool{}
	all := func(key string, s Scenario) {
		for _, c := range Contenders() {
			if id := key + "/" + c.Name; !seen[id] {
				seen[id] = true
				jobs = append(jobs, Job{Key: key, Scenario: s, Contender: c})
			}
		}
	}
	for _, a := range Axes() {
		for _, s := range a.Values {
			all(axisKey(a, s), s)
		}
	}
	for _, s := range Others() {
		all(s.Name, s)
	}
	for _, s := range Alone() {
		jobs = append(jobs, Job{Key: s.Name, Scenario: s, Contender: Contenders()[0]})
	}
	for _, c := range Variants() {
		jobs = append(jobs, Job{Key: monthName, Scenario: month(), Contender: c, Variant: true})
	}
	return jobs
}

// NewNumbers are none yet.
func NewNumbers(now time.Time, machine string) *Numbers {
	return &Numbers{
		Date: now, Machine: machine, Axes: Axes(), Results: map[string]map[string]Result{},
		Variants: map[string]Result{},
	}
}

// Add takes a result in.
func (n *Numbers) Add(j Job, r Result) {
	if j.Variant {
		n.Variants[j.Contender.Name] = r
		return
	}
	if n.Results[j.Key] == nil {
		n.Results[j.Key] = map[string]Result{}
	}
	n.Results[j.Key][j.Contender.Name] = r
}

// Size says how much of a measurement in real time to do.
type Size struct {
	Events int // of a processor workload
	Rounds int
	Intake int // events
	Starts int
}

// FullSize is what the documentation shows.
func FullSize() Size { return Size{Events: 20_000, Rounds: 7, Intake: 90_000, Starts: 9} }

// pairs are the workloads that processor time is compared over.
var pairs = []struct {
	name     string
	burst, a int
	sink     bool
}{
	{"bursts of 10, one poller", 10, 2, true},
	{"the same without the sink's client", 10, 2, false},
	{"bursts of 5, two pollers", 5, 3, true},
	{"bursts of 100, one poller", 100, 2, true},
	{"single events", 1, 1, true},
}

// Measure does what needs this machine's own time: one thing after the other, nothing beside it.
func (n *Numbers) Measure(ctx context.Context, s Size, sinks map[string]func() (sink.Sink, error)) error {
	for _, p := range pairs {
		pair, err := Compare(ctx, p.name, s.Events/p.burst, p.burst, p.a, s.Rounds, p.sink)
		if err != nil {
			return fmt.Errorf("compare %s: %w", p.name, err)
		}
		n.Pairs = append(n.Pairs, pair)
	}
	var err error
	if n.Allocs, err = MessageAllocs(ctx); err != nil {
		return fmt.Errorf("count allocations: %w", err)
	}
	for _, name := range []string{"in memory", "Bleve on disk"} {
		if sinks[name] == nil {
			continue
		}
		in, err := EmbeddedIntake(ctx, s.Intake, sinks[name])
		if err != nil {
			return fmt.Errorf("intake into %s: %w", name, err)
		}
		n.Intakes = append(n.Intakes, NamedIntake{name, in})
	}
	return nil
}

// Build builds the functions in dir, from the repository at root, weighs them and starts one.
func (n *Numbers) Build(ctx context.Context, s Size, root, dir string) (err error) {
	if n.Binaries, err = Binaries(ctx, root, dir); err != nil {
		return err
	}
	n.Start, err = FirstAnswer(ctx, root, dir, runtime.GOARCH, s.Starts)
	return err
}

// lull is its result in a scenario.
func (n *Numbers) lull(key string) Result { return n.Results[key][Contenders()[0].Name] }
