package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/lullhq/lull/internal/dev"
	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/operate"
	"github.com/lullhq/lull/internal/queue"
)

// publishBatch is how many messages are published with one question.
const publishBatch = 100

func publishCommand(t *target) *cobra.Command {
	var source, lane string
	c := t.verb(&cobra.Command{
		Use:   "publish [FILE|DIR|-]",
		Short: "Send messages to the stack's queues",
		Long: "Sends NDJSON (a file or standard input), or the *.json of a folder, one message each, to the queues that their events belong to.\n" +
			"A message that breaks the contract is refused and named; the others are sent. Times (after_ms) are ignored.",
		Args: cobra.MaximumNArgs(1),
	}, func(c *cobra.Command, api operate.API, args []string) error {
		in, err := dev.OpenInput(argument(args, "-"), c.InOrStdin())
		if err != nil {
			return usage(err)
		}
		defer in.Close()
		total, err := publishAll(c.Context(), api, in, source, flight.Lane(lane), 0, nil)
		for _, r := range total.Refused {
			fmt.Fprintf(c.ErrOrStderr(), "refused: message %d: %s\n", r.Message+1, r.Why)
		}
		if printed := t.print(c, total, func(w io.Writer) {
			fmt.Fprintf(w, "%d messages with %d events sent, %d refused\n", total.Messages, total.Events, len(total.Refused))
		}); err == nil {
			err = printed
		}
		if err == nil && len(total.Refused) > 0 {
			err = &exitError{exitFailed, nil}
		}
		return err
	})
	c.Flags().StringVar(&source, "source", "", "source that decodes the messages (attribute lull-source)")
	c.Flags().StringVar(&lane, "lane", "", "live or bulk; without it live, and bulk for resyncs")
	return c
}

// publishAll sends an input in batches. after, where given, is told how many messages of the input are sent so far, refused ones counted.
func publishAll(ctx context.Context, api operate.API, in dev.Input, source string, lane flight.Lane, skip int, after func(int) error) (operate.Published, error) {
	var total operate.Published
	read := 0
	for {
		batch := operate.Publication{Lane: lane}
		var ended error
		for len(batch.Messages) < publishBatch {
			m, err := in.Next()
			if err != nil {
				ended = err
				break
			}
			if read++; read <= skip {
				continue
			}
			if source != "" {
				attrs := map[string]queue.Attribute{queue.AttrSource: queue.Text(source)}
				for k, v := range m.Attributes {
					attrs[k] = v
				}
				m.Attributes = attrs
			}
			batch.Messages = append(batch.Messages, m.Outgoing)
		}
		if n := len(batch.Messages); n > 0 {
			done, err := api.Publish(ctx, batch)
			total.Messages += done.Messages
			total.Events += done.Events
			for _, r := range done.Refused {
				total.Refused = append(total.Refused, operate.Refusal{Message: read - n + r.Message, Why: r.Why})
			}
			if err != nil {
				return total, fmt.Errorf("after %d messages: %w", total.Messages, err)
			}
			if after != nil {
				if err := after(read); err != nil {
					return total, err
				}
			}
		}
		if errors.Is(ended, io.EOF) {
			return total, nil
		}
		if ended != nil {
			return total, ended
		}
	}
}

func argument(args []string, otherwise string) string {
	if len(args) == 0 {
		return otherwise
	}
	return args[0]
}
