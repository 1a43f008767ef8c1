package bench

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/lullhq/lull/sink"
)

// Numbers are everything that docs/numbers.md tells.
type Numbers struct {
	Date     time.Time
	Machine  string
	Load     string                       // the machine's load average before anything was measured
	Results  map[string]map[string]Result // by the scenario's key, by contender or variant
	Pairs    []Pair
	Allocs   Allocs
	Intakes  []Intake
	Binaries []Binary
	Start    Start
}

// Job is one run in virtual time.
type Job struct {
	Scenario  Scenario
	Contender Contender
}

// Jobs lists every run, each once.
func Jobs() []Job {
	var jobs []Job
	for _, c := range Contenders() {
		shown := slices.DeleteFunc(varied(), func(s Scenario) bool {
			return c.Usual && s.Key != baseName && s.Key != twoName
		})
		for _, s := range slices.Concat(Others(), trials(), shown) {
			jobs = append(jobs, Job{s, c})
		}
	}
	for _, s := range Alone() {
		jobs = append(jobs, Job{s, Contenders()[0]})
	}
	for _, c := range Variants() {
		jobs = append(jobs, Job{month(), c})
	}
	return jobs
}

// NewNumbers has no figures yet.
func NewNumbers(machine, load string) *Numbers {
	return &Numbers{
		Date: time.Now().UTC(), Machine: machine, Load: load,
		Results: map[string]map[string]Result{},
	}
}

// Processors is how many this machine has.
func (n *Numbers) Processors() int { return runtime.NumCPU() }

// Add takes a result in.
func (n *Numbers) Add(j Job, r Result) {
	if n.Results[j.Scenario.Key] == nil {
		n.Results[j.Scenario.Key] = map[string]Result{}
	}
	n.Results[j.Scenario.Key][j.Contender.Name] = r
}

// Result is what a contender did with a scenario. A page that asks for one that was not run is
// wrong.
func (n *Numbers) Result(key, contender string) (Result, error) {
	r, ok := n.Results[key][contender]
	if !ok {
		return r, fmt.Errorf("%s was not run with scenario %q", contender, key)
	}
	return r, nil
}

// All are the results of a scenario, lull's first.
func (n *Numbers) All(key string) (all []Result, err error) {
	for _, c := range Contenders() {
		r, err := n.Result(key, c.Name)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// Lull is lull's result in a scenario.
func (n *Numbers) Lull(key string) Result { return n.Results[key]["lull"] }

// Size says how much of a measurement in real time to do.
type Size struct {
	Events int // of a processor workload
	Rounds int
	Intake int // events
	Starts int
}

// FullSize is what the documentation shows.
func FullSize() Size { return Size{Events: 20_000, Rounds: 7, Intake: 90_000, Starts: 9} }

// Measure does what needs this machine's own time: one thing after the other, nothing beside it.
func (n *Numbers) Measure(t testing.TB, s Size, sinks map[string]sink.Sink) {
	for _, p := range pairs {
		n.Pairs = append(n.Pairs, p.compare(t, s))
	}
	n.Allocs = MessageAllocs(t)
	for i, name := range []string{"in memory", "Bleve on disk"} {
		for j, burst := range []int{10, 1} {
			if to := sinks[name]; to != nil {
				in := Intake{Sink: name, Burst: burst, Events: s.Intake}
				n.Intakes = append(n.Intakes, EmbeddedIntake(t, in, to, (2*i+j)*s.Intake))
			}
		}
	}
}

// Build builds the functions from the repository at root, weighs them and starts one.
func (n *Numbers) Build(t testing.TB, s Size, root string) {
	n.Binaries = Binaries(t, root)
	n.Start = FirstAnswer(t, root, runtime.GOARCH, s.Starts)
}
