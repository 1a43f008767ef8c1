// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/fanout"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/seam/schedule"
	"github.com/lullhq/lull/internal/shard"
)

// GroupQuery asks for the documents of a message group, a tenant.
type GroupQuery struct {
	Group  string `json:"group"`
	Cursor string `json:"cursor,omitempty"` // Next of the page before; empty for the first page
}

// GroupPage is a page of the documents of a group. A key may be in several pages.
type GroupPage struct {
	Keys []shard.DocID `json:"keys"` // without sinks
	// Letters are dead letters of the group that cannot be decoded, so that their documents are
	// unknown.
	Letters []string `json:"letters,omitempty"`
	// Unread are the messages that cannot be read. They may belong to the group.
	Unread PlaceCount `json:"unread,omitzero"`
	Next   string     `json:"next,omitempty"` // the cursor of the next page, empty at the end
}

// Empty reports whether nothing belongs to the group.
func (p GroupPage) Empty() bool { return len(p.Keys)+len(p.Letters)+p.Unread.Found == 0 }

// groupPage is how many rows one page reads.
const groupPage = 1000

// groups finds the documents of message groups.
type groups struct {
	Dead     deadletter.Store
	Schedule schedule.Store
	Scanner  shard.Scanner
	Parallel fanout.Runner // nil for goroutines
}

// InGroup finds the documents of a message group by their rows, which needs a scan of the table.
// The first page also has the documents of scheduled events and dead letters whose messages name
// the group. A document that did not change for lifecycle.rowRetention has no row, and is not
// found.
func (o *groups) InGroup(ctx context.Context, q GroupQuery) (page GroupPage, err error) {
	page.Keys = []shard.DocID{}
	err = want(queue.ValidGroup(q.Group), "group %q: want 1 to 128 letters, digits or punctuation marks of ASCII", q.Group)
	if err == nil && q.Cursor == "" {
		err = o.messagesInGroup(ctx, q.Group, &page)
	}
	if err != nil {
		return page, err
	}
	rows, next, err := o.Scanner.Scan(ctx, 0, 1, q.Cursor, groupPage)
	if err != nil {
		return page, fmt.Errorf("scan the table: %w", err)
	}
	page.Next = next
	for _, r := range rows {
		if r.Group == q.Group && r.Doc.IsDocument() {
			page.Keys = append(page.Keys, r.Doc.Plain())
		}
	}
	slices.Sort(page.Keys)
	page.Keys = slices.Compact(page.Keys)
	return page, nil
}

// letterPages calls f with every dead letter, a page at a time, so that the memory of each page is
// freed.
func (o *groups) letterPages(ctx context.Context, f func([]deadletter.Facts) error) error {
	for cursor := ""; ; {
		page, next, err := o.Dead.List(ctx, deadletter.Filter{}, cursor, maxForget)
		if err == nil {
			err = f(page)
		}
		if err != nil {
			return fmt.Errorf("look into dead letters: %w", err)
		}
		if cursor = next; cursor == "" {
			return nil
		}
	}
}

// maxRemains is how many lines name things that cannot be read.
const maxRemains = 20

// remains counts one more thing that is not removed. text names the thing, and says what to do.
func (c *PlaceCount) remains(text string) {
	c.Found++
	switch n := len(c.Remains); {
	case n < maxRemains:
		c.Remains = append(c.Remains, text)
	case n == maxRemains:
		c.Remains = append(c.Remains, "there is more: ask again after these")
	}
}

// messagesInGroup adds the documents of the group's scheduled events and dead letters.
func (o *groups) messagesInGroup(ctx context.Context, group string, page *GroupPage) error {
	err := o.letterPages(ctx, func(facts []deadletter.Facts) error {
		ours := make([]bool, len(facts))
		broken, err := readEach(ctx, o.Parallel, len(facts), func(i int) error {
			l, there, err := o.Dead.Get(ctx, facts[i].ID)
			ours[i] = there && queue.Group(l.Attributes) == group
			return err
		})
		for i, f := range facts {
			switch {
			case broken[i] != nil:
				page.Unread.remains(unreadLetter(f))
			case ours[i] && f.Doc == "":
				page.Letters = append(page.Letters, f.ID)
			case ours[i]:
				page.Keys = append(page.Keys, f.Doc.Plain())
			}
		}
		return err
	})
	for cursor := ""; err == nil; {
		var items []schedule.Item
		if items, cursor, err = o.Schedule.List(ctx, "", cursor, pageSize); err != nil {
			return fmt.Errorf("list scheduled events: %w", err)
		}
		ours, gone := make([]bool, len(items)), make([]bool, len(items))
		var broken []error
		broken, err = readEach(ctx, o.Parallel, len(items), func(i int) error {
			whole, there, err := o.Schedule.Get(ctx, items[i].ID)
			ours[i], gone[i] = there && queue.Group(whole.Attributes) == group, there && whole.Unread != nil
			return err
		})
		for i, it := range items {
			switch {
			case broken[i] != nil:
				page.Unread.remains(unreadScheduled(it))
			case gone[i]:
				page.Unread.remains(fmt.Sprintf("the message of the scheduled event of %s is gone: `lull cancel --scheduled "+
					"'%s'`, and publish the document again", it.Doc, it.Doc))
			case ours[i]:
				page.Keys = append(page.Keys, it.Doc.Plain())
			}
		}
		if cursor == "" {
			break
		}
	}
	return err
}

// Group reads all pages of a group. The keys are sorted, and each is listed once.
func Group(ctx context.Context, api API, group string) (all GroupPage, err error) {
	for q := (GroupQuery{Group: group}); ; {
		page, err := api.InGroup(ctx, q)
		if err != nil {
			return all, err
		}
		all.Keys = append(all.Keys, page.Keys...)
		if q.Cursor == "" { // only the first page has these
			all.Letters, all.Unread = page.Letters, page.Unread
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			slices.Sort(all.Keys)
			all.Keys = slices.Compact(all.Keys)
			return all, nil
		}
	}
}

// CancelGroup cancels the pending version or the next scheduled event of each document of a group.
// Even with an error, it returns the dead letters of what it has cancelled. The error names
// messages that cannot be read, because they may belong to the group. It is ErrNotFound if there is
// nothing to cancel.
func CancelGroup(ctx context.Context, api API, group string, o Cancellation) (done []Letter, err error) {
	all, err := Group(ctx, api, group)
	if err != nil {
		return nil, err
	}
	var failed []error
	for _, unread := range all.Unread.Remains {
		failed = append(failed, errors.New(unread))
	}
	for _, key := range all.Keys {
		o.Key = key
		l, err := api.Cancel(ctx, o)
		switch {
		case err == nil:
			done = append(done, l)
		case ctx.Err() != nil:
			return done, ctx.Err()
		case !errors.Is(err, ErrNotFound):
			failed = append(failed, err)
		}
	}
	if len(done)+len(failed) == 0 {
		return nil, fmt.Errorf("group %s has nothing to cancel: %w", group, ErrNotFound)
	}
	return done, errors.Join(failed...)
}
