// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/pipeline/index"
	"github.com/lullhq/lull/internal/proof/refine"
	"github.com/lullhq/lull/internal/proof/tree"
	"github.com/lullhq/lull/internal/simulation/sim"
	"github.com/lullhq/lull/sink"
)

// follow simulates a seed, and compares each step with the model. In some runs, the sink's client
// panics on a document until the document becomes a dead letter.
func follow(t *testing.T, seed uint64, hooks func(w **sim.World) sim.Hooks) (*refine.Checker, sim.Result) {
	t.Helper()
	o, sources := sim.One(t, seed)
	c, err := refine.New(refine.Settings{
		Versions:    o.Config.Sinks["search"].Capabilities().Versions,
		MaxRefusals: o.Config.Retry.MaxRefusals, Upstream: o.Upstream,
		Sources: sources,
	})
	if err != nil {
		t.Fatal(err)
	}
	var w *sim.World
	switch o.Watch = c.See; {
	case hooks != nil:
		o.Hooks = hooks(&w)
	case seed%16 == 9:
		o.Upstream.Calm += 3 * time.Minute
		left := 8
		o.Hooks.Index = func(h *index.Handler) { h.Sink = &panicking{h.Sink, &left} }
	}
	if _, only := sim.LongRun(); only != 0 {
		o.Story = os.Stdout
	}
	if w, err = sim.New(o); err != nil {
		t.Fatal(err)
	}
	return c, w.Run()
}

// panicking is a client that panics after the answers to its first requests.
type panicking struct {
	sink.Sink
	left *int
}

func (p *panicking) Write(ctx context.Context, ops []sink.Op) []sink.Outcome {
	out := p.Sink.Write(ctx, ops)
	if *p.left--; *p.left > 0 {
		panic("after the request")
	}
	return out
}

// TestEveryStepOfADocumentIsAStepOfTheModel: each step of the code for a document, with injected
// failures, must be a step of the model. Each kind of step in [refine.Mapping] must occur. -seed
// prints the story of one simulated run, and -for continues with more seeds.
func TestEveryStepOfADocumentIsAStepOfTheModel(t *testing.T) {
	t.Parallel()
	counts := map[refine.Step]int{}
	first, last := uint64(1), sim.Seeds(12000)
	long, only := sim.LongRun()
	if only != 0 {
		first, last = only, only
	}
	for seed, what := range map[uint64]string{
		6889:  "a version is applied without an answer, and then refused for good",
		31465: "a PARK of a version that is not pending comes after the ADMIT of an older one",
		27922: "a REJECT arrives after its sender has ended, so its flight does not know of it",
	} {
		c, _ := follow(t, seed, nil)
		for _, p := range c.Partings() {
			t.Errorf("seed %d (%s): %s", seed, what, p)
		}
	}
	began := time.Now()
	for seed := first; (seed <= last || time.Since(began) < long/4) && !t.Failed(); seed++ {
		c, r := follow(t, seed, nil)
		for _, p := range c.Partings() {
			t.Errorf("seed %d: %s", seed, p)
		}
		for _, v := range r.Violations {
			t.Errorf("seed %d: %s", seed, v)
		}
		for step, n := range c.Counts {
			counts[step] += n
		}
	}
	for _, l := range refine.Mapping() {
		if n := counts[l.Step]; n == 0 && last == 12000 && !l.Never {
			t.Errorf("%s: never happens in %d worlds", l.Step, last)
		}
		t.Logf("%8d %s", counts[l.Step], l.Step)
		delete(counts, l.Step)
	}
	for step := range counts {
		t.Errorf("%s is not in Mapping", step)
	}
}

// within are the numbers of runs within which a mutant counts as found, with some margin.
var within = []uint64{10, 30, 100, 300, 1000, 3000}

// TestMutantsLeaveTheModel: each mutant takes a step that the model does not have. The comparison
// finds this earlier than the damage, or although no damage follows. Both columns count the same
// simulated runs.
func TestMutantsLeaveTheModel(t *testing.T) {
	t.Parallel()
	if sim.Seeds(10) < 10 {
		t.Skip("thousands of worlds")
	}
	_, stated, _ := tree.Part(t, "internal/simulation/sim/testdata/mutants.md", "left")
	var lines []string
	for _, m := range sim.Mutants() {
		left, broken := uint64(0), uint64(0)
		most := uint64(1000)
		if !sim.Updating() {
			if most = states(stated, m); most == 0 {
				continue
			}
		}
		for seed := uint64(1); seed <= most && (left == 0 || sim.Updating() && broken == 0); seed++ {
			c, r := follow(t, seed, m.Make)
			if left == 0 && len(c.Partings()) > 0 {
				left = seed
			}
			if broken == 0 && len(r.Violations) > 0 {
				broken = seed
			}
		}
		if left == 0 && !sim.Updating() {
			t.Errorf("%s: every step of %d simulated runs is a step of the model", m.Name, most)
		}
		lines = append(lines, fmt.Sprintf("| %s | %s | %s |\n", m.Name, bound(left), bound(broken)))
	}
	if sim.Updating() {
		tree.Generated(t, "internal/simulation/sim/testdata/mutants.md", "left",
			"| mutant | leaves the model | breaks a promise |\n|---|---|---|\n"+strings.Join(lines, ""),
			true)
	} else if len(lines) < 20 {
		t.Errorf("only %d mutants leave the model", len(lines))
	}
}

// bound returns within how many runs a mutant is found.
func bound(seed uint64) string {
	if seed == 0 {
		return "no"
	}
	for _, n := range within {
		if 2*seed <= n {
			return fmt.Sprint(n)
		}
	}
	return fmt.Sprint(within[len(within)-1])
}

// states reads from the page within how many runs a mutant leaves the model; 0 means never.
func states(table string, m sim.Mutant) (n uint64) {
	_, rest, ok := strings.Cut(table, fmt.Sprintf("\n| %s | ", m.Name))
	if ok {
		_, _ = fmt.Sscan(rest, &n) // "no" leaves n at 0
	}
	return n
}
