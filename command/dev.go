// SPDX-License-Identifier: Apache-2.0

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
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/operator/feed"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/terminal"
	"github.com/lullhq/lull/sink"
)

// demo has the events of `lull dev` without --events: a burst, a late old version, a version with
// unchanged content, a delete and then an older put, and poison.
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
	chosen                             map[string]sinkFlag // each --sink, by the name of the sink that it replaces
	local, notify, prepare             bool
	faults                             bool
	seed                               uint64
	exitWhenIdle                       bool
	report, dump                       string
	verbose                            bool
}

const defaultListen = "127.0.0.1:7070"

// maxSpeed is so low that a week of virtual time takes half a second. Queues delete their messages
// after a week.
const maxSpeed = 1_000_000

func devCommand(std *streams, find credentials, stop *ctrlC) *cobra.Command {
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
			"sent unchanged.\n\n" +
			"With --local it runs the settings of a deployed stack: their windows, sources, match rules, collections, " +
			"lifecycle and places of references. Nothing needs credentials: it prints what replaces each resource. " +
			"With --buckets, also without --local, an object of S3 is a file that you put into that folder.\n\n" +
			"With --data the next run continues where this run ends, even if it is killed: with its messages, rows, " +
			"flights, dead letters and scheduled events. Counters and explained decisions start again. Two processes " +
			"cannot share a folder.\n\n" +
			"It stays up until Ctrl-C, which waits three seconds for requests under way. A second Ctrl-C ends it " +
			"at once, but with --data not before the data folder is saved. If the disk is full, nothing is lost: the run " +
			"says so, tries again, and fails in the end if there is still no space. With --exit-when-idle it ends when " +
			"the input has ended, every after_ms has passed, and nothing waits. That means the queues, the flights and " +
			"the dead letters that must still be judged. It does not wait for scheduled events.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return runDev(c, std, find, stop, f) },
	}, ends{
		exitOK:      "everything is settled, or Ctrl-C ended a run without --events",
		exitFailed:  "something stopped the run",
		exitUsage:   "usage or settings, before anything was read",
		exitRefused: "everything is settled, but dead letters are parked",
		exitWrong:   "work remains: messages are not settled, or Ctrl-C ended the run before its input did",
	},
		flag("config", &f.config, "settings, a `FILE` like lull.yaml; without it the defaults"),
		flag("events", &f.events, "messages: `FILE|DIR|-`, NDJSON, a folder of *.json, or standard input"),
		flag("source", &f.source, "`NAME` of the source that decodes the messages: native, govuk, or a source of --config"),
		flag("collection", &f.collection, "collection `NAME` of events that name none"),
		flag("quiet", &f.quiet, "debounce window `D`, such as 2s"),
		flag("max-wait", &f.maxWait, "`D`, the longest time that a document is postponed if it never stops changing"),
		flag("speed", &f.speed, "waits pass `N` times faster; printed durations do not change",
			between(&f.speed, math.SmallestNonzeroFloat64, maxSpeed, fmt.Sprintf("a number above 0, at most %d",
				maxSpeed))),
		flag("data", &f.data, "data folder `DIR`, empty or lull's own; without it a temporary one, removed at the end"),
		flag("local", &f.local, "run the settings of --config as they are deployed, without credentials: a Bleve "+
			"index for every sink, "+
			"a folder for buckets"),
		flag("buckets", &f.buckets, "folder `DIR` in place of S3: s3://bucket/key is DIR/bucket/key; with --local "+
			"by default in the data folder"),
		flag("notify", &f.notify, "send notifications about the files in the folder of --buckets, as S3 does: about all "+
			"at the start, then about each change. Remove files only while it runs: a file that is removed between "+
			"two runs causes no notification"),
		flag("sink", &f.sinks, "write to `[NAME=][KIND:]URL`, such as http://127.0.0.1:9200, in place of all sinks; "+
			"with NAME in place of that sink of --config; may be repeated"),
		flag("install-template", &f.prepare, "prepare sinks that are not in this process, as 'lull index "+
			"install-template' does: index templates, tables"),
		flag("listen", &f.listen, "`ADDR` of the HTTP search endpoint; with --exit-when-idle only if given"),
		flag("faults", &f.faults, "inject the standard fault mix (docs/faults.md)"),
		flag("seed", &f.seed, "seed `N` of the faults"),
		flag("exit-when-idle", &f.exitWhenIdle, "end when no message waits any more"),
		flag("report", &f.report, "`FILE` for the report, one JSON object"),
		flag("dump", &f.dump, "`FILE` for the documents read back from the sink, NDJSON, sorted by collection and id"),
		flag("verbose,v", &f.verbose, "explain every decision, as the demo does"),
	)
}

// runDev prepares a run. It finds every error in flags, settings, folders and addresses before it
// reads anything.
func runDev(c *cobra.Command, std *streams, find credentials, stop *ctrlC, f devFlags) error {
	if err := f.check(); err != nil {
		return usage(err)
	}
	// Until the folder is saved, a signal only ends the waiting. The rest takes a bounded time:
	// open requests are answered, and current turns end.
	stop.saving.Store(f.data != "")
	ctx, cancel := std.untilHungUp(c.Context())
	defer cancel()
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
	r := &devRun{devFlags: f, out: std.out, saved: stop.saved, demo: f.events == "" && f.config == "" &&
		cfg.Sources[cfg.DefaultSource].Kind == "native"}
	if r.demo {
		cfg = sparing(cfg)
	}
	if r.input, err = devInput(r, std.in); err != nil {
		return usage(err)
	}
	defer r.input.Close()
	if err := checkNotify(cfg, &f); err != nil {
		return usage(err)
	}
	o, err := openSinks(ctx, std.out, find, cfg, &f)
	if err != nil {
		return usage(err)
	}
	defer o.close()
	r.opened, r.clock = o, clock.System{}
	ahead := time.Until(o.from)
	if f.speed != 1 || ahead > 0 {
		r.clock = clock.NewFast(f.speed).From(o.from)
	}
	if ahead >= time.Second {
		terminal.Printf(std.out, "the clock starts at %s, %s ahead of this machine: an earlier run in this folder, or a "+
			"writer of the sink, reached that time\n", o.from.UTC().Format(time.RFC3339), ahead.Round(time.Second))
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
		terminal.Printf(std.out, "%s\n", line)
	}
	for _, name := range o.untouched {
		terminal.Printf(std.out, "sink %s was not prepared: only an engine with index templates needs that, and lull creates "+
			"a missing table or collection itself. --install-template prepares it now, and `lull index install-template "+
			"--print` shows what that sends\n", name)
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

// check checks the flags that do not need the settings.
func (f *devFlags) check() error {
	if err := f.parseSinks(); err != nil {
		return err
	}
	return errors.Join(f.checkLocal(), f.checkOutputs())
}

func devInput(r *devRun, in io.Reader) (feed.Input, error) {
	switch {
	case r.events != "":
		return feed.Open(r.events, in)
	case r.demo:
		return feed.Open("-", bytes.NewReader(demo))
	}
	return feed.Open("-", bytes.NewReader(nil)) // no demo, because its events need the source native
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
