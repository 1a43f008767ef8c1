// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/terminal"
)

// keyArg reads a document's key.
func keyArg(s string) (shard.DocID, error) {
	k, err := shard.ParseDocID(s)
	if err != nil && !strings.Contains(err.Error(), strconv.Quote(s)) {
		err = fmt.Errorf("key %q: %w", s, err)
	}
	if err != nil {
		return "", usage(err)
	}
	return k, nil
}

func getCommand(std *streams, t *target) *cobra.Command {
	get := func(api operate.API, ctx context.Context, key shard.DocID) (operate.Document, error) {
		return api.Get(ctx, key)
	}
	return define(&cobra.Command{
		Use: "get KEY", Short: "Print a document as its sink has it", Args: cobra.ExactArgs(1),
		Long: "Reads the document back from its sink. KEY is <collection>#<id>. If the collection has several sinks, it " +
			"reads the first one; <collection>@<sink>#<id> reads another one.",
		RunE: question(std, t, ofKey(get), func(w io.Writer, d operate.Document) {
			terminal.Printf(w, "key\t%s#%s\nsink\t%s\nversion\t%s\norder key\t%s\nfence\t%d\nindexed\t%s\n",
				d.Collection, d.ID, d.Sink, d.Version, d.OrderKey, d.Fence, d.Indexed.Format(time.RFC3339Nano))
			below(w, string(d.Document))
		}),
	}, ends{
		exitOK: "it was printed", exitFailed: "the stack or the sink did not answer",
		exitUsage:   "usage or settings, or a sink that cannot be read from here",
		exitMissing: "not found in the sink",
	})
}

func explainCommand(std *streams, t *target) *cobra.Command {
	ask := ofKey(func(api operate.API, ctx context.Context, key shard.DocID) (operate.Explanation, error) {
		return api.Explain(ctx, key)
	})
	return define(&cobra.Command{
		Use: "explain KEY", Short: "Say why a document is as fresh as it is", Args: cobra.ExactArgs(1),
		Long: "Prints everything known about a document: its row, its version in the sink, the messages that " +
			"wait for it, its scheduled events, its dead letters, and the latest decisions. At the end it names the " +
			"state of the document in one word, and says why the document is in it. KEY is <collection>#<id>. If the " +
			"collection has several sinks, it explains each, unless KEY names one: <collection>@<sink>#<id>.\n\n" +
			"States:\n\n" + states() + "\n\nIt compares the sink's document with the row. If it cannot reach a sink, " +
			"such as one in a VPC, it says so, and the rest of the answer is the same.\n\nA 'lull dev' keeps " +
			"its latest decisions. A deployed stack has them in its functions' logs: --logs reads those of the last " +
			"hours, with the reader's role. At the log level INFO the logs have errors and audited changes, at DEBUG " +
			"all decisions. At most 200 lines are shown.",
		RunE: t.verb(func(c *cobra.Command, api operate.API, args []string) error {
			x, err := ask(api, c.Context(), args)
			if err == nil {
				err = std.print(x, func(w io.Writer) { explainAll(w, x) })
			}
			code := explained(x)
			switch {
			case err != nil || code == exitOK:
				return err
			case code == exitMissing:
				return &exitError{code, fmt.Errorf("%s: %w", args[0], errUnknownKey)}
			}
			return &exitError{code, nil}
		}),
	}, ends{
		exitOK:      "it is fresh, or on its way",
		exitFailed:  "the stack did not answer",
		exitUsage:   "usage or settings",
		exitRefused: "its newest version is a dead letter",
		exitMissing: "the document is unknown",
		exitWrong:   "it does not become right by itself: the sentence says what to do",
	},
		t.logsFlag("with --aws: also the decisions that the functions logged in the last `DURATION`, such as 3h"),
	)
}

// logsFlag is the flag --logs.
func (t *target) logsFlag(usage string) option {
	stack := func(f *pflag.Flag) error {
		if !f.Changed || t.stack {
			return nil
		}
		return usagef("--logs reads the functions' logs: use it with --aws; a 'lull dev' shows its decisions " +
			"without it")
	}
	return flag("logs", &t.logs, usage, stack, between(&t.logs, time.Minute, maxLogs,
		fmt.Sprintf("1m to %dh", int(maxLogs.Hours()))))
}

// states lists the states, for help.
func states() string {
	var lines []string
	for _, m := range operate.States() {
		lines = append(lines, fmt.Sprintf("  - %s: %s", m.State, m.Text))
	}
	return strings.Join(lines, "\n")
}

// explained returns the exit code of an explanation. If there are several sinks, the first one with
// a problem decides. The document is unknown only if it is unknown in all.
func explained(x operate.Explanation) exitCode {
	code := explainedAt(x)
	for _, other := range x.Others {
		if also := explainedAt(other); code == exitMissing || code == exitOK && also != exitMissing {
			code = also
		}
	}
	return code
}

func explainedAt(x operate.Explanation) exitCode {
	switch {
	case !x.Known:
		return exitMissing
	case x.State.Wrong():
		return exitWrong
	case x.State == operate.StateDead:
		return exitRefused
	}
	return exitOK
}

// maxLogs is how long the functions' logs are kept, unless your own stack keeps them longer.
const maxLogs = 31 * 24 * time.Hour

var errUnknownKey = fmt.Errorf("nothing is known about this key: %w", operate.ErrNotFound)

// explainAll prints the explanation of a document, for each of its sinks.
func explainAll(w io.Writer, x operate.Explanation) {
	for i, one := range append([]operate.Explanation{x}, x.Others...) {
		if len(x.Others) > 0 {
			terminal.Printf(w, strings.Repeat("\n", min(i, 1))+"IN SINK %s\n", one.Sink)
		}
		explain(w, one)
	}
}

func explain(w io.Writer, x operate.Explanation) {
	terminal.Printf(w, "%s\n", x.Key)
	if len(x.Row) > 0 {
		fmt.Fprintln(w, "\nROW")
	}
	for _, attr := range shard.Attrs() {
		if v, ok := x.Row[string(attr)]; ok {
			terminal.Printf(w, "  %s\t%v\n", attr, v)
		}
	}
	terminal.Printf(w, "\nSINK\n  version\t%s\n", cmp.Or(x.InSink, "none"))
	if len(x.Held) > 0 {
		terminal.Printf(w, "\nHELD in flight %s\n", x.Flight)
		for _, h := range x.Held {
			terminal.Printf(w, "  v%s\t%s\t%s\tsent %s\tdue %s\treceived %d times\tmessage %s\n", h.Version, h.Operation,
				h.Lane, h.Sent.UTC().Format(clockLayout),
				h.Due.UTC().Format(clockLayout), h.Receives, h.MessageID)
		}
	}
	if len(x.Scheduled) > 0 {
		fmt.Fprintln(w, "\nSCHEDULED")
		for _, p := range x.Scheduled {
			terminal.Printf(w, "  v%s\tnot before %s\tmessage %s\n", p.Version, p.NotBefore.UTC().Format(dayLayout),
				p.MessageID)
		}
	}
	if len(x.Letters) > 0 {
		fmt.Fprintln(w, "\nDEAD LETTERS")
		for _, l := range x.Letters {
			terminal.Printf(w, "  %s\tv%s\t%s\t%s\t%s\n", l.ID, l.Version, l.Reason, l.State, l.Detail)
		}
	}
	if len(x.Decisions) > 0 {
		fmt.Fprintln(w, "\nDECISIONS")
		for _, d := range x.Decisions {
			terminal.Printf(w, "  %s\t%s\t%s\n", d.At.UTC().Format(dayLayout), d.Step, d.Text)
		}
	}
	terminal.Printf(w, "\n%s: %s\n", shade(x.State), x.Sentence)
}

// Layouts for times of today, and for times that may be days ago.
const (
	clockLayout = "15:04:05.000"
	dayLayout   = "2006-01-02 15:04:05.000"
)
