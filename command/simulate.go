// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/operator/feed"
	"github.com/lullhq/lull/internal/simulation/cost"
	"github.com/lullhq/lull/internal/simulation/forecast"
	"github.com/lullhq/lull/internal/simulation/sim"
	"github.com/lullhq/lull/source"
)

// simulateFlags are the flags of `lull simulate`.
type simulateFlags struct {
	config, source, collection string
	events, faults             string
	seed                       uint64
	pollers                    int
	report, story, plot        string
	load                       forecast.Load
	pingDenied                 bool
}

func simulateCommand() *cobra.Command {
	f := simulateFlags{
		load: forecast.Steady(), faults: string(sim.NoFaults), seed: 1, pollers: cost.FirstPollers,
	}
	f.load.Throttles = "bucket"
	return define(&cobra.Command{
		Use:   "simulate",
		Short: "Run events through the whole stack in virtual time",
		Long: "Runs the real functions against simulated AWS services and a simulated sink, in virtual time: a day " +
			"takes seconds. It shows how fresh documents are with your settings and your events, and what that " +
			"writes and costs. It also checks every promise. The same seed, settings and events give exactly the " +
			"same run. Without --events the seed generates some events, or as many a second as --load says.\n\n" +
			"To see what an outage of the sink costs: --load 5 --for 3h --sink-down 15m-2h15m --sink-takes 20 " +
			"--plot outage.svg",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return runSimulate(c, f) },
	}, ends{
		exitOK:      "every promise held",
		exitFailed:  "a promise was broken, nothing was written, or something stopped the run",
		exitUsage:   "usage or settings, before the run began",
		exitRefused: "no promise was broken, but events of --events or --load became dead letters",
	},
		flag("config", &f.config, "settings, a `FILE` like lull.yaml; without it the defaults"),
		flag("events", &f.events, "messages: `FILE|DIR|-`, NDJSON with after_ms, a folder of *.json, or standard "+
			"input"),
		flag("source", &f.source, "`NAME` of the source that decodes the messages: native, govuk, or a source of --config"),
		flag("collection", &f.collection, "collection `NAME` of events that name none"),
		flag("faults", &f.faults, "`LEVEL` of injected failures: none, standard (docs/faults.md), or swarm, with "+
			"rates that the seed chooses"),
		flag("seed", &f.seed, "seed `N` of everything that is random"),
		flag("pollers", &f.pollers, "`N` pollers that each event source mapping begins with",
			between(&f.pollers, 1, math.MaxInt, "at least 1")),
		flag("report", &f.report, "`FILE` for the report, one JSON object"),
		flag("load", &f.load.Rate, "`N` events a second, for as long as --for says, in place of --events: changes "+
			"of --documents"),
		flag("for", (*time.Duration)(&f.load.Lasting), "duration `D` of --load"),
		flag("surge", &f.load.Surge, "`FACTOR@FROM` of --load, such as 2@15m: from 15 minutes on the load is twice as high, "+
			"and the answer lists the run in parts"),
		flag("burst", &f.load.Burst, "`N` events of each burst of --load: versions of one document"),
		flag("spread", (*time.Duration)(&f.load.Spread), "duration `D` within which the events of a burst are sent"),
		flag("documents", &f.load.Documents, "`N` documents that --load changes again and again"),
		flag("sink-down", &f.load.Down, "`FROM-TO`, counted from the beginning: the sinks do not answer during that "+
			"time"),
		flag("sink-takes", &f.load.Takes, "`N` documents a second that a sink takes: it answers 429 to the others; "+
			"0 for no limit"),
		flag("sink-throttles", &f.load.Throttles, "`WAY` of --sink-takes: bucket, queue (requests wait), "+
			"late (requests wait longer than lull does), random (any request may be refused), "+
			"or drift (the limit moves up and down by half)"),
		flag("sink-denies-pings", &f.pingDenied, "lull may write to the sinks, but not ping them"),
		flag("plot", &f.plot, "`FILE` for a picture, SVG: what the sinks got, how fresh documents were and what waited"),
		flag("story", &f.story, "`FILE` for everything that happens, line by line"),
	)
}

// collectRarely collects garbage only when it is four times as large as the memory in use. A run
// uses little memory, makes much garbage and then ends. If GOGC is set, that applies instead.
func collectRarely() {
	if _, set := os.LookupEnv("GOGC"); !set {
		debug.SetGCPercent(400)
	}
}

func runSimulate(c *cobra.Command, f simulateFlags) error {
	level, err := sim.ParseLevel(f.faults)
	if err != nil {
		return usage(fmt.Errorf("--faults: %w", err))
	}
	cfg, _, err := devConfig(c, devFlags{config: f.config, source: f.source, collection: f.collection})
	if err != nil {
		return usage(err)
	}
	up, err := upstream(c, f, cfg)
	if err != nil {
		return usage(err)
	}
	strain, err := f.load.Strain.Sim(up.Calm)
	if err != nil {
		return usage(err)
	}
	strain.PingDenied = f.pingDenied
	o := sim.Options{
		Config: cfg, Seed: f.seed, Faults: level, Upstream: up, Pollers: f.pollers, Strain: strain,
		Timeline: f.plot != "" || f.load.Surge != "",
	}
	var story *os.File
	if f.story != "" {
		if story, err = os.Create(f.story); err != nil {
			return usage(fmt.Errorf("--story: %w", err))
		}
		o.Story = story
	}
	collectRarely()
	r, err := forecast.Run(c.Context(), o, nil)
	if r.Stopped {
		return &exitError{exitFailed, fmt.Errorf("stopped after %s of virtual time: %w", r.Virtual, err)}
	}
	if err != nil {
		return usage(err)
	}
	s := r.Summary(level)
	fmt.Fprint(c.OutOrStdout(), s)
	if f.load.Surge != "" {
		fmt.Fprint(c.OutOrStdout(), "\n", forecast.Stretches(r.Timeline))
	}
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
	switch {
	case err != nil:
	case len(s.Violations) > 0:
		err = fmt.Errorf("%d promises were broken", len(s.Violations))
	case s.Idle():
		err = errors.New("nothing was written")
	}
	if err != nil {
		return &exitError{exitFailed, err}
	}
	if own := f.events == "" && f.load.Rate == 0; len(s.DeadLetters) > 0 && !own { // the seed writes some on purpose
		return &exitError{exitRefused, nil}
	}
	return nil
}

// upstream returns the events of --events, or those that the seed generates. Injected failures
// continue until a minute after the longest hold of the last event.
func upstream(c *cobra.Command, f simulateFlags, cfg *config.Config) (sim.Upstream, error) {
	if f.load.Rate != 0 {
		if f.events != "" {
			return sim.Upstream{}, fmt.Errorf("--load %g: leave out --events", f.load.Rate)
		}
		if err := f.load.Validate(); err != nil {
			return sim.Upstream{}, err
		}
	}
	if f.events == "" {
		return generated(f, cfg)
	}
	in, err := feed.Open(f.events, c.InOrStdin())
	if err != nil {
		return sim.Upstream{}, err
	}
	defer in.Close()
	var up sim.Upstream
	for t, err := range feed.All(in) {
		if err != nil {
			return sim.Upstream{}, err
		}
		up.Arrivals = append(up.Arrivals, sim.Arrival{At: t.After, Message: t.Outgoing, Where: t.Where})
	}
	slices.SortStableFunc(up.Arrivals, func(a, b sim.Arrival) int { return cmp.Compare(a.At, b.At) })
	if n := len(up.Arrivals); n > 0 {
		up.Calm = up.Arrivals[n-1].At
	}
	up.Calm += longestHold(cfg) + time.Minute
	return up, nil
}

// longestHold is the longest time that the windows of the settings hold a message, plus a quiet
// window.
func longestHold(cfg *config.Config) time.Duration {
	var longest time.Duration
	for name := range cfg.Sinks {
		longest = max(longest, cfg.LongestHold(name))
	}
	return longest + cfg.LongestFresh()
}

// generated returns the events of --load, or those that the seed generates, in the form of the
// sources.
func generated(f simulateFlags, cfg *config.Config) (sim.Upstream, error) {
	if f.load.Rate != 0 {
		up, _, err := f.load.Of(f.seed, cfg)
		return up, err
	}
	sources, err := source.New(cfg)
	if err != nil {
		return sim.Upstream{}, err
	}
	scribe, err := sim.NewScribe(cfg, sources)
	switch {
	case err != nil:
		return sim.Upstream{}, err
	case scribe.Native(sources):
		return sim.Write(f.seed, sources), nil
	}
	return sim.WriteBy(f.seed, scribe)
}
