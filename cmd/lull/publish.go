package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/lullhq/lull/internal/feed"
	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/operate"
	"github.com/lullhq/lull/internal/queue"
)

// publishBatch is how many messages are published with one question.
const publishBatch = 100

func (a *app) publishCommand() *cobra.Command {
	var source, lane, group string
	c := &cobra.Command{
		Use:   "publish [FILE|DIR|-]",
		Short: "Send messages to the queues that their events belong to",
		Long: "Sends NDJSON (a file, or standard input), or the *.json of a folder, one message each. A message that " +
			"breaks the contract is refused and\n" +
			"named on standard error; the others are sent. Timed messages ({\"after_ms\", \"attributes\", \"body\"}) " +
			"are sent at once.",
		Args: cobra.MaximumNArgs(1),
	}
	a.verb(c, func(c *cobra.Command, api operate.API, args []string) error {
		if err := errors.Join(checkLane(lane), checkGroup(group)); err != nil {
			return err
		}
		in, err := feed.Open(argument(args, "-"), a.in)
		if err != nil {
			return usage(err)
		}
		defer in.Close()
		p := publisher{api: api, source: source, group: group, lane: flight.Lane(lane)}
		err = p.all(c.Context(), in)
		for _, r := range p.total.Refused {
			fmt.Fprintf(a.err, "refused: message %d: %s\n", r.Message+1, r.Why)
		}
		if printed := a.print(p.total, func(w io.Writer) {
			fmt.Fprintf(w, "%d messages with %d events sent, %d refused\n", p.total.Messages, p.total.Events,
				len(p.total.Refused))
		}); err == nil {
			err = printed
		}
		if err == nil && len(p.total.Refused) > 0 {
			err = &exitError{exitFailed, nil}
		}
		return err
	})
	c.Flags().StringVar(&source, "source", "",
		"`NAME` of the source that decodes the messages (the attribute lull-source)")
	c.Flags().StringVar(&lane, "lane", "", "`LANE`, live or bulk; without it live, and bulk for resyncs")
	groupFlag(c, &group)
	return exits(c, map[int]string{
		exitOK:     "everything was sent",
		exitFailed: "a message was refused, or something stopped it", exitUsage: "usage or settings: nothing was sent",
	})
}

func checkLane(lane string) error {
	if lane != "" && lane != string(flight.Live) && lane != string(flight.Bulk) {
		return usagef("--lane %s: want live or bulk", lane)
	}
	return nil
}

func checkGroup(group string) error {
	if group != "" && !queue.ValidGroup(group) {
		return usagef("--group %q: want 1 to 128 letters, digits or punctuation marks of ASCII", group)
	}
	return nil
}

// groupFlag is the flag --group.
func groupFlag(c *cobra.Command, group *string) {
	c.Flags().StringVar(group, "group", "",
		"message group `NAME`, a tenant, of messages that name none (the attribute lull-group): the queue is fair to "+
			"groups")
}

// publisher sends an input in batches.
type publisher struct {
	api    operate.API
	source string
	group  string
	lane   flight.Lane
	after  func(read int) error // told how many messages of the input are done, refused ones too; nil for nobody

	total operate.Published
	read  int // messages of the input
}

func (p *publisher) all(ctx context.Context, in feed.Input) error {
	return feed.Batches(ctx, in, publishBatch, func(batch []queue.Outgoing) error {
		for i := range batch {
			feed.Mark(&batch[i], p.source, p.group)
		}
		done, err := p.api.Publish(ctx, operate.Publication{Messages: batch, Lane: p.lane})
		p.total.Messages += done.Messages
		p.total.Events += done.Events
		for _, r := range done.Refused {
			p.total.Refused = append(p.total.Refused, operate.Refusal{Message: p.read + r.Message, Why: r.Why})
		}
		p.read += len(batch)
		if err != nil {
			return fmt.Errorf("after %d messages: %w", p.total.Messages, err)
		}
		if p.after == nil {
			return nil
		}
		return p.after(p.read)
	})
}

func argument(args []string, otherwise string) string {
	if len(args) == 0 {
		return otherwise
	}
	return args[0]
}
