// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/pipeline/enrich"
	"github.com/lullhq/lull/internal/pipeline/index"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/source"
)

var (
	oneSeed  = flag.Uint64("seed", 0, "simulate only this seed, and print its story")
	oneLevel = flag.String(
		"faults",
		string(Swarm),
		"the faults of -seed and -for: none, standard, swarm, wide or keep",
	)
	longRun   = flag.Duration("for", 0, "simulate seeds for this long")
	firstSeed = flag.Uint64("from", 0, "the first seed of -for; 0 for new seeds, taken from the clock")
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // runs use little memory and make much garbage
	goleak.VerifyTestMain(m)
}

// settings returns the settings of a run with one sink, with a test's changes.
func settings(t testing.TB, versions bool, change func(*config.Config)) *config.Config {
	t.Helper()
	cfg := config.Default()
	cfg.Sinks = map[string]config.Sink{"search": {Kind: "memory", Versions: &versions}}
	cfg.Lifecycle.DriftSample = 0 // tested separately: see disaster_test.go
	change(&cfg)
	cfg.Complete()
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	return &cfg
}

// sourcesOf returns the sources that decode the messages of a run.
func sourcesOf(t testing.TB, cfg *config.Config) *source.Set {
	t.Helper()
	sources, err := source.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return sources
}

// begin returns a simulation with options that a test changes.
func begin(t testing.TB, o Options, change ...func(*Options)) *World {
	t.Helper()
	for _, c := range change {
		c(&o)
	}
	w, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// vary changes some settings for each seed. Half of the sinks have no versions. Some runs have a
// short dead deadline, so that the dead-letter queue gets everything. Other seeds write the leading
// edge, have no minimal interval, other windows, Standard executions, or outage writes.
func vary(seed uint64, cfg *config.Config) {
	if seed%5 == 0 {
		cfg.Retry.DeadDeadline = time.Minute + time.Duration(seed%7)*20*time.Second
	}
	if seed%13 == 5 {
		cfg.TableOutage = config.TableOutageOpen
	}
	switch seed % 7 {
	case 1:
		cfg.Debounce.Quiet, cfg.Queues.BurstSpread = 3*time.Second, time.Second
		cfg.Queues.Live.Window, cfg.Queues.Bulk.Window = time.Second, 2*time.Second
	case 2:
		cfg.Queues.Live = config.Lane{Batch: 10, Window: 0, MaxConcurrency: 20}
	case 3:
		cfg.Debounce.MinInterval = 0
	case 4:
		cfg.Debounce.Leading = true
	case 5:
		cfg.Flight.Kind, cfg.Queues.Live.MaxConcurrency = config.FlightStandard, 20
	}
}

// plain returns the simulated run of a seed with these settings, and the failures of swarm.
func plain(t testing.TB, seed uint64, change func(*config.Config)) *World {
	t.Helper()
	cfg := settings(t, seed%2 == 0, change)
	return begin(t, Options{Config: cfg, Seed: seed, Faults: Swarm, Upstream: Write(seed, sourcesOf(t, cfg))})
}

// build returns the simulated run of a seed.
func build(t testing.TB, seed uint64, level Level, change ...func(*Options)) *World {
	t.Helper()
	cfg := settings(t, seed%2 == 0, func(cfg *config.Config) { vary(seed, cfg) })
	o := Options{Config: cfg, Seed: seed, Faults: level, Upstream: Write(seed, sourcesOf(t, cfg))}
	return begin(t, o, change...)
}

// Wide is the level of [wide], which exists only in tests.
const Wide Level = "wide"

// world returns the simulated run of a seed at any level, including the levels that exist only in
// tests.
func world(t testing.TB, seed uint64, level Level, change ...func(*Options)) *World {
	t.Helper()
	switch level {
	case Wide:
		return wide(t, seed, change...)
	case Keep:
		return republishing(t, seed, Swarm, change...)
	case Rebuilt:
		w, _ := rebuilding(t, seed, rebuildEdits{}, change...)
		return w
	case Filled:
		w, _ := filling(t, seed, jobEdits{}, change...)
		return w
	case GivenUp:
		w, _ := dropAll(t, seed, jobEdits{}, change...)
		return w
	}
	if _, err := ParseLevel(string(level)); err != nil {
		t.Fatal(err)
	}
	return build(t, seed, level, change...)
}

// report fails the test if a promise was broken, and prints how to repeat the run.
func report(t *testing.T, r Result, level Level) {
	t.Helper()
	for _, v := range r.Violations {
		t.Errorf("seed %d: %s", r.Seed, v)
	}
	if len(r.Violations) > 0 {
		t.Errorf("again: go test ./internal/simulation/sim -run 'TestSeed$' -v -args -seed %d -faults %s\nrates: %s", r.Seed,
			level, r.Rates)
	}
}

// seeds returns how many seeds a test runs.
func seeds(most int) uint64 {
	if testing.Short() || raceEnabled {
		return uint64(most / 10)
	}
	return uint64(most)
}

// runs simulates this many seeds and reports the results, until a run breaks a promise.
func runs(t *testing.T, most int, level Level, world func(seed uint64) *World) iter.Seq2[*World, Result] {
	return func(yield func(*World, Result) bool) {
		for seed := uint64(1); seed <= seeds(most) && !t.Failed(); seed++ {
			w := world(seed)
			r := w.Run()
			if report(t, r, level); !yield(w, r) {
				return
			}
		}
	}
}

// hold simulates seeds and checks only that every promise holds.
func hold(t *testing.T, most int, level Level, world func(seed uint64) *World) {
	t.Helper()
	runs(t, most, level, world)(func(*World, Result) bool { return true })
}

// reach simulates seeds, and fails if no run reaches one of the points.
func reach(t *testing.T, most int, level Level, world func(seed uint64) *World, points ...point) {
	t.Helper()
	times := map[point]int{}
	for w := range runs(t, most, level, world) {
		for _, p := range points {
			times[p] += w.coverage[p]
		}
	}
	for p, n := range times {
		if t.Logf("%d times %s %s", n, p.what, p.how); n == 0 {
			t.Errorf("no %s %s %s: no simulated run reaches it", p.kind, p.what, p.how)
		}
	}
}

// caught returns the first run in which a promise is broken. The test fails if there is none,
// although a rule is broken on purpose.
func caught(t *testing.T, within uint64, world func(seed uint64) *World) (r Result) {
	t.Helper()
	for seed := uint64(1); seed <= within; seed++ {
		if r = world(seed).Run(); len(r.Violations) > 0 {
			t.Logf("seed %d: %s", seed, r.Violations[0])
			return r
		}
	}
	t.Fatalf("lives after %d seeds", within)
	return r
}

// broken returns the simulated run of a seed with a mutant.
func (m mutant) broken(world func(change func(*Options)) *World) (w *World) {
	w = world(func(o *Options) { o.Hooks = m.make(&w) })
	return w
}

// TestSeed prints the story of -seed.
func TestSeed(t *testing.T) {
	if *oneSeed == 0 {
		t.Skip("without -seed there is no story to print")
	}
	r := world(t, *oneSeed, Level(*oneLevel), func(o *Options) { o.Story = os.Stdout }).Run()
	report(t, r, Level(*oneLevel))
}

func TestEveryPromiseHoldsInEveryWorld(t *testing.T) {
	t.Parallel()
	for _, level := range []Level{NoFaults, Standard, Swarm} {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			hold(t, 200, level, func(seed uint64) *World { return build(t, seed, level) })
		})
	}
}

// TestEveryPromiseHoldsWhereTableOutagesAreWrittenOpen: in these simulated runs the table has an
// outage, and `tableOutage: open` is set. If an outage write replaced a newer version, lull must
// write that version again or list the document for a resync. Such a write or listing must happen
// in some of the runs.
func TestEveryPromiseHoldsWhereTableOutagesAreWrittenOpen(t *testing.T) {
	t.Parallel()
	reach(t, 1000, Swarm, func(seed uint64) *World { return opened(t, seed) }, step(journal.OutageWrite),
		step(journal.Reasserted), step(journal.OutageResync))
}

// TestEveryPromiseHoldsBesideClocksThatAreWrong: some invocations have a clock that is wrong by up
// to forty days. If another clock shows this, the invocation must do nothing.
func TestEveryPromiseHoldsBesideClocksThatAreWrong(t *testing.T) {
	t.Parallel()
	reach(t, 1000, Swarm, func(seed uint64) *World {
		w := build(t, seed, Swarm)
		w.rates.WrongClock = 0.05
		return w
	}, step(journal.ClockOff))
}

// TestEveryPromiseHoldsWherePayloadsAreReferences: in these simulated runs payloads are objects.
// The objects may change, or be removed, before they are written.
func TestEveryPromiseHoldsWherePayloadsAreReferences(t *testing.T) {
	t.Parallel()
	reach(t, 1000, Swarm, func(seed uint64) *World {
		return plain(t, seed, func(cfg *config.Config) {
			vary(seed, cfg)
			cfg.Payload.Allow = []config.BucketPrefix{{Bucket: "open"}}
			cfg.Payload.MissingWait = time.Minute
		})
	}, point{aLoad, "missing", ""})
}

// TestEveryPromiseHoldsWhereDocumentsAreEnriched: in these simulated runs an enricher adds fields
// to documents, and fails in every possible way.
func TestEveryPromiseHoldsWhereDocumentsAreEnriched(t *testing.T) {
	t.Parallel()
	reach(t, 1000, Swarm, func(seed uint64) *World {
		return plain(t, seed, func(cfg *config.Config) {
			vary(seed, cfg)
			cfg.TableOutage = config.TableOutageClosed
			enrichAll(cfg)
		})
	}, step(journal.Enriched), step(journal.EnrichCalled), step(journal.EnrichFailed), step(journal.EnrichAway))
}

// enrichAll gives every collection of the settings an enricher.
func enrichAll(cfg *config.Config) {
	if cfg.TableOutage == config.TableOutageOpen {
		return
	}
	if len(cfg.Collections) == 0 {
		cfg.Collections = map[string]config.Collection{"content": {}}
	}
	for name, c := range cfg.Collections {
		c.Enrich = &config.Enrich{
			Kind:   config.EnrichHTTP,
			URL:    "https://enrich.example.org/",
			Inputs: []string{""},
			Batch:  2,
		}
		cfg.Collections[name] = c
	}
	cfg.Complete()
}

// mixedUp gives each document the fields of another document, like a product that confuses their
// order.
type mixedUp struct{ enrich.Caller }

func (m mixedUp) Call(ctx context.Context, body []byte) ([]byte, error) {
	var asked struct{ Documents []enrich.Document }
	if err := json.Unmarshal(body, &asked); err != nil {
		return nil, err
	}
	n := len(asked.Documents)
	first := asked.Documents[0].Inputs
	for i := range n - 1 {
		asked.Documents[i].Inputs = asked.Documents[i+1].Inputs
	}
	asked.Documents[n-1].Inputs = first
	body, err := json.Marshal(asked)
	if err != nil {
		return nil, err
	}
	return m.Caller.Call(ctx, body)
}

func TestFieldsOfAnotherDocumentAreFound(t *testing.T) {
	t.Parallel()
	cfg := settings(t, true, enrichAll)
	hooks := Hooks{Index: func(h *index.Handler) {
		for c, caller := range h.Enrichers {
			h.Enrichers[c] = mixedUp{caller}
		}
	}}
	caught(t, 20, func(seed uint64) *World {
		return begin(t, Options{Config: cfg, Seed: seed, Upstream: Write(seed, sourcesOf(t, cfg)), Hooks: hooks})
	})
}

// TestEveryPromiseHoldsWhereDocumentsAreFetched: in these simulated runs documents are fetched. No
// content may be older than the version as which it is committed. At the end the sink must have
// what the source shows.
func TestEveryPromiseHoldsWhereDocumentsAreFetched(t *testing.T) {
	t.Parallel()
	reach(t, 1000, Swarm, func(seed uint64) *World { return fetching(t, seed, nil) }, point{aLoad, "behind", ""},
		point{aLoad, "missing", ""}, point{aLoad, "down", ""}, point{aLoad, "slow", ""})
}

// TestRegressions runs the seeds of testdata/regressions, which failed once. Each line has the
// seed, the faults, and what was wrong. A seed sends the same messages only as long as upstream.go
// does not change. A bug that must never return is therefore also written as a story.
func TestRegressions(t *testing.T) {
	t.Parallel()
	f, err := os.Open(filepath.Join("testdata", "regressions.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	ran := 0
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		seed, err := strconv.ParseUint(fields[0], 10, 64)
		if err != nil || len(fields) < 3 {
			t.Fatalf("line %q: want seed, faults and what was wrong", lines.Text())
		}
		level := Level(fields[1])
		report(t, world(t, seed, level).Run(), level)
		ran++
	}
	if ran == 0 {
		t.Error("no seed is kept: is this the right file?")
	}
}

// TestTheSameSeedGivesTheSameTraceOnAnyNumberOfProcessors: the seed alone decides everything in a
// run. The number of processors and other load have no effect.
func TestTheSameSeedGivesTheSameTraceOnAnyNumberOfProcessors(t *testing.T) {
	traces := map[string]uint64{}
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	for _, processors := range []int{1, 2, 8} {
		runtime.GOMAXPROCS(processors)
		var mu sync.Mutex
		var all sync.WaitGroup
		for seed := uint64(1); seed <= seeds(40); seed++ {
			for _, level := range []Level{Standard, Swarm} {
				w := build(t, seed, level)
				all.Go(func() {
					r := w.Run()
					mu.Lock()
					defer mu.Unlock()
					name := fmt.Sprintf("seed %d, %s", seed, level)
					if other, ran := traces[name]; ran && other != r.Hash {
						t.Errorf("%s: trace %x on %d processors, %x before", name, r.Hash, processors, other)
					}
					traces[name] = r.Hash
				})
			}
		}
		all.Wait()
	}
	different := map[uint64]bool{}
	for _, hash := range traces {
		different[hash] = true
	}
	if len(different) != len(traces) {
		t.Errorf("%d different traces of %d worlds: the hash sees too little", len(different), len(traces))
	}
}

// TestLong simulates for as long as -for says, on all processors. Half of the runs at level swarm
// are wide.
func TestLong(t *testing.T) {
	if *longRun == 0 {
		t.Skip("without -for there is no end")
	}
	began, level := time.Now(), Level(*oneLevel)
	next := *firstSeed
	if next == 0 {
		next = uint64(began.Unix()) << 16
	}
	first := next
	var virtual, decisions atomic.Int64
	var mu sync.Mutex
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for time.Since(began) < *longRun && !t.Failed() {
				mu.Lock()
				seed, level := next, level
				next++
				mu.Unlock()
				switch {
				case level == Swarm && seed%2 == 1:
					level = Wide
				case level == Swarm && seed%8 == 0:
					level = Keep
				}
				r := world(t, seed, level).Run()
				virtual.Add(int64(r.Virtual / time.Second))
				decisions.Add(int64(r.Decisions))
				mu.Lock()
				report(t, r, level)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	took := time.Since(began).Seconds()
	t.Logf("%d seeds from %d: %.0f decisions a second, %.0f times real time", next-first, first,
		float64(decisions.Load())/took, float64(virtual.Load())/took)
}
