// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/terminal"
)

// maxListed is the most documents of a list, and maxPage the most of one request.
const (
	maxListed = 100_000
	maxPage   = 1_000
)

// listCommand lists documents by their rows.
func listCommand(std *streams, t *target) *cobra.Command {
	f := operate.DocumentFilter{Limit: 100}

	ask := func(api operate.API, ctx context.Context, _ []string) (operate.DocumentPage, error) {
		page, err := listed(ctx, api, f)
		if err == nil {
			noteList(std.err, page)
		}
		return page, err
	}
	return define(&cobra.Command{
		Use: "list", Short: "List documents by state, collection and key", Args: cobra.NoArgs,
		Long: "Lists documents by their rows, without asking their sinks. A 'lull dev' lists every document. A deployed " +
			"stack lists the documents that wait or are being written, and with --state those that are scheduled or dead. " +
			"Other documents would need a scan of the whole table: a line on standard error says so. `lull explain` says " +
			"more about one document.",
		RunE: question(std, t, ask, showDocuments),
	}, ends{
		exitOK: "they were listed, even if there are none", exitFailed: "the stack did not answer",
		exitUsage: "usage or settings, or an unknown state or collection",
	},
		flag("state", (*string)(&f.State), "only documents in this `STATE`: "+strings.Join(listedStates(), ", ")),
		flag("collection", (*string)(&f.Collection), "only documents of this collection `NAME`"),
		flag("contains", &f.Contains, "only documents with this `TEXT` in their key, in upper or lower case"),
		flag("group", &f.Group, "only documents of the message group `NAME`, a tenant, by their rows"),
		flag("limit", &f.Limit, "at most `N` documents", between(&f.Limit, 1, maxListed, fmt.Sprintf("1 to %d",
			maxListed))),
		flag("cursor", &f.Cursor, "continue an earlier list at the `CURSOR` that it printed"),
	)
}

func listedStates() []string {
	var names []string
	for _, s := range operate.ListedStates() {
		names = append(names, string(s))
	}
	return names
}

// listed reads pages until there are enough documents, or no more documents. Each note of the pages
// is in the answer once.
func listed(ctx context.Context, api operate.API, f operate.DocumentFilter) (operate.DocumentPage, error) {
	all := operate.DocumentPage{Documents: []operate.DocumentLine{}}
	for want := f.Limit; ; {
		f.Limit = min(want-len(all.Documents), maxPage)
		page, err := api.Documents(ctx, f)
		if err != nil {
			return all, err
		}
		all.Documents = append(all.Documents, page.Documents...)
		all.Next, all.Now, all.Counts = page.Next, page.Now, page.Counts
		for _, note := range page.Notes {
			if !slices.Contains(all.Notes, note) {
				all.Notes = append(all.Notes, note)
			}
		}
		if page.Next == "" || page.Next == f.Cursor || len(all.Documents) >= want {
			return all, nil
		}
		f.Cursor = page.Next
	}
}

// noteList prints to standard error what the list lacks.
func noteList(w io.Writer, page operate.DocumentPage) {
	for _, note := range page.Notes {
		terminal.Printf(w, "%s\n", note)
	}
	if page.Next != "" {
		terminal.Printf(w, "there are more: --cursor %s\n", page.Next)
	}
}

func showDocuments(w io.Writer, page operate.DocumentPage) {
	header(w, "KEY", "STATE", "~VERSION", "~PENDING", "DUE", "~LAST ERROR")
	for _, d := range page.Documents {
		due := "-"
		if !d.Due.IsZero() {
			due = "now"
			if left := d.Due.Sub(page.Now).Round(100 * time.Millisecond); left > 0 {
				due = "in " + left.String()
			}
		}
		version := cmp.Or(d.Version, "-")
		if d.Operation == shard.Delete {
			version += " (deleted)"
		}
		terminal.Printf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", d.Key, shade(d.State), version, cmp.Or(d.Pending, "-"), due,
			cmp.Or(d.LastError, "-"))
	}
}

// shade colours a state by what it needs from people: nothing, patience, or action.
func shade(s operate.State) terminal.Styled {
	styled := terminal.Styled{Style: terminal.Yellow, Text: string(s)}
	switch {
	case s == operate.StateFresh:
		styled.Style = terminal.Green
	case s == operate.StateDead || s.Wrong():
		styled.Style = terminal.Red
	}
	return styled
}
