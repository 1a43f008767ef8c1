package bench

import (
	"bufio"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/blevesink"
)

var write = flag.Bool("write", false,
	"measure everything and write docs/numbers.md, docs/numbers-summary.md and docs/img (make bench)")

const repository = "../../.."

// runJob plays one job in a bubble.
func runJob(t *testing.T, j Job) Result {
	t.Helper()
	trace := NewTrace(j.Scenario.Shape)
	var r Result
	synctest.Test(t, func(t *testing.T) {
		var err error
		if r, err = Run(t.Context(), j.Scenario, trace, j.Contender); err != nil {
			t.Fatal(err)
		}
	})
	return r
}

// collect runs jobs, two at a time or as many as there are processors.
func collect(t *testing.T, n *Numbers, jobs []Job) {
	var mu sync.Mutex
	t.Run("virtual time", func(t *testing.T) {
		for _, j := range jobs {
			t.Run(j.Key+"/"+j.Contender.Name, func(t *testing.T) {
				t.Parallel()
				r := runJob(t, j)
				mu.Lock()
				defer mu.Unlock()
				n.Add(j, r)
			})
		}
	})
}

// TestNumbers writes the documentation's figures. Without -write it does nothing: it takes minutes.
func TestNumbers(t *testing.T) {
	if !*write {
		t.Skip("make bench runs it with -write")
	}
	n := NewNumbers(time.Now().UTC(), machine())
	sinks := map[string]func() (sink.Sink, error){
		"in memory": MemorySink,
		"Bleve on disk": func() (sink.Sink, error) {
			x, err := blevesink.Open(filepath.Join(t.TempDir(), "bleve"))
			if err == nil {
				t.Cleanup(func() { _ = x.Close() })
			}
			return x, err
		},
	}
	if err := n.Measure(t.Context(), FullSize(), sinks); err != nil { // first, while nothing else runs
		t.Fatal(err)
	}
	if err := n.Build(t.Context(), FullSize(), repository, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	collect(t, n, Jobs())
	if t.Failed() {
		return
	}
	put(t, filepath.Join(repository, "docs"), n)
	for _, x := range n.Targets() {
		t.Logf("%-5t %s: %s (%s)", x.Reached, x.Measure, x.Figure, x.Goal)
	}
}

// put writes the page, the summary and the pictures into a folder.
func put(t *testing.T, docs string, n *Numbers) {
	t.Helper()
	files := map[string]string{"numbers.md": n.Page(), "numbers-summary.md": n.Summary()}
	for name, svg := range n.Plots() {
		files[filepath.Join("img", name)] = svg
	}
	for name, text := range files {
		path := filepath.Join(docs, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755),
			os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

// machine says what this machine is, without its name.
func machine() string {
	model := runtime.GOARCH
	if f, err := os.Open("/proc/cpuinfo"); err == nil {
		defer f.Close()
		for s := bufio.NewScanner(f); s.Scan(); {
			if name, value, found := strings.Cut(s.Text(), ":"); found && strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	return fmt.Sprintf("%s/%s, %d processors (%s), %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), model,
		runtime.Version())
}

// TestSmoke runs a little of everything, so that nothing of `make bench` rots, and holds lull's
// exact figures to their bounds.
func TestSmoke(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make bench-smoke runs it")
	}
	n := NewNumbers(time.Now().UTC(), machine())
	jobs := Jobs()
	for i := range jobs {
		shape := &jobs[i].Scenario.Shape
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
	if err := n.Measure(t.Context(), Size{Events: 400, Rounds: 1, Intake: 1000},
		map[string]func() (sink.Sink, error){"in memory": MemorySink}); err != nil {
		t.Fatal(err)
	}
	docs := t.TempDir()
	put(t, docs, n)
	page, err := os.ReadFile(filepath.Join(docs, "numbers.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range Contenders() {
		if !strings.Contains(string(page), "| "+c.Name+" |") {
			t.Errorf("the page has no line of %s", c.Name)
		}
	}
	if bad := "NaN"; strings.Contains(string(page), bad) || strings.Contains(string(page), "Inf") {
		t.Errorf("the page has figures that are none:\n%s", page)
	}
	for name, svg := range n.Plots() {
		d := xml.NewDecoder(strings.NewReader(svg))
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	// What virtual time decides is exact. The month is not cheap enough, and says so on the page.
	for _, x := range []Target{
		n.rowWrites(), n.sinkWrites(), n.sinkWritesUnderFaults(), n.late(),
		n.freshUnderFaults(),
	} {
		if !x.Reached {
			t.Errorf("%s: %s, want %s", x.Measure, x.Figure, x.Goal)
		}
	}
	for key, results := range n.Results {
		if r := results["lull"]; r.Backwards > 0 || r.Wrong > 0 || r.Never > 0 {
			t.Errorf("%s: the sink went back %d times, %d documents are wrong, %d events never came", key, r.Backwards,
				r.Wrong, r.Never)
		}
	}
	for name, r := range n.Variants {
		if r.Backwards > 0 || r.Wrong > 0 || r.Dollars() >= n.lull(monthName).Dollars() {
			t.Errorf("variant %s: the sink went back %d times, %d documents are wrong, $%.2f", name, r.Backwards,
				r.Wrong, r.Dollars())
		}
	}
}
