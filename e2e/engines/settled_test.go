// SPDX-License-Identifier: Apache-2.0

//go:build e2eengines

package engines

import (
	"bufio"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/e2e/ground"
	"github.com/lullhq/lull/internal/proof/tree"
	"github.com/lullhq/lull/internal/simulation/plot"
)

var (
	smoke  = flag.Bool("smoke", false, "write a few documents once, with the engines that run")
	rounds = flag.Int("rounds", 3, "how often each writer writes all documents, after a round to warm up")
	events = flag.Int("events", 20_000, "how many events a round has")
)

// quiet is the quiet window of `lull dev`. It is short, because the loader does not wait for one.
const quiet = time.Second

// writer writes the events of a file to an engine.
type writer struct {
	name, form string // form is that of e2e/loader, empty for lull
	fences     bool   // an older event never replaces a newer one
}

var writers = map[string][]writer{
	"opensearch": {
		{name: "`lull dev`", fences: true},
		{name: "bulk indexer of opensearch-go, external versions", form: "external", fences: true},
		{name: "the same without versions", form: "plain"},
	},
	"postgres": {
		{name: "`lull dev`", fences: true},
		{name: "pgx, upserts of 1,000 that compare versions", form: "upsert", fences: true},
		{name: "pgx, COPY, which only inserts", form: "copy"},
	},
}

// traffic is how the events of documents come.
type traffic struct {
	name  string
	burst int // events of a document
}

var traffics = []traffic{{"each document once", 1}, {"bursts of 5", 5}}

// result has the figures of a writer, one for each round.
type result struct {
	settled   []float64 // documents a second
	processor []time.Duration
}

// TestSettled measures how many documents a second each writer settles. A document is settled when
// the engine shows its newest version to everybody. The test fails if a document never shows it.
func TestSettled(t *testing.T) {
	n, warm, measured := *events, 1, *rounds
	if *smoke {
		n, warm, measured = 300, 0, 1
	}
	at, busy := time.Now().UTC(), tree.Load()
	var versions []string
	var table strings.Builder
	table.WriteString("| engine | events | writer | settled documents / s, median | rounds | lull settles, " +
		"times as many | rounds | writer's processor time, µs / document |\n|---|---|---|---:|---:|---:|---:|---:|\n")
	for _, open := range []func(*testing.T) engine{openSearch, postgres} {
		t.Run("engine", func(t *testing.T) {
			e := open(t)
			version, err := e.version(t.Context())
			ground.Must(t, err)
			versions = append(versions, version)
			for _, load := range traffics {
				compare(t, &table, e, version, load, n/load.burst, warm, measured)
			}
		})
	}
	text := fmt.Sprintf("%s on %s. %s. %s events a round, %d rounds after one to warm up. The load average was %s "+
		"at the beginning and %s at the end.\n\n%s", at.Format("2 January 2006"), tree.Machine(),
		strings.Join(versions, ", "), plot.Thousands(n), measured, busy, tree.Load(), table.String())
	t.Logf("\n%s", text)
	if *write && len(versions) != 2 {
		t.Error("the table needs both engines")
	}
	if *write && !t.Failed() {
		generate(t, "docs/numbers.md", "engines", text)
	}
}

// compare lets all writers of an engine write the same events, in turns, and adds their rows to the
// table.
func compare(t *testing.T, table *strings.Builder, e engine, version string, load traffic, n, warm, measured int) {
	file := filepath.Join(t.TempDir(), "events.ndjson")
	writeEvents(t, file, n, load.burst)
	var competing []writer
	for _, w := range writers[e.server] {
		if w.fences || load.burst == 1 { // without a fence the newest event need not win
			competing = append(competing, w)
		}
	}
	results := make([]result, len(competing))
	for round := range warm + measured {
		for i := range competing {
			i = (i + round) % len(competing) // another one begins each round
			took, processor := competing[i].settle(t, e, file, contents{n, load.burst, load.burst})
			if round >= warm {
				results[i].settled = append(results[i].settled, float64(n)/took.Seconds())
				results[i].processor = append(results[i].processor, processor/time.Duration(n))
			}
		}
	}
	for i, r := range results {
		ratios := make([]float64, measured)
		for round := range ratios {
			ratios[round] = results[0].settled[round] / r.settled[round]
		}
		against, spread := "", ""
		if i > 0 {
			against, spread = "**"+two(median(ratios))+"**", two(slices.Min(ratios))+" to "+two(slices.Max(ratios))
		}
		fmt.Fprintf(table, "| %s | %s | %s | %s | %s to %s | %s | %s | %d |\n", version, load.name, competing[i].name,
			whole(median(r.settled)), whole(slices.Min(r.settled)), whole(slices.Max(r.settled)), against, spread,
			median(r.processor).Microseconds())
	}
}

// settle writes the events of a file into an empty index or table. It returns how long it takes
// until the engine shows what is wanted, and the writer's processor time.
func (w writer) settle(t *testing.T, e engine, file string, want contents) (took, processor time.Duration) {
	ctx := t.Context()
	ground.Must(t, e.drop(ctx))
	prepare := run(t, "LULL_E2E_LULL", "dev", "--sink", e.sink, "--install-template", "--events", os.DevNull,
		"--exit-when-idle")
	ground.Must(t, prepare.Wait())
	deadline := time.Now().Add(5 * time.Minute)
	began := time.Now()
	var process *exec.Cmd
	if w.form == "" {
		var address string
		process, address = lull(t, e, "--events", file, "--quiet", quiet.String())
		for written := 0; written < want.documents; <-time.After(20 * time.Millisecond) {
			var status struct {
				Report struct {
					Written int `json:"written"`
				} `json:"report"`
			}
			err := ask(ctx, http.MethodGet, "http://"+address+"/status", "", &status)
			if written = status.Report.Written; time.Now().After(deadline) {
				t.Fatalf("lull has written %d of %d documents: %v", written, want.documents, err)
			}
		}
	} else {
		process = run(t, "LULL_E2E_LOADER", "-events", file, "-url", e.url, "-form", w.form)
		ground.Must(t, process.Wait())
	}
	for {
		got, err := e.look(ctx)
		if err == nil && got == want {
			took = time.Since(began)
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: got %+v, %v, want %+v", w.name, got, err, want)
		}
	}
	if w.form == "" {
		_ = process.Process.Kill() // its end says nothing
		_ = process.Wait()
	}
	return took, process.ProcessState.UserTime() + process.ProcessState.SystemTime()
}

// writeEvents writes the events of n documents of about a kilobyte. The documents of a burst are
// mixed: a thousand documents come in their first version, then in their second.
func writeEvents(t *testing.T, file string, n, burst int) {
	f, err := os.Create(file)
	ground.Must(t, err)
	out := bufio.NewWriter(f)
	random := rand.New(rand.NewPCG(25, 6))
	words := make([]string, 5000)
	for i := range words {
		for range 2 + random.IntN(8) {
			words[i] += string(rune('a' + random.IntN(26)))
		}
	}
	text := func(n int) string {
		all := make([]string, n)
		for i := range all {
			all[i] = words[min(random.IntN(len(words)), random.IntN(len(words)))] // some are more frequent
		}
		return strings.Join(all, " ")
	}
	type page struct {
		Revision int    `json:"revision"`
		Title    string `json:"title"`
		Kind     string `json:"kind"`
		Body     string `json:"body"`
	}
	lines := json.NewEncoder(out)
	for first := 0; first < n; first += 1000 {
		for revision := 1; revision <= burst; revision++ {
			for i := first; i < min(n, first+1000); i++ {
				ground.Must(t, lines.Encode(struct {
					Type     string `json:"type"`
					Subject  string `json:"subject"`
					Sequence string `json:"sequence"`
					Data     page   `json:"data"`
				}{
					"doc.changed", "page-" + strconv.Itoa(i), strconv.Itoa(revision),
					page{revision, text(6), words[random.IntN(20)], text(130)},
				}))
			}
		}
	}
	ground.Must(t, out.Flush())
	ground.Must(t, f.Close())
}

func median[T cmp.Ordered](all []T) T {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}

func two(v float64) string { return fmt.Sprintf("%.2f", v) }

func whole(v float64) string { return plot.Thousands(int(v)) }
