package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/lullhq/lull/internal/clock"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/config/yamlfile"
	"github.com/lullhq/lull/internal/dev"
	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/journal"
)

// devFlags are the flags of `lull dev`.
type devFlags struct {
	config, events, source, collection string
	quiet, maxWait                     time.Duration
	speed                              float64
	data, sink, listen                 string
	faults                             bool
	seed                               uint64
	exitWhenIdle                       bool
	report, dump                       string
	verbose                            bool

	from time.Time // the data folder's newest fence: the clock does not go back behind it
}

const defaultListen = "127.0.0.1:7070"

func devCommand() *cobra.Command {
	var f devFlags
	c := &cobra.Command{
		Use:   "dev",
		Short: "Run the whole pipeline in this process",
		Long: "Runs receive, index, prune and dead letters in one process, with in-memory queues and table and a Bleve index on disk.\n" +
			"Without --events it plays a small demo stream and explains each decision.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return runDev(c, f) },
	}
	fl := c.Flags()
	fl.StringVar(&f.config, "config", "", "settings, a lull.yaml; without it the defaults")
	fl.StringVar(&f.events, "events", "", "messages: a file of NDJSON, a folder of *.json, or - for standard input")
	fl.StringVar(&f.source, "source", "", "what decodes the messages: native or govuk, or a source of --config")
	fl.StringVar(&f.collection, "collection", "", "collection of events that name none")
	fl.DurationVar(&f.quiet, "quiet", 0, "debounce window")
	fl.DurationVar(&f.maxWait, "max-wait", 0, "longest that a never-quiet document is postponed")
	fl.Float64Var(&f.speed, "speed", 1, "how many times faster waits pass; durations shown stay as they would be")
	fl.StringVar(&f.data, "data", "", "folder of the index, empty or lull's own; without it a temporary one, removed at the end")
	fl.StringVar(&f.sink, "sink", "", "URL of an OpenSearch to write to instead of Bleve")
	fl.StringVar(&f.listen, "listen", defaultListen, "address of the HTTP search endpoint; with --exit-when-idle only if given")
	fl.BoolVar(&f.faults, "faults", false, "inject the standard fault mix (docs/faults.md)")
	fl.Uint64Var(&f.seed, "seed", 1, "seed of the faults")
	fl.BoolVar(&f.exitWhenIdle, "exit-when-idle", false, "end when the input has ended and everything is settled")
	fl.StringVar(&f.report, "report", "", "file for the report, one JSON object")
	fl.StringVar(&f.dump, "dump", "", "file for the documents read back from the sink, NDJSON")
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "explain every decision, as the demo does")
	return c
}

func runDev(c *cobra.Command, f devFlags) error {
	cfg, adapted, err := devConfig(c, f)
	if err != nil {
		return usage(err)
	}
	if !(f.speed > 0) {
		return usage(fmt.Errorf("--speed %g: want a number above 0", f.speed))
	}
	out := c.OutOrStdout()
	demo := f.events == ""
	input, err := devInput(c, f)
	if err != nil {
		return usage(err)
	}
	defer input.Close()

	sinks, dir, closeSinks, err := openSinks(c.Context(), cfg, &f)
	if err != nil {
		return usage(err)
	}
	defer closeSinks()
	clk := clock.Clock(clock.System{})
	if f.speed != 1 || f.from.After(time.Now()) {
		clk = clock.NewFast(f.speed).From(f.from)
	}

	narrator := dev.NewNarrator(out, clk.Now())
	rec := &dev.Recorder{}
	notes := journal.Tee{rec}
	if demo || f.verbose {
		notes = append(notes, narrator)
	}
	o := dev.Options{Config: cfg, Clock: clk, Sinks: sinks, Journal: notes}
	if f.faults {
		o.Faults = fault.NewMix(fault.Standard(), f.seed)
	}
	engine, err := dev.New(o)
	if err != nil {
		return usage(err)
	}
	if f.data != "" {
		if err := engine.Load(c.Context(), dir); err != nil {
			return usage(err)
		}
	}
	listener, err := listen(c, f)
	if err != nil {
		return usage(err)
	}
	for _, line := range adapted {
		fmt.Fprintln(out, line)
	}
	greet(out, cfg, f, listener, demo)
	return devRun(c.Context(), engine, input, listener, rec, narrator, out, f, demo, dir, clk)
}

// devRun plays the input, waits as the flags say, and leaves report, dump and data behind.
func devRun(ctx context.Context, e *dev.Engine, in dev.Input, l net.Listener, rec *dev.Recorder, say *dev.Narrator, out io.Writer,
	f devFlags, demo bool, dir string, clk clock.Clock,
) error {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	e.Start(work)
	served := make(chan error, 1)
	if l != nil {
		server := &http.Server{Handler: e.Handler(rec), ReadHeaderTimeout: 10 * time.Second}
		go func() { served <- dev.Serve(ctx, server, func() error { return server.Serve(l) }) }()
	}
	err := e.Play(ctx, in)
	if err == nil {
		err = e.Settle(ctx)
	}
	interrupted := ctx.Err() != nil
	if !interrupted && err == nil && !f.exitWhenIdle {
		say.Say(clk.Now(), "everything has settled. Ctrl-C ends; POST messages to /publish, or search.")
		select {
		case <-ctx.Done():
		case err = <-served:
		}
	}
	if interrupted {
		err = nil
	}
	left := e.Left()
	cancel()
	e.Stop()
	if err != nil {
		return &exitError{exitFailed, err}
	}
	return finishDev(context.WithoutCancel(ctx), e, out, f, demo, dir, left)
}

// finishDev writes what was asked for and chooses the exit code.
func finishDev(ctx context.Context, e *dev.Engine, out io.Writer, f devFlags, demo bool, dir string, left int) error {
	report, err := e.Report(ctx)
	if err != nil {
		return &exitError{exitFailed, err}
	}
	fmt.Fprintf(out, "%d messages, %d events: %d written, %d deleted in %d bursts; %d superseded, %d stale, %d duplicates, %d skipped, %d scheduled, %d dead\n",
		report.Messages, report.Events, report.Written, report.Deleted, report.Bursts, report.Superseded, report.Stale,
		report.Duplicates, report.Skipped, report.Scheduled, report.Dead)
	for i, d := range report.DeadLetters {
		if i == 20 {
			fmt.Fprintf(out, "... and %d more dead letters\n", len(report.DeadLetters)-i)
			break
		}
		key := d.Key
		if key == "" {
			key = "message " + d.MessageID
		}
		fmt.Fprintf(out, "dead letter: %s: %s\n", key, d.Reason)
	}
	if f.report != "" {
		err = dev.WriteReport(f.report, report)
	}
	if err == nil && f.dump != "" {
		err = e.Dump(ctx, f.dump)
	}
	if err == nil && f.data != "" {
		err = e.Save(ctx, dir)
	}
	switch {
	case err != nil:
		return &exitError{exitFailed, err}
	case left > 0 && !demo:
		return &exitError{exitFailed, fmt.Errorf("%d messages were not settled", left)}
	case left == 0:
		if err := report.Check(); err != nil {
			return &exitError{exitFailed, err}
		}
	}
	if len(report.DeadLetters) > 0 && f.exitWhenIdle {
		return &exitError{exitLetters, nil}
	}
	return nil
}

func devInput(c *cobra.Command, f devFlags) (dev.Input, error) {
	if f.events != "" {
		return dev.OpenInput(f.events, c.InOrStdin())
	}
	return dev.OpenInput("-", bytes.NewReader(dev.Demo))
}

func listen(c *cobra.Command, f devFlags) (net.Listener, error) {
	if f.exitWhenIdle && !c.Flags().Changed("listen") {
		return nil, nil
	}
	l, err := (&net.ListenConfig{}).Listen(c.Context(), "tcp", f.listen)
	if err != nil {
		return nil, fmt.Errorf("--listen %s: %w (is it in use? choose another address, or port 0 for any)", f.listen, err)
	}
	return l, nil
}

func greet(out io.Writer, cfg *config.Config, f devFlags, l net.Listener, demo bool) {
	fmt.Fprintf(out, "lull dev: a document is written %s after its last change, at the latest %s after the first.\n", cfg.Debounce.Quiet, cfg.Debounce.MaxWait)
	if l != nil {
		fmt.Fprintf(out, "search on http://%s/  (GET /search?q=vienna&field=title, POST /publish)\n", l.Addr())
	}
	if f.faults {
		fmt.Fprintf(out, "faults: the standard mix, seed %d\n", f.seed)
	}
	if demo {
		fmt.Fprint(out, "\nThe demo sends a burst of five versions of \"vienna\", out of order; poison (\"linz\", \"salzburg\"); later a late old version,\n"+
			"a delete of \"graz\" and an older put after it. Watch what its row makes of each:\n\n")
	}
}

// devConfig is the settings with the flags applied, validated. Where --quiet makes the default batching window impossible and no file says
// otherwise, the window is fitted, and a line says so.
func devConfig(c *cobra.Command, f devFlags) (*config.Config, []string, error) {
	cfg := config.Default()
	if f.config != "" {
		loaded, err := yamlfile.Load(f.config)
		if err != nil {
			return nil, nil, err
		}
		cfg = loaded
	}
	changed := c.Flags().Changed
	if f.source != "" {
		if _, known := cfg.Sources[f.source]; !known {
			if f.config != "" {
				return nil, nil, fmt.Errorf("--source %s: %s names no such source", f.source, f.config)
			}
			cfg.Sources = map[string]config.Source{f.source: {Kind: config.SourceKind(f.source)}}
		}
		cfg.DefaultSource = f.source
	}
	if f.collection != "" {
		cfg.DefaultCollection = f.collection
		if _, known := cfg.Collections[f.collection]; !known {
			cfg.Collections[f.collection] = config.Collection{}
		}
		if s, ok := cfg.Sources[cfg.DefaultSource]; ok {
			s.Collection = f.collection
			cfg.Sources[cfg.DefaultSource] = s
		}
	}
	if f.sink != "" {
		cfg.Sinks = map[string]config.Sink{"search": {Kind: config.SinkOpenSearch, URL: f.sink}}
		cfg.DefaultSink = "search"
	}
	if changed("max-wait") {
		cfg.Debounce.MaxWait = f.maxWait
	}
	var adapted []string
	if changed("quiet") {
		cfg.Debounce.Quiet = f.quiet
		if f.config == "" {
			adapted = fitWindow(&cfg)
		}
	}
	cfg.Complete()
	if err := cfg.Validate(); err != nil {
		return nil, nil, errors.Join(errors.New("the settings cannot keep lull's promises:"), err)
	}
	return &cfg, adapted, nil
}

// fitWindow makes the default batching window and burst spread fit a shorter quiet window.
func fitWindow(cfg *config.Config) []string {
	q, d := &cfg.Queues, cfg.Debounce
	if q.Bulk.Window+q.BurstSpread <= d.Quiet {
		return nil
	}
	window := (d.Quiet / 2).Truncate(time.Second)
	q.Live.Window, q.Bulk.Window = min(q.Live.Window, window), min(q.Bulk.Window, window)
	q.BurstSpread = d.Quiet - q.Bulk.Window
	if window == 0 {
		q.Live.Batch, q.Bulk.Batch = 10, 10 // SQS gathers larger batches over at least a second
	}
	return []string{fmt.Sprintf("--quiet %s: for this run batches gather for %s, and a burst may spread over %s", d.Quiet, window, q.BurstSpread)}
}
