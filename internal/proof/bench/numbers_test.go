// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/proof/tree"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/blevesink"
	"github.com/lullhq/lull/sink/memorysink"
)

var (
	write = flag.Bool("write", false,
		"measure everything, and write docs/numbers.md and docs/img (make bench)")
	smoke = flag.Bool("smoke", false, "run a little of everything (make bench-smoke)")
)

const repository = "../../.."

// Size says how much of each measurement in real time to run.
type Size struct {
	Events int // events of a workload for processor time
	Rounds int
	Intake int // events of an Intake
	Starts int
}

// fullSize returns the size for the figures of the documentation.
func fullSize() Size { return Size{Events: 20_000, Rounds: 7, Intake: 90_000, Starts: 9} }

// measure runs the measurements that depend on this machine. They run one after the other, without
// other load.
func (n *Numbers) measure(t testing.TB, s Size, sinks map[string]sink.Sink) {
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

// build builds the functions of the repository at root, and measures their sizes and a cold start.
func (n *Numbers) build(t testing.TB, s Size, root string) {
	n.Binaries = Binaries(t, root)
	n.Start = FirstAnswer(t, root, runtime.GOARCH, s.Starts)
}

// collect runs the jobs as parallel subtests.
func collect(t *testing.T, n *Numbers, jobs []Job) {
	var mu sync.Mutex
	t.Run("virtual time", func(t *testing.T) {
		for _, j := range jobs {
			t.Run(j.Scenario.Key+"/"+j.Contender.Name, func(t *testing.T) {
				t.Parallel()
				r := Run(t, j.Scenario, j.Contender)
				mu.Lock()
				defer mu.Unlock()
				n.Add(j, r)
			})
		}
	})
}

// TestNumbers writes the figures of the documentation. The test takes minutes, and does nothing
// without -write.
func TestNumbers(t *testing.T) {
	if !*write {
		t.Skip("make bench runs it with -write")
	}
	n := NewNumbers(tree.Machine(), tree.Load())
	onDisk, err := blevesink.Open(filepath.Join(t.TempDir(), "bleve"))
	check(t, err)
	t.Cleanup(func() { _ = onDisk.Close() })
	n.measure(t, fullSize(), map[string]sink.Sink{"in memory": inMemory(), "Bleve on disk": onDisk}) // runs alone
	n.build(t, fullSize(), repository)
	_, n.Engines, _ = tree.Part(t, "docs/numbers.md", "engines")
	collect(t, n, Jobs())
	if t.Failed() {
		return
	}
	put(t, filepath.Join(repository, "docs"), n)
	for _, x := range n.Targets() {
		t.Logf("%-5t %s: %s (%s)", x.Reached, x.Measure, x.Figure, x.Goal)
	}
}

// put writes the page and the pictures into a folder.
func put(t *testing.T, docs string, n *Numbers) {
	t.Helper()
	files := n.Plots()
	var b strings.Builder
	check(t, n.Write(&b))
	files["../numbers.md"] = b.String()
	check(t, os.MkdirAll(filepath.Join(docs, "img"), 0o755))
	for name, text := range files {
		check(t, os.WriteFile(filepath.Join(docs, "img", name), []byte(text), 0o644))
	}
}

func inMemory() sink.Sink { return memorysink.New(clock.System{}, memorysink.Settings{Versions: true}) }

// TestTheReadmeShowsTheSummary: README.md must show the measured figures, which are lull's row and
// the number of targets.
func TestTheReadmeShowsTheSummary(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile(filepath.Join(repository, "README.md"))
	check(t, err)
	page, err := os.ReadFile(filepath.Join(repository, "docs", "numbers.md"))
	check(t, err)
	_, block, _ := strings.Cut(string(readme), "<!-- numbers -->\n")
	block, _, closed := strings.Cut(block, "<!-- /numbers -->")
	if !closed {
		t.Fatal("README.md has no block of numbers")
	}
	row := regexp.MustCompile(`(?m)^\| lull \| (\S+) \((\S+)\) \| (\S+) \| (\S+) \| (\d+) \|`).FindSubmatch(page)
	targets := regexp.MustCompile(`(?m)^(\d+ of \d+) targets reached\.`).FindSubmatch(page)
	if row == nil || targets == nil {
		t.Fatal("docs/numbers.md has no row of lull, or no count of targets")
	}
	for _, figure := range append(row[1:], targets[1]) {
		if !regexp.MustCompile(`\b` + regexp.QuoteMeta(string(figure)) + `\b`).MatchString(block) {
			t.Errorf("the README does not show %s", figure)
		}
	}
}

// TestSmoke runs a small part of every measurement, so that `make bench` keeps working. The test
// also compares lull's exact figures with their targets. Only `make bench-smoke` runs it, once a
// night.
func TestSmoke(t *testing.T) {
	if !*smoke {
		t.Skip("make bench-smoke runs it with -smoke")
	}
	n := NewNumbers(tree.Machine(), tree.Load())
	jobs := Jobs()
	for i := range jobs {
		shape := &jobs[i].Scenario.Shape
		if shape.Trial != "" { // the times of trials are fixed
			shape.Rate /= 4
			continue
		}
		shape.For = min(shape.For/20, 3*time.Minute)
		if shape.Docs > 0 {
			shape.For *= 2 // so that every document has a second burst
			shape.Docs = min(shape.Docs, 3000)
		}
	}
	collect(t, n, jobs)
	if t.Failed() {
		return
	}
	size := Size{Events: 400, Rounds: 1, Intake: 1000, Starts: 1}
	n.measure(t, size, map[string]sink.Sink{"in memory": inMemory()})
	n.build(t, size, repository)
	_, n.Engines, _ = tree.Part(t, "docs/numbers.md", "engines")
	docs := t.TempDir()
	put(t, docs, n)
	page, err := os.ReadFile(filepath.Join(docs, "numbers.md"))
	check(t, err)
	for _, c := range Contenders() {
		if !bytes.Contains(page, []byte("| "+c.Name+" |")) {
			t.Errorf("the page has no line of %s", c.Name)
		}
	}
	if n.Engines == "" || !bytes.Contains(page, []byte(n.Engines)) {
		t.Error("the page has lost the table of make bench-engines")
	}
	if bytes.Contains(page, []byte("NaN")) || bytes.Contains(page, []byte("Inf")) {
		t.Errorf("the page divides by nothing:\n%s", page)
	}
	// Figures in virtual time are exact. The dollars do not reach their target yet, and the page
	// says so.
	for _, x := range n.Exact() {
		if !x.Reached && !strings.Contains(x.Measure, "dollars") {
			t.Errorf("%s: %s, want %s", x.Measure, x.Figure, x.Goal)
		}
	}
	for key, results := range n.Results {
		if r := results["lull"]; r.Backwards > 0 || r.End != (End{}) {
			t.Errorf("%s: the sink went back %d times, %+v", key, r.Backwards, r.End)
		}
	}
	for _, c := range Variants() {
		r, err := n.Result(monthName, c.Name)
		if err != nil || r.Backwards > 0 || r.Wrong > 0 || r.Dollars() >= n.Lull(monthName).Dollars() {
			t.Errorf("variant %s: %v, the sink went back %d times, %d documents are wrong, $%.2f", c.Name, err,
				r.Backwards, r.Wrong, r.Dollars())
		}
	}
}
