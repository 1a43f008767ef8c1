// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"runtime"
	"slices"
	"time"
)

// Numbers are all figures of docs/numbers.md.
type Numbers struct {
	Date     time.Time
	Machine  string
	Load     string                       // the machine's load average before the measurements
	Results  map[string]map[string]Result // by the scenario's key, then by contender or variant
	Pairs    []Pair
	Allocs   Allocs
	Intakes  []Intake
	Binaries []Binary
	Start    Start
	Engines  string // the part of the page that `make bench-engines` writes: it stays as it is
}

// Job is one run in virtual time.
type Job struct {
	Scenario  Scenario
	Contender Contender
}

// Jobs lists all runs, each once.
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

// NewNumbers returns Numbers without figures.
func NewNumbers(machine, load string) *Numbers {
	return &Numbers{
		Date: time.Now().UTC(), Machine: machine, Load: load,
		Results: map[string]map[string]Result{},
	}
}

// Processors returns how many processors this machine has.
func (n *Numbers) Processors() int { return runtime.NumCPU() }

// Add adds the result of a job.
func (n *Numbers) Add(j Job, r Result) {
	if n.Results[j.Scenario.Key] == nil {
		n.Results[j.Scenario.Key] = map[string]Result{}
	}
	n.Results[j.Scenario.Key][j.Contender.Name] = r
}

// Result returns the result of a contender in a scenario. It is an error if the page asks for a
// result that was not run.
func (n *Numbers) Result(key, contender string) (Result, error) {
	r, ok := n.Results[key][contender]
	if !ok {
		return r, fmt.Errorf("%s was not run with scenario %q", contender, key)
	}
	return r, nil
}

// Lull returns lull's result in a scenario.
func (n *Numbers) Lull(key string) Result { return n.Results[key]["lull"] }
