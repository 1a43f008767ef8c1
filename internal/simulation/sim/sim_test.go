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
	oneSeed  = flag.Uint64("seed", 0, "simulate this seed only, and tell its story")
	oneLevel = flag.String(
		"faults",
		string(Swarm),
		"the faults of -seed and -for: none, standard, swarm, wide or keep",
	)
	longRun   = flag.Duration("for", 0, "simulate seeds for this long")
	firstSeed = flag.Uint64("from", 0, "where -for begins; 0 for where nobody was before")
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // worlds use little memory, and make much garbage
	goleak.VerifyTestMain(m)
}

// settings are those of a world with one sink, and what a test changes.
func settings(t testing.TB, versions bool, change func(*config.Config)) *config.Config {
	t.Helper()
	cfg := config.Default()
	cfg.Sinks = map[string]config.Sink{"search": {Kind: "memory", Versions: &versions}}
	cfg.Lifecycle.DriftSample = 0 // has worlds of its own: see disaster_test.go
	change(&cfg)
	cfg.Complete()
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	return &cfg
}

// sourcesOf decode what is sent to a world.
func sourcesOf(t testing.TB, cfg *config.Config) *source.Set {
	t.Helper()
	sources, err := source.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return sources
}

// begin makes a world, of options that a test changes.
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

// vary gives each seed its settings, besides the half of the worlds whose sink has no versions.
// Some give up early, so that the dead-letter queue sees everything. Some write the leading edge,
// have no minimal interval, other windows, executions with a history, or write through an outage of
// the table.
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

// plain is the world of a seed with these settings, and the swarm's failures.
func plain(t testing.TB, seed uint64, change func(*config.Config)) *World {
	t.Helper()
	cfg := settings(t, seed%2 == 0, change)
	return begin(t, Options{Config: cfg, Seed: seed, Faults: Swarm, Upstream: Write(seed, sourcesOf(t, cfg))})
}

// build makes the world of a seed.
func build(t testing.TB, seed uint64, level Level, change ...func(*Options)) *World {
	t.Helper()
	cfg := settings(t, seed%2 == 0, func(cfg *config.Config) { vary(seed, cfg) })
	o := Options{Config: cfg, Seed: seed, Faults: level, Upstream: Write(seed, sourcesOf(t, cfg))}
	return begin(t, o, change...)
}

// Wide is the level of [wide], which only tests have.
const Wide Level = "wide"

// world makes the world of a seed, wide ones too.
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
	}
	if _, err := ParseLevel(string(level)); err != nil {
		t.Fatal(err)
	}
	return build(t, seed, level, change...)
}

// report fails the test where a promise was broken, and says how to see it again.
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

// seeds are how many worlds a test runs.
func seeds(most int) uint64 {
	if testing.Short() || raceEnabled {
		return uint64(most / 10)
	}
	return uint64(most)
}

// runs are so many worlds, run to their end and reported, until one breaks a promise.
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

// hold runs worlds of which nothing else is asked than that every promise holds.
func hold(t *testing.T, most int, level Level, world func(seed uint64) *World) {
	t.Helper()
	runs(t, most, level, world)(func(*World, Result) bool { return true })
}

// reach runs worlds, and fails where none of them comes by one of the points.
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
			t.Errorf("no %s %s %s: the worlds do not get there", p.kind, p.what, p.how)
		}
	}
}

// caught is the first of so many worlds in which a promise is broken. The test fails where none is,
// although something is wrong.
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

// broken makes the world of a seed with a mutant.
func (m mutant) broken(world func(change func(*Options)) *World) (w *World) {
	w = world(func(o *Options) { o.Hooks = m.make(&w) })
	return w
}

// TestSeed tells the story of -seed.
func TestSeed(t *testing.T) {
	if *oneSeed == 0 {
		t.Skip("without -seed there is nothing to tell")
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

// The table is away for a while in every one of these worlds, and `tableOutage: open` is set.
// Besides what holds in every world, a document whose newer version such a write replaced is
// written again, or listed for a resync. This must have happened in some of them.
func TestEveryPromiseHoldsWhereTableOutagesAreWrittenOpen(t *testing.T) {
	t.Parallel()
	reach(t, 1000, Swarm, func(seed uint64) *World { return opened(t, seed) }, step(journal.OutageWrite),
		step(journal.Reasserted), step(journal.OutageResync))
}

// Some invocations have a clock that is wrong by up to forty days. They do nothing where another
// clock shows it.
func TestEveryPromiseHoldsBesideClocksThatAreWrong(t *testing.T) {
	t.Parallel()
	reach(t, 1000, Swarm, func(seed uint64) *World {
		w := build(t, seed, Swarm)
		w.rates.WrongClock = 0.05
		return w
	}, step(journal.ClockOff))
}

// Payloads are objects in every one of these worlds. They change until they are written, and may be
// removed before.
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

// Documents are enriched in every one of these worlds, by a service that fails in each of its ways.
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

// mixedUp gives each document the fields of another one, as a product would that goes by place.
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

// Documents are fetched in every one of these worlds. No content is older than the version that it
// is committed as, and in the end the sink holds what the source shows.
func TestEveryPromiseHoldsWhereDocumentsAreFetched(t *testing.T) {
	t.Parallel()
	reach(t, 1000, Swarm, func(seed uint64) *World { return fetching(t, seed, nil) }, point{aLoad, "behind", ""},
		point{aLoad, "missing", ""}, point{aLoad, "down", ""}, point{aLoad, "slow", ""})
}

// A seed that failed once is kept in testdata/regressions, one a line: seed, faults, and what was
// wrong. What an upstream sends follows from its seed as long as upstream.go stays; a bug that must
// never come back is told as a story besides.
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

// Everything that a world does follows from its seed: not from how many processors there are, nor
// from what runs beside it.
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

// TestLong simulates for as long as -for says, on all processors. Half of the swarm's worlds are
// wide.
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
