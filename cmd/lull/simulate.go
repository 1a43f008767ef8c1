package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/dev"
	"github.com/lullhq/lull/internal/sim"
	"github.com/lullhq/lull/internal/source"
)

// simulateFlags are the flags of `lull simulate`.
type simulateFlags struct {
	config, source, collection string
	events, faults             string
	seed                       uint64
	pollers                    int
	report, story              string
}

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
		Long: "Runs the real functions against simulated AWS services and a simulated sink, in virtual time: a day takes seconds. Shows how fresh documents\n" +
			"are with your settings and your events, what that writes and costs, and checks every promise on the way. The same seed, settings\n" +
			"and events give the same run, to the bit. Without --events the seed writes some of its own.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return runSimulate(c, f) },
	}
	fl := c.Flags()
	fl.StringVar(&f.config, "config", "", "settings, a lull.yaml; without it the defaults")
	fl.StringVar(&f.events, "events", "", "messages: a file of NDJSON with after_ms, a folder of *.json, or - for standard input")
	fl.StringVar(&f.source, "source", "", "what decodes the messages: native or govuk, or a source of --config")
	fl.StringVar(&f.collection, "collection", "", "collection of events that name none")
	fl.StringVar(&f.faults, "faults", string(sim.NoFaults), "none, standard (docs/faults.md), or swarm: rates that the seed draws, far beyond it")
	fl.Uint64Var(&f.seed, "seed", 1, "seed of everything that is left to chance")
	fl.IntVar(&f.pollers, "pollers", pollersAtFirst, "pollers that each event source mapping begins with")
	fl.StringVar(&f.report, "report", "", "file for the report, one JSON object")
	fl.StringVar(&f.story, "story", "", "file for everything that happens, line by line")
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
	o := sim.Options{Config: cfg, Seed: f.seed, Faults: level, Upstream: up, Pollers: f.pollers, MostPollers: maxPollers}
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
	s := w.Run().Summary(level)
	fmt.Fprint(c.OutOrStdout(), s)
	if story != nil {
		err = story.Close()
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

// upstream is what --events says, or what the seed writes. The faults go on until what was sent last has long been written.
func upstream(c *cobra.Command, f simulateFlags, cfg *config.Config) (sim.Upstream, error) {
	if f.events == "" {
		sources, err := source.New(cfg)
		if err != nil {
			return sim.Upstream{}, err
		}
		return sim.Write(f.seed, sources), nil
	}
	in, err := dev.OpenInput(f.events, c.InOrStdin())
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
