package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// The bounds of a search.
const (
	hits       = 10 // without a limit
	maxHits    = 1000
	maxText    = 1000 // bytes
	maxPathLen = 1024 // bytes of a field's name
)

// Search asks every sink that can hold the collection, and takes the best hits of the sinks in
// turn.
func (o *Operator) Search(ctx context.Context, q Search) (Found, error) {
	found := Found{Hits: []Document{}}
	limit, wrong := limited(q.Limit, hits, maxHits)
	err := cmp.Or(
		want(strings.TrimSpace(q.Text) != "", "text: say what to search for"),
		want(len(q.Text) <= maxText, "text: %d bytes: want %d at most", len(q.Text), maxText),
		want(len(q.Field) <= maxPathLen, "field: %d bytes: want %d at most", len(q.Field), maxPathLen),
		wrong, filtered(q.Collection))
	if err != nil {
		return found, err
	}
	var lists [][]Document
	seen := map[shard.DocID]bool{} // a document in several sinks is listed once
	var failed []error
	for _, name := range o.searched(q.Collection) {
		list, err := o.searchIn(ctx, name, sink.Query{
			Text: q.Text, Field: q.Field, Collection: q.Collection, Prefix: q.Prefix, Limit: limit + 1,
		})
		if err != nil {
			failed = append(failed, err)
			found.Notes = append(found.Notes, err.Error())
			continue
		}
		lists = append(lists, list)
	}
	if len(lists) == 0 && len(failed) > 0 {
		return found, errors.Join(failed...)
	}
	for i := range limit + 1 {
		for _, list := range lists {
			if i < len(list) && !seen[list[i].key()] {
				seen[list[i].key()] = true
				found.Hits = append(found.Hits, list[i])
			}
		}
	}
	if len(found.Hits) > limit {
		found.Hits, found.More = found.Hits[:limit], true
	}
	return found, nil
}

func (d Document) key() shard.DocID { return shard.DocID(d.Collection + "#" + d.ID) }

// searched returns the sinks to search: the first sink of the collection, or all sinks if it is
// empty.
func (o *Operator) searched(c shard.Collection) []string {
	if c != "" {
		return o.Config.SinksFor(string(c))[:1]
	}
	return o.sinks()
}

func (o *Operator) searchIn(ctx context.Context, name string, q sink.Query) (docs []Document, err error) {
	r, err := o.reader(name)
	var list []sink.Stored
	if err == nil {
		list, err = r.Search(ctx, q)
	}
	if err != nil {
		return nil, fmt.Errorf("sink %s was not searched: %w", name, o.hinted(err))
	}
	for _, s := range list {
		docs = append(docs, asDocument(s, name))
	}
	return docs, nil
}
