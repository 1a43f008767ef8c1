// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// documents reads documents from the sinks.
type documents struct{ engines }

// Document is a document as its sink has it.
type Document struct {
	ID         string          `json:"id"`
	Collection string          `json:"collection"`
	Sink       string          `json:"sink,omitempty"` // the sink that has the document; empty if the question names it
	Version    string          `json:"version"`
	OrderKey   string          `json:"order_key"`
	Fence      int64           `json:"fence"`
	Indexed    time.Time       `json:"indexed_at,omitzero"`
	Document   json.RawMessage `json:"document"`
}

// Get reads a document back.
func (o *documents) Get(ctx context.Context, key shard.DocID) (Document, error) {
	if _, err := o.rows(key); err != nil {
		return Document{}, err
	}
	name := o.Config.SinkOf(key)
	r, err := o.reader(name)
	switch {
	case errors.Is(err, ErrWriteOnly):
		return Document{}, inputf("sink %s is a %s: %w", name, o.Config.Sinks[name].Kind, ErrWriteOnly)
	case err != nil:
		return Document{}, inputf("sink %s of collection %s cannot be read from here", name, key.Collection())
	}
	s, found, err := r.Get(ctx, key.Plain())
	switch {
	case err != nil:
		return Document{}, fmt.Errorf("get %s: %w", key, err)
	case !found:
		return Document{}, fmt.Errorf("%s: %w in sink %s%s", key, ErrNotFound, name, o.missing(ctx, o.row(key)))
	}
	return asDocument(s, name), nil
}

// missing says why the sink does not have the document of a row, as far as the row tells it. It is
// empty if the row cannot be read.
func (o *documents) missing(ctx context.Context, row shard.DocID) string {
	rows, err := o.Shards.Read(ctx, []shard.DocID{row}, shard.Eventual)
	if err != nil || !rows[0].Exists() {
		if unknown := o.unknown(row.Collection()); unknown != "" {
			return ": " + unknown
		}
		return ""
	}
	r := rows[0]
	switch (&evidence{row: r, now: shard.MicrosOf(o.Clock.Now())}).listed() {
	case StateWaiting, StateClaimed:
		return ": version " + r.Pending.VersionText() + " is on its way"
	case StateForgotten:
		return ": it was forgotten"
	case StateFresh:
		if r.CommittedOp == shard.Delete {
			return ": deleted by version " + r.Committed.VersionText()
		}
	}
	return ": `lull explain` says why"
}

// asDocument converts a document of a sink to the form that people see.
func asDocument(s sink.Stored, name string) Document {
	return Document{
		ID: s.Doc.ID(), Collection: string(s.Doc.Collection()), Sink: name, Version: s.Version, OrderKey: s.Key,
		Fence: int64(s.Fence), Indexed: s.Indexed, Document: s.Document,
	}
}

// The bounds of a search.
const (
	hits       = 10 // without a limit
	maxHits    = 1000
	maxText    = 1000 // bytes
	maxPathLen = 1024 // bytes of a field's name
)

// Search is a plain search.
type Search struct {
	Text       string           `json:"text"`
	Field      string           `json:"field,omitempty"`      // with dots between nested names; empty for all
	Collection shard.Collection `json:"collection,omitempty"` // empty for all
	Prefix     bool             `json:"prefix,omitempty"`     // the last word may be the beginning of a word
	Limit      int              `json:"limit,omitempty"`      // hits of each sink, 1 to 1,000; 0 is 10
}

// Found is the result of a search. First come the best hits of all sinks, then the second best
// hits, and so on.
type Found struct {
	Hits []Document `json:"hits"`
	More bool       `json:"more,omitempty"` // there are more hits than the limit
	// Notes name the sinks that were not searched, and why.
	Notes []string `json:"notes,omitempty"`
}

// Search asks every sink that can hold the collection, and takes the best hits of the sinks in
// turn.
func (o *documents) Search(ctx context.Context, q Search) (Found, error) {
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
	for _, name := range o.sinksToSearch(q.Collection) {
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

// sinksToSearch returns the first sink of the collection, or all sinks if the collection is empty.
func (o *documents) sinksToSearch(c shard.Collection) []string {
	if c != "" {
		return o.Config.SinksFor(string(c))[:1]
	}
	return o.sinks()
}

func (o *documents) searchIn(ctx context.Context, name string, q sink.Query) (docs []Document, err error) {
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
