package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/operate"
	"github.com/lullhq/lull/internal/shard"
)

// resyncFlags are the flags of `lull resync`.
type resyncFlags struct {
	rate                                float64
	checkpoint, run, source, collection string
	group                               string
}

func (a *app) resyncCommand() *cobra.Command {
	var f resyncFlags
	c := &cobra.Command{
		Use: "resync FILE|s3://BUCKET/KEY", Short: "Publish a whole collection again, in the bulk lane",
		Long: "Publishes native events (NDJSON) to the bulk lane, with mode resync and one resync run for all of " +
			"them: an equal version is accepted once\n" +
			"per run, an older one never. Live traffic goes first. An object in S3 is read with the AWS SDK's " +
			"credentials.\n\n" +
			"How far it came is kept in a checkpoint. Interrupted, the same command goes on from there with the same " +
			"run, so no message is accepted\n" +
			"twice. A checkpoint that is broken, or of another input, stack, source or collection, is refused and " +
			"nothing is sent.",
		Args: cobra.ExactArgs(1),
	}
	a.verb(c, func(c *cobra.Command, api operate.API, args []string) error {
		if !(f.rate > 0) || f.rate > 1e6 {
			return usagef("--rate %g: want messages a second, above 0", f.rate)
		}
		if err := checkGroup(f.group); err != nil {
			return err
		}
		if f.collection != "" {
			if err := shard.Collection(f.collection).Validate(); err != nil {
				return usagef("--collection: %w", err)
			}
		}
		return a.resync(c.Context(), api, args[0], f)
	})
	c.Flags().Float64Var(&f.rate, "rate", 200, "`N` messages a second")
	c.Flags().StringVar(&f.checkpoint, "checkpoint", "",
		"`FILE` that keeps how far it came; without it the input's name with .checkpoint, for an object in S3 in "+
			"this folder")
	c.Flags().StringVar(&f.run, "run", "", "resync run, a `ULID`; without it a new one")
	c.Flags().StringVar(&f.source, "source", "", "`NAME` of a native source, where the default one is of another kind")
	c.Flags().StringVar(&f.collection, "collection", "",
		"write to this collection `NAME` instead: rebuild beside live traffic, then switch")
	groupFlag(c, &f.group)
	return exits(c, map[int]string{
		exitOK:     "everything was sent",
		exitFailed: "a message was refused, or something stopped it: run it again to go on",
		exitUsage:  "usage, settings, or a checkpoint that does not fit: nothing was sent",
	})
}

func (a *app) resync(ctx context.Context, api operate.API, from string, f resyncFlags) error {
	in, err := a.openEvents(ctx, from)
	if err != nil {
		return usage(err)
	}
	defer in.Close()
	at := f.checkpoint
	if at == "" {
		at = in.name + ".checkpoint"
	}
	cp, err := openCheckpoint(at, in, checkpoint{
		Run: f.run, Stack: a.target.name(), Source: f.source,
		Collection: f.collection,
	})
	if err != nil {
		return usage(err)
	}
	in.run, in.collection = cp.Run, f.collection
	bar := progress{out: a.err, size: in.size, shown: isTerminal(a.err)}
	began, first := time.Now(), cp.Sent
	p := publisher{
		api: api, source: f.source, group: f.group, lane: flight.Bulk, read: cp.Sent,
		after: func(read int) error {
			cp.reach(read, in)
			if err := cp.save(at); err != nil {
				return err
			}
			bar.show(read, in.read)
			return pace(ctx, began, read-first, f.rate)
		},
	}
	err = p.all(ctx, in)
	bar.end()
	for _, r := range p.total.Refused {
		fmt.Fprintf(a.err, "refused: message %d: %s\n", r.Message+1, r.Why)
	}
	if err != nil {
		return fmt.Errorf("%w; the same command goes on from %s", err, at)
	}
	if err := cp.remove(at); err != nil {
		return err
	}
	answer := resynced{p.total, cp.Run, first}
	if err := a.print(answer, func(w io.Writer) {
		fmt.Fprintf(w, "%d messages sent in resync run %s, %d refused", p.total.Messages, cp.Run, len(p.total.Refused))
		if first > 0 {
			fmt.Fprintf(w, "; %d were done before", first)
		}
		fmt.Fprintln(w)
	}); err != nil || len(p.total.Refused) == 0 {
		return err
	}
	return &exitError{exitFailed, nil}
}

// resynced is what a resync answers.
type resynced struct {
	operate.Published
	Run    string `json:"run"`
	Before int    `json:"before,omitempty"` // messages that an interrupted run had done
}

// pace waits until n messages at the rate would have taken this long.
func pace(ctx context.Context, began time.Time, n int, rate float64) error {
	wait := time.Until(began.Add(time.Duration(float64(n) / rate * float64(time.Second))))
	if wait <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
