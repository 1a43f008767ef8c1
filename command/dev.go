package command

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/console"
	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/local/dev"
	"github.com/lullhq/lull/internal/local/ledger"
	"github.com/lullhq/lull/internal/local/server"
	"github.com/lullhq/lull/internal/local/story"
	"github.com/lullhq/lull/internal/operator/feed"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/simulation/forecast"
	"github.com/lullhq/lull/internal/terminal"
	"github.com/lullhq/lull/sink"
)

// demo is the stream of `lull dev` without --events: a burst, a late old version, one in which
// nothing changed, a delete and an older put after it, and poison.
//
//go:embed demo.ndjson
var demo []byte

// devFlags are the flags of `lull dev`.
type devFlags struct {
	config, events, source, collection string
	quiet, maxWait                     time.Duration
	speed                              float64
	data, listen, buckets              string
	sinks                              []string
	chosen                             map[string]sinkFlag // of sinks, by the names of those that they replace
	local, notify, init                bool
	faults                             bool
	seed                               uint64
	exitWhenIdle                       bool
	report, dump                       string
	verbose                            bool
}

const defaultListen = "127.0.0.1:7070"

// maxSpeed keeps a week, after which a queue drops its messages, longer than a moment.
const maxSpeed = 1_000_000

func (a *app) devCommand() *cobra.Command {
	f := devFlags{speed: 1, listen: defaultListen, seed: 1}
	return define(&cobra.Command{
		Use:   "dev",
		Short: "Run the whole pipeline in this process",
		Long: "Runs receive, index, prune and dead letters in one process, with queues and table in memory and a " +
			"Bleve index on disk, and serves search. Without --events and --config it plays a small demo stream and " +
			"explains each decision.\n\n" +
			"Messages come as NDJSON, one on each line, or as the *.json files of a folder, in the order of " +
			"their names. A file NAME.json may hold one message on several lines. An object " +
			"whose only keys are among after_ms, attributes and body is a timed message: " +
			"its body is sent after_ms milliseconds after the start, or at once without after_ms. A body that is " +
			"a text is sent as it is, any other value as its own bytes. A line that is not a timed message is " +
			"sent as it stands.\n\n" +
			"With --local it runs the settings of a deployed stack: their windows, sources, match rules, collections, " +
			"lifecycle and places of references. Nothing needs credentials: it prints what stands in for what. " +
			"With --buckets, also without --local, an object of S3 is a file that you put into that folder.\n\n" +
			"With --data the next run goes on where this one ends, also where it is killed: with its messages, rows, " +
			"flights, dead letters and scheduled events. Counters and explained decisions begin anew. Two processes " +
			"cannot share a folder.\n\n" +
			"It stays up until Ctrl-C, which waits three seconds for requests under way. A second Ctrl-C ends it " +
			"at once, but with --data not before the data folder is saved. A disk that is full loses nothing: the run " +
			"says so, tries again, and fails in the end if there is no room. With --exit-when-idle it ends when the input has ended, every after_ms " +
			"has passed, and nothing waits. It looks at the queues, the flights and the dead letters that are " +
			"to be judged. Scheduled events do not keep it up.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.dev(c, f) },
	}, map[int]string{
		exitOK:      "everything is settled, or Ctrl-C ended a run without --events",
		exitFailed:  "something stopped the run, or work remains",
		exitUsage:   "usage or settings, before anything was read",
		exitLetters: "everything is settled, but dead letters are parked",
	},
		flag("config", &f.config, "settings, a `FILE` like lull.yaml; without it the defaults"),
		flag("events", &f.events, "messages: `FILE|DIR|-`, NDJSON, a folder of *.json, or standard input"),
		flag("source", &f.source, "`NAME` of what decodes the messages: native or govuk, or a source of --config"),
		flag("collection", &f.collection, "collection `NAME` of events that name none"),
		flag("quiet", &f.quiet, "debounce window `D`, such as 2s"),
		flag("max-wait", &f.maxWait, "`D`, the longest that a never-quiet document is postponed"),
		flag("speed", &f.speed, "waits pass `N` times faster; printed durations do not change",
			between(&f.speed, math.SmallestNonzeroFloat64, maxSpeed, fmt.Sprintf("a number above 0, at most %d",
				maxSpeed))),
		flag("data", &f.data, "data folder `DIR`, empty or lull's own; without it a temporary one, removed at the end"),
		flag("local", &f.local, "run the settings of --config as they are deployed, without credentials: a Bleve "+
			"index for every sink, "+
			"a folder for buckets"),
		flag("buckets", &f.buckets, "folder `DIR` in place of S3: s3://bucket/key is DIR/bucket/key; with --local "+
			"by default in the data folder"),
		flag("notify", &f.notify, "notify of the files in the folder of buckets as S3 does: of all at the start, "+
			"then of each change. "+
			"Remove files while it runs: nothing is notified of one that goes between two runs"),
		flag("sink", &f.sinks, "write to `[NAME=][KIND:]URL`, such as http://127.0.0.1:9200, in place of all sinks; "+
			"with NAME in place of that sink of --config, once for each"),
		flag("init", &f.init, "prepare sinks that are elsewhere, as 'lull init' does: index templates, tables"),
		flag("listen", &f.listen, "`ADDR` of the HTTP search endpoint; with --exit-when-idle only if given"),
		flag("faults", &f.faults, "inject the standard fault mix (docs/faults.md)"),
		flag("seed", &f.seed, "seed `N` of the faults"),
		flag("exit-when-idle", &f.exitWhenIdle, "end when everything is settled"),
		flag("report", &f.report, "`FILE` for the report, one JSON object"),
		flag("dump", &f.dump, "`FILE` for the documents read back from the sink, NDJSON, sorted by collection and id"),
		flag("verbose,v", &f.verbose, "explain every decision, as the demo does"),
	)
}

// dev prepares a run. It finds every error in flags, settings, folders and addresses before it
// reads anything.
func (a *app) dev(c *cobra.Command, f devFlags) error {
	if err := f.check(); err != nil {
		return usage(err)
	}
	// Until the folder is saved, a signal only ends the waiting. The rest takes a bounded time:
	// open requests are answered, and current turns end.
	a.saving.Store(f.data != "")
	ctx, stop := a.untilHungUp(c.Context())
	defer stop()
	cfg, adapted, err := devConfig(c, f)
	if err != nil {
		return usage(err)
	}
	var local *localized
	if f.local {
		if local, err = localize(cfg, f); err != nil {
			return usage(err)
		}
	}
	r := &devRun{devFlags: f, out: a.out, saved: a.saved, demo: f.events == "" && f.config == "" &&
		cfg.Sources[cfg.DefaultSource].Kind == "native"}
	if r.demo {
		cfg = sparing(cfg)
	}
	if r.input, err = a.devInput(r); err != nil {
		return usage(err)
	}
	defer r.input.Close()
	if err := checkNotify(cfg, &f); err != nil {
		return usage(err)
	}
	o, err := a.openSinks(ctx, cfg, &f)
	if err != nil {
		return usage(err)
	}
	defer o.close()
	r.opened, r.clock = o, clock.System{}
	if f.speed != 1 || o.from.After(time.Now()) {
		r.clock = clock.NewFast(f.speed).From(o.from)
	}
	if err := r.build(ctx, cfg); err != nil {
		return usage(err)
	}
	if r.listener, err = f.open(c); err != nil {
		return usage(err)
	}
	if local != nil {
		adapted = append(adapted, local.describe(o.at, o.bucketsAt)...)
	}
	for _, line := range adapted {
		terminal.Printf(a.out, "%s\n", line)
	}
	for _, name := range o.untouched {
		terminal.Printf(a.out, "sink %s was not prepared, such as with an index template: --init does that, and "+
			"`lull init --print` shows what it is\n", name)
	}
	r.greet(cfg)
	return r.run(ctx)
}

// sparing returns the settings of the demo, which shows that an unchanged document is not written
// again. A sink keeps its own setting if it cannot say whether it is still the same index.
func sparing(cfg *config.Config) *config.Config {
	own := *cfg
	own.Sinks = maps.Clone(cfg.Sinks)
	for name, s := range own.Sinks {
		s.Unchanged = sink.Keep
		own.Sinks[name] = s
	}
	if own.Validate() != nil {
		return cfg
	}
	return &own
}

// check judges the flags that do not need the settings.
func (f *devFlags) check() error {
	if err := f.parseSinks(); err != nil {
		return err
	}
	return errors.Join(f.checkLocal(), f.checkOutputs())
}

func (a *app) devInput(r *devRun) (feed.Input, error) {
	switch {
	case r.events != "":
		return feed.Open(r.events, a.in)
	case r.demo:
		return feed.Open("-", bytes.NewReader(demo))
	}
	return feed.Open("-", bytes.NewReader(nil)) // the demo's events are native
}

// open listens if the flags ask for it.
func (f *devFlags) open(c *cobra.Command) (net.Listener, error) {
	if f.exitWhenIdle && !c.Flags().Changed("listen") {
		return nil, nil
	}
	return listen(c.Context(), f.listen)
}

// listen listens at the address of --listen.
func listen(ctx context.Context, address string) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		err = fmt.Errorf("%w: choose another address, or port 0 for any", err)
	}
	if err != nil {
		return nil, fmt.Errorf("--listen %s: %w", address, err)
	}
	return l, nil
}

// devRun is one run of `lull dev`.
type devRun struct {
	devFlags
	out      io.Writer
	demo     bool
	input    feed.Input
	clock    clock.Clock
	listener net.Listener // nil for none
	opened   *opened
	saved    func() // called when the data folder is saved

	cfg      *config.Config
	engine   *dev.Engine
	recorder *story.Recorder
	narrator *story.Narrator
}

func (r *devRun) build(ctx context.Context, cfg *config.Config) (err error) {
	o := r.opened
	r.cfg, r.recorder, r.narrator = cfg, &story.Recorder{}, story.NewNarrator(r.out, r.clock.Now())
	notes := journal.Tee{r.recorder}
	if r.demo || r.verbose {
		notes = append(notes, r.narrator)
	} else {
		notes = append(notes, story.NewTrouble(r.narrator))
	}
	options := dev.Options{
		Config: cfg, Clock: r.clock, Sinks: o.sinks, Journal: notes, Trouble: r.trouble, Folder: o.folder,
		Step: r.step(), Enrichers: o.enrichers, Headers: o.headers,
	}
	if o.buckets != nil {
		options.Objects, options.Open = o.buckets.Load, o.buckets.Open
	}
	if r.faults {
		options.Faults = fault.NewMix(fault.Standard(), r.seed)
	}
	if r.engine, err = dev.New(options); err != nil {
		return err
	}
	if r.opened.folder != nil {
		return r.engine.Load(ctx)
	}
	return nil
}

// trouble prints that the disk is full or broken, and later that it works again.
func (r *devRun) trouble(err error) {
	if err == nil {
		r.narrator.Say(r.clock.Now(), "the disk can be written again")
		return
	}
	r.narrator.Say(r.clock.Now(), "ALARM: %v: nothing is lost, and it is tried again: make room", err)
}

func (r *devRun) greet(cfg *config.Config) {
	terminal.Printf(r.out, "lull dev: a document is written %s after its last change, at the latest %s after the first.\n",
		cfg.Debounce.Quiet, cfg.Debounce.MaxWait)
	for _, name := range slices.Sorted(maps.Keys(cfg.Collections)) {
		if d := cfg.For(name); d.Quiet != cfg.Debounce.Quiet || d.MaxWait != cfg.Debounce.MaxWait {
			terminal.Printf(r.out, "one of %s %s after, at the latest %s.\n", name, d.Quiet, d.MaxWait)
		}
	}
	if r.listener != nil {
		terminal.Printf(r.out, "search on http://%s/  (the console; GET /search?q=vienna&field=title, POST /publish)\n",
			r.listener.Addr())
	}
	if r.faults {
		terminal.Printf(r.out, "faults: the standard mix, seed %d\n", r.seed)
	}
	if r.demo {
		fmt.Fprint(r.out,
			"\nThe demo sends a burst of five versions of \"vienna\", out of order; poison (\"linz\", \"salzburg\"); "+
				"later a late old version,\n"+
				"\"vienna\" again with nothing changed, a delete of \"graz\" and an older put after it. Watch what its row "+
				"makes of each:\n\n")
	}
}

// run plays the input, waits as the flags say, and writes report, dump and data.
func (r *devRun) run(ctx context.Context) error {
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	r.engine.Start(work)
	serving, hangUp := context.WithCancel(context.WithoutCancel(ctx))
	defer hangUp()
	served := make(chan error, 1)
	if r.listener == nil {
		served <- nil
	} else {
		go func() { served <- r.serve(serving) }()
	}
	unwatch, err := r.watch(ctx)
	var ended ending
	if err == nil {
		ended, err = r.play(ctx, served)
		unwatch()
	}
	hangUp()
	if e := <-served; err == nil {
		err = e
	}
	stop()
	r.engine.Stop()
	if err != nil {
		r.save()
		return &exitError{exitFailed, errors.Join(err, r.engine.Trouble())}
	}
	return r.finish(context.WithoutCancel(ctx), ended)
}

// step is a second of the machine's time, by the run's clock.
func (r *devRun) step() time.Duration { return time.Duration(max(r.speed, 1) * float64(time.Second)) }

// serve answers until ctx ends.
func (r *devRun) serve(ctx context.Context) error {
	token := console.NewToken()
	o := console.Options{
		API: r.engine.Operator(r.recorder), Mode: console.Dev, Stack: "lull dev", Send: true, By: whoami(),
		Token: token, Config: r.cfg, Clock: r.clock, Speed: r.speed, Breaker: r.engine,
		Meter: &devMeter{engine: r.engine, since: r.clock.Now(), step: r.step()},
	}
	var err error
	if o.Simulator, err = forecast.NewComparer(asDeployed(r.cfg)); err != nil {
		return err
	}
	h := server.Handler(r.engine, o)
	return console.Serve(ctx, r.listener, console.Guard{Token: token}, h)
}

// ending says how a run ended.
type ending struct {
	played      bool // the whole input
	interrupted bool // by Ctrl-C
}

// play plays the input and waits until the stack is idle. Ctrl-C is not an error.
func (r *devRun) play(ctx context.Context, served chan error) (e ending, err error) {
	if err = r.engine.Play(ctx, r.input); err == nil {
		e.played = true
		err = r.engine.Settle(ctx)
	}
	if ctx.Err() == nil && err == nil && !r.exitWhenIdle {
		r.narrator.Say(r.clock.Now(), "everything has settled. Ctrl-C ends; POST messages to /publish, or search.")
		select {
		case <-ctx.Done():
		case err = <-served:
			served <- nil
			return e, err
		}
	}
	if ctx.Err() != nil {
		return ending{e.played, true}, nil //nolint:nilerr // the error is that Ctrl-C ended it
	}
	return e, err
}

// finish writes the files that were asked for and chooses the exit code.
func (r *devRun) finish(ctx context.Context, e ending) error {
	r.save() // first: a dump that fails, or is cut off, must not lose it
	report, err := r.engine.Report(ctx)
	if err != nil {
		return &exitError{exitFailed, errors.Join(err, r.engine.Trouble())}
	}
	r.sum(report)
	if r.report != "" {
		err = errors.Join(err, report.Write(r.report))
	}
	if r.dump != "" {
		err = errors.Join(err, r.engine.Dump(ctx, r.dump, func(without string) {
			terminal.Printf(r.out, "--dump: without sink %s, which cannot be read back\n", without)
		}))
	}
	left := r.engine.Left()
	err = errors.Join(err, r.engine.Trouble())
	if err == nil && left == 0 {
		err = report.Check()
	}
	switch {
	case err != nil:
		return &exitError{exitFailed, err}
	case r.events == "" && e.interrupted:
		return nil // the demo, or a server: it stays up until then
	case left > 0:
		return &exitError{exitFailed, fmt.Errorf("%d messages were not settled", left)}
	case !e.played:
		return &exitError{exitFailed, fmt.Errorf("interrupted before the input ended")}
	case len(report.DeadLetters) > 0:
		return &exitError{exitLetters, nil}
	}
	return nil
}

// save makes sure that the data folder has everything: see Engine.Trouble.
func (r *devRun) save() {
	if r.opened.folder != nil {
		r.engine.Save()
		r.saved()
	}
}

// shownLetters is how many dead letters are listed at the end.
const shownLetters = 20

func (r *devRun) sum(report ledger.Report) {
	more := ""
	if report.Unchanged > 0 {
		more = fmt.Sprintf(", %d unchanged (not written)", report.Unchanged)
	}
	if report.Read > 0 {
		more += fmt.Sprintf(", %d to read objects", report.Read)
	}
	terminal.Printf(r.out,
		"%d messages, %d events: %d written, %d deleted in %d bursts; %d superseded, %d stale, %d duplicates, %d "+
			"skipped, %d scheduled, %d dead%s\n",
		report.Messages, report.Events, report.Written, report.Deleted, report.Bursts, report.Superseded, report.Stale,
		report.Duplicates, report.Skipped, report.Scheduled, report.Dead, more)
	for i, d := range report.DeadLetters {
		if i == shownLetters {
			terminal.Printf(r.out, "... and %d more dead letters\n", len(report.DeadLetters)-i)
			break
		}
		terminal.Printf(r.out, "dead letter: %s\n", d.String())
	}
}
