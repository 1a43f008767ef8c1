// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"

	"github.com/oklog/ulid/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lullhq/lull/internal/operator/feed"
	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/terminal"
)

func resyncCommand(std *streams, t *target) *cobra.Command {
	var o operate.ResyncOrder
	perSecond := 200.0
	return define(&cobra.Command{
		Use: "resync FILE|s3://BUCKET/KEY", Short: "Publish a whole collection again, in the bulk lane",
		Long: "Publishes events (NDJSON, in the form of a source) to the bulk lane, with one resync run for all of " +
			"them. An equal version is accepted once per run, an older version never. Live traffic goes first. The " +
			"AWS SDK finds the credentials for an object in S3.\n\n" +
			"It is a job (`lull jobs`): after an interruption, the same command continues with the same run, on any " +
			"machine that has the FILE. Another FILE with the same name is refused, because its beginning must equal the " +
			"part that was sent. With -o json each refused message is one line, and the last line has the counts.",
		Args: cobra.ExactArgs(1),
		RunE: t.verb(func(c *cobra.Command, api operate.API, args []string) error {
			return runResync(c.Context(), std, t.aws, api, args[0], o, perSecond)
		}),
	}, ends{
		exitOK:      "everything was sent",
		exitFailed:  "something stopped it: run it again to continue",
		exitUsage:   "usage or settings, a job with other arguments, or a FILE that cannot be read or is another FILE",
		exitRefused: "messages were refused, and the others were sent",
	},
		flag("rate", &perSecond, "`N` messages a second", sends(&perSecond)),
		flag("run", &o.Run, "resync run, a `ULID`; without it a new one", func(*pflag.Flag) error {
			if _, err := shard.ParseRun(o.Run); o.Run != "" && err != nil {
				return usagef("--run: %w", err)
			}
			return nil
		}),
		flag("source", &o.Source, "`NAME` of the source that decodes the events (the attribute lull-source)"),
		flag("collection", &o.Collection, "write to this collection `NAME` instead: to fill a new collection during live "+
			"traffic, and then switch readers", someCollection),
		flag("sink", &o.Sink, "send only to this sink `NAME` of the collection: to fill a sink that was added"),
		groupFlag(&o.Group),
	)
}

// resynced is the answer of a resync.
type resynced struct {
	Run      string `json:"run"`
	Messages int    `json:"messages"` // messages that were sent
	Events   int    `json:"events"`   // events of these messages
	Refused  int    `json:"refused"`  // messages that were refused
}

func runResync(ctx context.Context, std *streams, find credentials, api operate.API, from string,
	o operate.ResyncOrder, perSecond float64,
) (err error) {
	in := &feed.Reader{Open: func() (*feed.Export, error) { return openEvents(ctx, find, from) }}
	if _, err := in.At(feed.Spot{}); err != nil { // before a job begins
		return usage(err)
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	o.Input = path.Base(filepath.ToSlash(from))
	state, err := runJob(ctx, std, api, operate.ResyncJob(api, o, in, newRun(), perSecond), job.Runner{Rate: perSecond},
		func(r operate.Refusal) { std.line(r, fmt.Sprintf("refused: message %d: %s", r.Message, r.Why)) })
	if err != nil {
		return err
	}
	res, err := job.CursorOf[operate.ResyncCursor](state)
	if err != nil {
		return err
	}
	n := state.Counts
	answer := struct {
		resynced
		// Parts counts the messages of each part, if there are several.
		Parts map[int]int `json:"parts,omitempty"`
	}{
		resynced{res.Run, n[operate.ResyncSent], n[operate.ResyncEvents], n[operate.ResyncRefused]},
		operate.PartsOf(state),
	}
	return sent(answer.Refused, std.last(answer, func(w io.Writer) {
		terminal.Printf(w, "%d messages sent in resync run %s, %d refused\n", answer.Messages, answer.Run, answer.Refused)
		printParts(w, answer.Parts)
	}))
}

// newRun returns the ULID of a new resync run.
func newRun() string { return ulid.MustNew(ulid.Now(), rand.Reader).String() }

// someCollection checks a flag that names a collection.
func someCollection(f *pflag.Flag) error { return checkCollection("--"+f.Name, f.Value.String()) }

// checkCollection checks the name of a collection, if one was given.
func checkCollection(where, name string) error {
	if err := shard.Collection(name).Validate(); err != nil && name != "" {
		return usagef("%s: %w", where, err)
	}
	return nil
}
