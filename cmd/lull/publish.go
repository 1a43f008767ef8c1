package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"

	"github.com/spf13/cobra"

	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/local/dev"
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
		in, err := dev.OpenInput(argument(args, "-"), a.in)
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

func (p *publisher) all(ctx context.Context, in dev.Input) error {
	for {
		batch, ended := p.batch(in)
		if n := len(batch.Messages); n > 0 {
			done, err := p.api.Publish(ctx, batch)
			p.total.Messages += done.Messages
			p.total.Events += done.Events
			for _, r := range done.Refused {
				p.total.Refused = append(p.total.Refused, operate.Refusal{Message: p.read - n + r.Message, Why: r.Why})
			}
			if err != nil {
				return fmt.Errorf("after %d messages: %w", p.total.Messages, err)
			}
			if p.after != nil {
				if err := p.after(p.read); err != nil {
					return err
				}
			}
		}
		switch {
		case errors.Is(ended, io.EOF):
			return nil
		case ended != nil:
			return ended
		case ctx.Err() != nil:
			return ctx.Err()
		}
	}
}

// batch reads the next messages. What was read before an error is in it.
func (p *publisher) batch(in dev.Input) (operate.Publication, error) {
	batch := operate.Publication{Lane: p.lane}
	for len(batch.Messages) < publishBatch {
		m, err := in.Next()
		if err != nil {
			return batch, err
		}
		p.read++
		attrs := map[string]queue.Attribute{}
		for name, value := range map[string]string{queue.AttrSource: p.source, queue.AttrGroup: p.group} {
			if value != "" {
				attrs[name] = queue.Text(value)
			}
		}
		if len(attrs) > 0 {
			maps.Copy(attrs, m.Attributes) // what a message says itself goes first
			m.Attributes = attrs
		}
		batch.Messages = append(batch.Messages, m.Outgoing)
	}
	return batch, nil
}

func argument(args []string, otherwise string) string {
	if len(args) == 0 {
		return otherwise
	}
	return args[0]
}
