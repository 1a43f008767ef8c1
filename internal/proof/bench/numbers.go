package bench

import (
	"fmt"
	"runtime"
	"slices"
	"time"
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
