// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lullhq/lull/internal/operator/feed"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/terminal"
)

func publishCommand(std *streams, t *target) *cobra.Command {
	var source, lane, group, collection string
	var example, unchecked bool
	return define(&cobra.Command{
		Use:   "publish [FILE|DIR|-]",
		Short: "Send messages to the queues that their events belong to",
		Long: "Sends NDJSON (a file, also with gzip, or standard input), or the *.json of a folder, one message each. A file NAME.json " +
			"may hold one message on several lines. A message " +
			"that breaks the contract is refused and named on standard error; the others are sent. --unchecked sends it " +
			"too, as a sender outside lull would, and it becomes a dead letter. Timed " +
			"messages ({\"after_ms\", \"attributes\", \"body\"}) are sent at once.\n\n" +
			"With --example it sends one document of its own, in the form that the settings decode, and prints the " +
			"message and what to ask next. It needs no file.",
		Args: cobra.MaximumNArgs(1),
		RunE: t.verb(func(c *cobra.Command, api operate.API, args []string) error {
			if example {
				if len(args) > 0 {
					return usagef("--example: it sends a document of its own, so name no file")
				}
				return publishExample(c.Context(), std, api, lane, group, operate.Composition{
					Source: source, Collection: shard.Collection(collection),
				})
			}
			if collection != "" {
				return usagef("--collection: only with --example; a message itself names its collection")
			}
			from, named := "-", len(args) > 0
			if named {
				from = args[0]
			}
			if _, typed := tty(std.in); from == "-" && typed {
				terminal.Printf(std.err, "reading messages from this terminal, one in each line: Ctrl-D ends, Ctrl-C stops\n")
			}
			in, err := feed.Open(from, std.in)
			if err != nil {
				return usage(err)
			}
			defer in.Close()
			total, warning, err := publishAll(c.Context(), api, in, source, group, operate.Publication{
				Lane: flight.Lane(lane), Unchecked: unchecked,
			})
			if err == nil && !named && total.Messages+len(total.Refused) == 0 {
				return usagef("standard input is empty: name a FILE, or pipe messages into it, one in each line; " +
					"--example sends one to try")
			}
			refusals(std.err, total)
			if len(total.Refused) > 0 && !unchecked {
				terminal.Printf(std.err, "--unchecked sends it too, if it only breaks the contract: it becomes a dead letter\n")
			}
			if warning != "" {
				terminal.Printf(std.err, "warning: %s\n", warning)
			}
			printed := std.print(total, func(w io.Writer) {
				terminal.Printf(w, "%d messages with %d events sent, %d refused\n", total.Messages, total.Events,
					len(total.Refused))
				printParts(w, total.Parts)
			})
			return sent(len(total.Refused), cmp.Or(err, printed))
		}),
	}, ends{
		exitOK:      "everything was sent",
		exitFailed:  "something stopped it",
		exitUsage:   "usage or settings, or an input that cannot be read",
		exitRefused: "messages were refused, and the others were sent",
	},
		flag("source", &source, "`NAME` of the source that decodes the messages (the attribute lull-source)"),
		flag("example", &example, "send one document as an example, in the form of --source"),
		flag("unchecked", &unchecked, "also send messages that break the contract: they become dead letters"),
		flag("collection", &collection, "with --example: its collection `NAME`; without it the source's"),
		laneFlag(&lane, "`LANE`, live or bulk; without it live, and bulk for resyncs"),
		groupFlag(&group),
	)
}

// exampleSent is the answer to --example.
type exampleSent struct {
	operate.Composed
	operate.Published
}

// publishExample sends a document of lull's own.
func publishExample(ctx context.Context, std *streams, api operate.API, lane, group string,
	o operate.Composition,
) error {
	o.ID, o.Own, o.Data = "hello", true, json.RawMessage(`{"title":"Hello","text":"An example from lull publish --example"}`)
	m, err := api.Compose(ctx, o)
	if err != nil {
		return err
	}
	switch {
	case m.Fetched:
		return usagef("--example: lull fetches the documents of source %s. When %s has a document, publish this message, "+
			"with the version of the document in it: %s", m.Source, m.Ref, m.Message.Body)
	case m.Ref != "":
		return usagef("--example: messages of source %s only refer to a document. Put a document there, and S3 sends the "+
			"message: aws s3 cp hello.json %s", m.Source, m.Ref)
	}
	feed.Mark(&m.Message, "", group)
	done, err := api.Publish(ctx, operate.Publication{Messages: []queue.Outgoing{m.Message}, Lane: flight.Lane(lane)})
	if err != nil {
		return err
	}
	for i := range done.Refused {
		done.Refused[i].Message++
	}
	refusals(std.err, done)
	return sent(len(done.Refused), std.print(exampleSent{m, done}, func(w io.Writer) {
		if len(done.Refused) > 0 {
			return
		}
		terminal.Printf(w, "sent %s to source %s:\n%s\n", m.Key, m.Source, m.Message.Body)
		for name, v := range m.Message.Attributes {
			terminal.Printf(w, "with the attribute %s=%s\n", name, v.String)
		}
		terminal.Printf(w, "\nnext:\n")
		if m.Version != "" {
			terminal.Printf(w, "  lull wait '%s' --version %s\n", m.Key, m.Version)
		}
		terminal.Printf(w, "  lull get '%s'\n  lull explain '%s'\n", m.Key, m.Key)
	}))
}

// refusals prints the messages that were refused. It says a reason once, with the first message and
// the number of messages.
func refusals(w io.Writer, p operate.Published) {
	count := map[string]int{}
	for _, r := range p.Refused {
		count[r.Why]++
	}
	for _, r := range p.Refused {
		switch n := count[r.Why]; {
		case n == 1:
			terminal.Printf(w, "refused: message %d: %s\n", r.Message, r.Why)
		case n > 1:
			terminal.Printf(w, "refused: message %d and %d more: %s\n", r.Message, n-1, r.Why)
		}
		count[r.Why] = 0
	}
}

// sent returns the error of a publication. If messages were refused, the exit code of the error
// says so.
func sent(refused int, err error) error {
	if err == nil && refused > 0 {
		return &exitError{exitRefused, nil}
	}
	return err
}

// laneFlag is the flag --lane.
func laneFlag(lane *string, usage string) option {
	return flag("lane", lane, usage, oneOf("live or bulk", string(flight.Live), string(flight.Bulk)))
}

// groupFlag is the flag --group.
func groupFlag(group *string) option {
	return flag("group", group, "message group `NAME`, a tenant, of messages that name none (the attribute "+
		"lull-group): "+
		"the queue is fair to groups", func(f *pflag.Flag) error {
		if *group == "" || queue.ValidGroup(*group) {
			return nil
		}
		return usagef("--group %q: want 1 to 128 letters, digits or punctuation marks of ASCII", *group)
	})
}

// publishAll sends an input in batches, as p says. The warning is about the first version that is
// only a day.
func publishAll(ctx context.Context, api operate.API, in feed.Input, source, group string, p operate.Publication) (
	total operate.Published, warning string, err error,
) {
	read := 0
	err = feed.Batches(ctx, in, operate.PublishBatch, func(batch []queue.Outgoing) error {
		for i := range batch {
			feed.Mark(&batch[i], source, group)
		}
		p.Messages = batch
		done, err := api.Publish(ctx, p)
		total.Messages += done.Messages
		total.Events += done.Events
		total.Parts = addParts(total.Parts, done.Parts)
		for _, e := range done.Sent {
			warning = cmp.Or(warning, coarse(e.Version))
			if e.Empty {
				warning = cmp.Or(warning, selectsNothing)
			}
		}
		for _, r := range done.Refused {
			total.Refused = append(total.Refused, operate.Refusal{Message: read + r.Message + 1, Why: r.Why})
		}
		read += len(batch)
		if err != nil {
			return fmt.Errorf("after %d messages: %w", total.Messages, err)
		}
		return nil
	})
	return total, warning, err
}
