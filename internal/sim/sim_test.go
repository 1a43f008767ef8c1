package sim

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/source"
)

var (
	oneSeed  = flag.Uint64("seed", 0, "simulate this seed only, and tell its story")
	oneLevel = flag.String("faults", string(Swarm), "the faults of -seed and -for: none, standard or swarm")
	longRun  = flag.Duration("for", 0, "simulate new seeds for this long")
	settings = flag.String("settings", "", "the settings of -seed: versions, bare")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// settingsOf are the settings of a seed. Half of the worlds have a sink without versions; some give up early, so that the dead-letter queue sees
// everything; some write the leading edge, have no minimal interval, other windows, or executions with a history.
func settingsOf(seed uint64) *config.Config {
	cfg := config.Default()
	versions := seed%2 == 0
	cfg.Sinks = map[string]config.Sink{"search": {Kind: config.SinkMemory, Versions: &versions}}
	if seed%5 == 0 {
		cfg.Retry.DeadDeadline = time.Minute + time.Duration(seed%7)*20*time.Second
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
		cfg.Flight.Kind = config.FlightStandard
	}
	cfg.Complete()
	return &cfg
}

func build(t testing.TB, seed uint64, level Level, change ...func(*Options)) *World {
	t.Helper()
	cfg := settingsOf(seed)
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	sources, err := source.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Config: cfg, Seed: seed, Faults: level, Upstream: Write(seed, sources)}
	for _, c := range change {
		c(&o)
	}
	w, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func report(t *testing.T, r Result, level Level) {
	t.Helper()
	for _, v := range r.Violations {
		t.Errorf("seed %d: %s", r.Seed, v)
	}
	if len(r.Violations) > 0 {
		t.Errorf("again: go test ./internal/sim -run TestSeed -args -seed %d -faults %s\nrates: %s", r.Seed, level, r.Rates)
	}
}

func TestSeed(t *testing.T) {
	if *oneSeed == 0 {
		t.Skip("no -seed")
	}
	r := build(t, *oneSeed, Level(*oneLevel), func(o *Options) { o.Story = os.Stdout }).Run()
	report(t, r, Level(*oneLevel))
	fmt.Printf("%+v\n", r.Counts)
}

func TestSeeds(t *testing.T) {
	t.Parallel()
	for _, level := range []Level{NoFaults, Standard, Swarm} {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			bad := 0
			var decisions int
			var virtual time.Duration
			began := time.Now()
			for seed := uint64(1); seed <= 200 && bad < 3; seed++ {
				r := build(t, seed, level).Run()
				report(t, r, level)
				if len(r.Violations) > 0 {
					bad++
				}
				decisions += r.Decisions
				virtual += r.Virtual
			}
			took := time.Since(began)
			t.Logf("%d decisions, %s of virtual time in %s: %.0f/s, %.0f times", decisions, virtual, took, float64(decisions)/took.Seconds(), virtual.Seconds()/took.Seconds())
		})
	}
}

// TestLong simulates new seeds for as long as -for says.
func TestLong(t *testing.T) {
	if *longRun == 0 {
		t.Skip("no -for")
	}
	began := time.Now()
	level := Level(*oneLevel)
	bad, seeds := 0, 0
	for seed := uint64(began.Unix()) << 16; time.Since(began) < *longRun && bad < 5; seed++ {
		r := build(t, seed, level).Run()
		report(t, r, level)
		seeds++
		if len(r.Violations) > 0 {
			bad++
		}
	}
	t.Logf("%d seeds", seeds)
}
