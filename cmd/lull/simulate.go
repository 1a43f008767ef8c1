package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/feed"
	"github.com/lullhq/lull/internal/proof/sim"
	"github.com/lullhq/lull/source"
)

// simulateFlags are the flags of `lull simulate`.
type simulateFlags struct {
	config, source, collection string
	events, faults             string
	seed                       uint64
	pollers                    int
	report, story, plot        string
	load                       float64
	lasting                    time.Duration
	sinkDown                   string
	sinkTakes                  int
	sinkThrottles              string
	pingDenied                 bool
}

const (
	// steadyDocuments is how many documents --load changes again and again.
	steadyDocuments = 1000
	// maxLoad keeps a simulation within a machine's memory.
	maxLoad = 1000
)

// An event source mapping of SQS begins with five pollers; more come under load.
const (
	pollersAtFirst = 5
	maxPollers     = 1000 // the lane's concurrency bounds them
)

func simulateCommand() *cobra.Command {
	var f simulateFlags
	c := &cobra.Command{
		Use:   "simulate",
		Short: "Run events through the whole stack in virtual time",
		Long: "Runs the real functions against simulated AWS services and a simulated sink, in virtual time: a day " +
			"takes seconds. It shows how fresh documents are with your settings and your events, and what that " +
			"writes and costs. On the way it checks every promise. The same seed, settings and events give the " +
			"same run, to the bit. Without --events the seed writes some events of its own, or as many a second " +
			"as --load says.\n\n" +
			"To see what an outage of the sink costs: --load 5 --for 3h --sink-down 15m-2h15m --sink-takes 20 " +
			"--plot outage.svg",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return runSimulate(c, f) },
	}
	fl := c.Flags()
	fl.StringVar(&f.config, "config", "", "settings, a `FILE` like lull.yaml; without it the defaults")
	fl.StringVar(&f.events, "events", "",
		"messages: `FILE|DIR|-`, NDJSON with after_ms, a folder of *.json, or standard input")
	fl.StringVar(&f.source, "source", "", "`NAME` of what decodes the messages: native or govuk, or a source of --config")
	fl.StringVar(&f.collection, "collection", "", "collection `NAME` of events that name none")
	fl.StringVar(&f.faults, "faults", string(sim.NoFaults),
		"`LEVEL` of injected failures: none, standard (docs/faults.md), or swarm, with rates that the seed draws")
	fl.Uint64Var(&f.seed, "seed", 1, "seed `N` of everything that is left to chance")
	fl.IntVar(&f.pollers, "pollers", pollersAtFirst, "`N` pollers that each event source mapping begins with")
	fl.StringVar(&f.report, "report", "", "`FILE` for the report, one JSON object")
	fl.Float64Var(&f.load, "load", 0,
		"`N` events a second, for as long as --for says, in place of --events: changes of 1,000 documents")
	fl.DurationVar(&f.lasting, "for", time.Hour, "duration `D` of --load")
	fl.StringVar(&f.sinkDown, "sink-down", "",
		"`FROM-TO`, counted from the beginning: the sinks do not answer during that time")
	fl.IntVar(&f.sinkTakes, "sink-takes", 0,
		"`N` documents a second that a sink takes: it answers 429 to the others; 0 for no limit")
	fl.StringVar(&f.sinkThrottles, "sink-throttles", "bucket",
		"`WAY` of --sink-takes: bucket, queue (it makes requests wait), random (it refuses any), or drift (by half, up "+
			"and down)")
	fl.BoolVar(&f.pingDenied, "sink-denies-pings", false, "lull may write to the sinks, but not ping them")
	fl.StringVar(&f.plot, "plot", "", "`FILE` for a picture, SVG: what the sinks got, how fresh it was and what waited")
	fl.StringVar(&f.story, "story", "", "`FILE` for everything that happens, line by line")
	return c
}

func runSimulate(c *cobra.Command, f simulateFlags) error {
	level, err := sim.ParseLevel(f.faults)
	if err != nil {
		return usage(fmt.Errorf("--faults: %w", err))
	}
	if f.pollers < 1 {
		return usage(fmt.Errorf("--pollers %d: want at least 1", f.pollers))
	}
	cfg, _, err := devConfig(c, devFlags{config: f.config, source: f.source, collection: f.collection})
	if err != nil {
		return usage(err)
	}
	up, err := upstream(c, f, cfg)
	if err != nil {
		return usage(err)
	}
	strain, err := f.strain(up)
	if err != nil {
		return usage(err)
	}
	o := sim.Options{
		Config: cfg, Seed: f.seed, Faults: level, Upstream: up, Pollers: f.pollers, MostPollers: maxPollers,
		Strain: strain, Timeline: f.plot != "",
	}
	var story *os.File
	if f.story != "" {
		if story, err = os.Create(f.story); err != nil {
			return usage(fmt.Errorf("--story: %w", err))
		}
		o.Story = story
	}
	w, err := sim.New(o)
	if err != nil {
		return usage(err)
	}
	r := w.Run()
	s := r.Summary(level)
	fmt.Fprint(c.OutOrStdout(), s)
	if story != nil {
		err = story.Close()
	}
	if f.plot != "" {
		svg := sim.Chart(r.Timeline, strain.Rate, 0, time.Duration(len(r.Timeline))*time.Second)
		err = errors.Join(err, os.WriteFile(f.plot, []byte(svg), 0o600))
	}
	if f.report != "" {
		b, encoding := json.MarshalIndent(s, "", "  ")
		err = errors.Join(err, encoding, os.WriteFile(f.report, append(b, '\n'), 0o600))
	}
	if err == nil && len(s.Violations) > 0 {
		err = fmt.Errorf("%d promises were broken", len(s.Violations))
	}
	if err != nil {
		return &exitError{exitFailed, err}
	}
	return nil
}

// strain is what the flags say of the sinks.
func (f simulateFlags) strain(up sim.Upstream) (s sim.Strain, err error) {
	if f.sinkTakes < 0 {
		return s, fmt.Errorf("--sink-takes %d: want documents a second, or 0", f.sinkTakes)
	}
	s.Rate, s.PingDenied = f.sinkTakes, f.pingDenied
	if s.Throttling, err = sim.ParseThrottling(f.sinkThrottles); err != nil {
		return s, fmt.Errorf("--sink-throttles: %w", err)
	}
	if f.sinkDown == "" {
		return s, nil
	}
	from, to, _ := strings.Cut(f.sinkDown, "-")
	var wrong error
	s.DownFrom, err = time.ParseDuration(from)
	s.DownTo, wrong = time.ParseDuration(to)
	if err != nil || wrong != nil || s.DownFrom < 0 || s.DownTo <= s.DownFrom || s.DownTo > up.Calm {
		return s, fmt.Errorf("--sink-down %s: want FROM-TO, like 15m-2h15m, before the events end at %s", f.sinkDown,
			up.Calm)
	}
	return s, nil
}

// upstream is what --events says, or what the seed writes. The faults go on until what was sent
// last has long been written.
func upstream(c *cobra.Command, f simulateFlags, cfg *config.Config) (sim.Upstream, error) {
	if f.load != 0 {
		if f.events != "" || f.load < 0 || f.load > maxLoad || f.lasting <= 0 {
			return sim.Upstream{},
				fmt.Errorf("--load %g, --for %s: want up to %d events a second for a while, and no --events", f.load,
					f.lasting, maxLoad)
		}
		return sim.Steady(f.seed, f.load, steadyDocuments, f.lasting), nil
	}
	if f.events == "" {
		sources, err := source.New(cfg)
		if err != nil {
			return sim.Upstream{}, err
		}
		return sim.Write(f.seed, sources), nil
	}
	in, err := feed.Open(f.events, c.InOrStdin())
	if err != nil {
		return sim.Upstream{}, err
	}
	defer in.Close()
	var up sim.Upstream
	for {
		t, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return sim.Upstream{}, err
		}
		up.Arrivals = append(up.Arrivals, sim.Arrival{At: t.After, Message: t.Outgoing})
	}
	slices.SortStableFunc(up.Arrivals, func(a, b sim.Arrival) int { return cmp.Compare(a.At, b.At) })
	if n := len(up.Arrivals); n > 0 {
		up.Calm = up.Arrivals[n-1].At
	}
	up.Calm += cfg.Debounce.Quiet + cfg.Debounce.MaxWait + time.Minute
	return up, nil
}
