package command

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"
	"golang.org/x/time/rate"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/terminal"
)

// resyncFlags are the flags of `lull resync`.
type resyncFlags struct {
	rate                                float64
	checkpoint, run, source, collection string
	group, sink                         string
}

func (a *app) resyncCommand() *cobra.Command {
	f := resyncFlags{rate: 200}
	return define(&cobra.Command{
		Use: "resync FILE|s3://BUCKET/KEY", Short: "Publish a whole collection again, in the bulk lane",
		Long: "Publishes events (NDJSON, in the form of a source) to the bulk lane, with one resync run for all of " +
			"them. An equal version is accepted once per run, an older one never. Live traffic goes first. The " +
			"AWS SDK finds the credentials for an object in S3.\n\n" +
			"A checkpoint keeps how far the resync has come. After an interruption the same command goes on " +
			"from there with the same run, so that no message is accepted twice. A checkpoint that is broken, " +
			"or belongs to another input, stack, source or collection, is refused, and nothing is sent.",
		Args: cobra.ExactArgs(1),
		RunE: a.verb(func(c *cobra.Command, api operate.API, args []string) error {
			return a.resync(c.Context(), api, args[0], f)
		}),
	}, ends{
		exitOK:      "everything was sent",
		exitFailed:  "something stopped it: run it again to go on",
		exitUsage:   "usage, settings, or a checkpoint that does not fit: nothing was sent",
		exitRefused: "messages were refused, and the others were sent",
	},
		flag("rate", &f.rate, "`N` messages a second", sends(&f.rate)),
		flag("checkpoint", &f.checkpoint, "`FILE` that keeps how far the resync has come; without it the input's "+
			"name with .checkpoint, for an object "+
			"in S3 in this folder"),
		flag("run", &f.run, "resync run, a `ULID`; without it a new one"),
		flag("source", &f.source, "`NAME` of the source that decodes the events (the attribute lull-source)"),
		flag("collection", &f.collection, "write to this collection `NAME` instead: rebuild beside live traffic, "+
			"then switch",
			someCollection),
		flag("sink", &f.sink, "to this one of the sinks of the collection, by `NAME`, and no other: to fill one "+
			"that was added"),
		groupFlag(&f.group),
	)
}

func (a *app) resync(ctx context.Context, api operate.API, from string, f resyncFlags) error {
	in, err := a.openEvents(ctx, from)
	if err != nil {
		return usage(err)
	}
	defer in.Close()
	at := checkpoint(cmp.Or(f.checkpoint, in.name+".checkpoint"))
	cp, err := openResync(at, in, resyncPoint{
		Run: f.run, Stack: a.target.name(), Source: f.source, Collection: f.collection, Sink: f.sink,
	})
	if err != nil {
		return usage(err)
	}
	before := cp.Sent
	show, shown := a.progress(in.size)
	pace := paced(f.rate, publishBatch)
	p := publisher{
		api: api, source: f.source, group: f.group, lane: flight.Bulk, read: before, run: cp.Run, into: f.collection,
		sink: f.sink,
	}
	p.after = func(ctx context.Context, n int) error {
		cp.Sent, cp.Bytes, cp.Digest = p.read, in.read, in.digest()
		if err := at.save(cp); err != nil {
			return err
		}
		show(p.read, in.read)
		return pace.WaitN(ctx, n)
	}
	err = p.all(ctx, in)
	shown()
	a.refusals(p.total)
	if err != nil {
		return fmt.Errorf("%w; the same command goes on from %s", err, at)
	}
	if err := at.remove(); err != nil {
		return err
	}
	answer := resynced{p.total, cp.Run, before}
	return sent(p.total, a.print(answer, func(w io.Writer) {
		terminal.Printf(w, "%d messages sent in resync run %s, %d refused", p.total.Messages, cp.Run, len(p.total.Refused))
		if before > 0 {
			terminal.Printf(w, "; %d were done before", before)
		}
		fmt.Fprintln(w)
	}))
}

// someCollection checks a flag that names a collection.
func someCollection(f *pflag.Flag) error { return checkCollection("--"+f.Name, f.Value.String()) }

// checkCollection checks the name of a collection, if one was given.
func checkCollection(where, name string) error {
	if err := shard.Collection(name).Validate(); err != nil && name != "" {
		return usagef("%s: %w", where, err)
	}
	return nil
}

// paced returns a limit for each second, 0 for no limit, in steps of a size. The first step waits,
// too.
func paced(perSecond float64, step int) *rate.Limiter {
	limit := rate.Limit(perSecond)
	if limit == 0 {
		limit = rate.Inf
	}
	pace := rate.NewLimiter(limit, step)
	pace.AllowN(time.Now(), step)
	return pace
}

// progress draws a bar on standard error, if that is a terminal. show moves the bar, and shown ends
// it.
func (a *app) progress(size int64) (show func(sent int, read int64), shown func()) {
	f, isFile := terminal.File(a.err)
	if !isFile || !term.IsTerminal(int(f.Fd())) {
		return func(int, int64) {}, func() {}
	}
	bar := progressbar.NewOptions64(max(size, 1), progressbar.OptionSetWriter(f))
	show = func(sent int, read int64) {
		bar.Describe(fmt.Sprintf("%d messages", sent))
		_ = bar.Set64(read) // the size of an object in S3 may be unknown: the bar is full then
	}
	return show, func() { fmt.Fprintln(f) }
}

// resynced is the answer of a resync.
type resynced struct {
	operate.Published
	Run    string `json:"run"`
	Before int    `json:"before,omitempty"` // messages that an interrupted run had done
}
