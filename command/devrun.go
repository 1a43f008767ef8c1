// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"time"

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
)

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
		Step: r.step(), Enrichers: o.enrichers, Headers: o.account.Headers,
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
	r.narrator.Say(r.clock.Now(), "ALARM: %v: nothing is lost, and lull tries again: free some disk space", err)
}

func (r *devRun) greet(cfg *config.Config) {
	terminal.Printf(r.out, "lull dev: a document is written %s after its last change, at the latest %s after the first.\n",
		cfg.Debounce.Quiet, cfg.Debounce.MaxWait)
	for _, name := range slices.Sorted(maps.Keys(cfg.Collections)) {
		if d := cfg.For(name); d.Quiet != cfg.Debounce.Quiet || d.MaxWait != cfg.Debounce.MaxWait {
			terminal.Printf(r.out, "a document of %s is written %s after its last change, at the latest %s after the first.\n",
				name, d.Quiet, d.MaxWait)
		}
	}
	if r.listener != nil {
		terminal.Printf(r.out, "search on http://%s/  (the console; GET %s, POST /publish)\n", r.listener.Addr(),
			r.searchExample())
	}
	if r.faults {
		terminal.Printf(r.out, "faults: the standard mix, seed %d\n", r.seed)
	}
	if r.demo {
		fmt.Fprint(r.out,
			"\nThe demo sends a burst of five versions of \"vienna\", out of order; poison (\"linz\", \"salzburg\"); "+
				"later a late old version,\n"+
				"\"vienna\" again with nothing changed, a delete of \"graz\" and an older put after it. Watch what the rows "+
				"decide:\n\n")
	}
}

// searchExample returns a search that fits the run. Only the demo's documents are known, so other
// runs get a form to fill in, with a collection of the settings.
func (r *devRun) searchExample() string {
	if r.demo {
		return "/search?q=vienna&field=title"
	}
	for _, name := range slices.Sorted(maps.Keys(r.cfg.Collections)) {
		return "/search?q=WORD&field=FIELD&collection=" + name
	}
	return "/search?q=WORD&field=FIELD"
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

// step returns how much time of the run's clock passes in a second of real time.
func (r *devRun) step() time.Duration { return time.Duration(max(r.speed, 1) * float64(time.Second)) }

// serve answers until ctx ends.
func (r *devRun) serve(ctx context.Context) error {
	token := console.NewToken()
	meter := &devMeter{engine: r.engine, since: r.clock.Now(), step: r.step(), now: r.clock.Now}
	operator := r.engine.Operator(r.recorder)
	operator.Flow = meter.flow
	o := console.Options{
		API: operator.API(), Mode: console.Dev, Stack: "lull dev", Send: true, By: whoami(),
		Token: token, Config: r.cfg, Clock: r.clock, Speed: r.speed, Breaker: r.engine,
		Meter: meter, Tail: r.recorder.Tail,
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
	played      bool // the whole input was played
	interrupted bool // Ctrl-C ended the run
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
	r.save() // first, because the data folder must be saved even if the dump fails or is interrupted
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
		return nil // the demo and a server run until Ctrl-C
	case left > 0:
		return &exitError{exitWrong, fmt.Errorf("%d messages were not settled", left)}
	case !e.played:
		return &exitError{exitWrong, fmt.Errorf("interrupted before the input ended")}
	case len(report.DeadLetters) > 0:
		return &exitError{exitRefused, nil}
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
