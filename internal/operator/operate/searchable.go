// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"fmt"
	"time"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// Searchability says, for each sink of a document, whether a search finds the committed version.
type Searchability struct {
	Key   shard.DocID    `json:"key"`
	Sinks []SearchableIn `json:"sinks"`
}

// SearchableIn is the answer for one sink.
type SearchableIn struct {
	Sink       string          `json:"sink"`
	Committed  string          `json:"committed"` // order key in print; empty if no version is committed
	Version    string          `json:"version"`   // the committed version, for people
	Operation  shard.Operation `json:"operation,omitempty"`
	Since      time.Time       `json:"committed_at,omitzero"`
	Searchable Answer          `json:"searchable"`
	Why        string          `json:"why,omitempty"` // why not, or why nothing is known
}

// Answer is yes, no or unknown.
type Answer string

// The answers.
const (
	Yes     Answer = "yes"
	No      Answer = "no"
	Unknown Answer = "unknown"
)

// Searchable reads the rows of a document, and then asks each sink what a search finds. The answer
// is yes only if the search finds the committed version or a newer one, or no longer finds a
// deleted document.
func (o *documents) Searchable(ctx context.Context, key shard.DocID) (Searchability, error) {
	ids, err := o.rows(key)
	if err != nil {
		return Searchability{}, err
	}
	rows, err := o.Shards.Read(ctx, ids, shard.Consistent)
	if err != nil {
		return Searchability{}, fmt.Errorf("read the rows of %s: %w", key, err)
	}
	s := Searchability{Key: key, Sinks: make([]SearchableIn, len(rows))}
	for i, row := range rows {
		s.Sinks[i] = o.searchable(ctx, ids[i], row)
	}
	return s, nil
}

func (o *documents) searchable(ctx context.Context, id shard.DocID, row shard.Row) SearchableIn {
	in := SearchableIn{
		Sink: o.Config.SinkOf(id), Committed: row.Committed.String(), Version: row.Committed.VersionText(),
		Operation: row.CommittedOp, Searchable: No,
	}
	if row.Committed == "" {
		in.Why = "no version is committed"
		return in
	}
	in.Since = row.LastWrite.Time()
	unknown := func(why string) SearchableIn {
		in.Searchable, in.Why = Unknown, why
		return in
	}
	reader, err := o.reader(in.Sink)
	if err != nil {
		return unknown(o.hinted(err).Error())
	}
	finder, ok := reader.(sink.Finder)
	if !ok {
		return unknown("the kind " + o.Config.Sinks[in.Sink].Kind + " does not say what a search finds")
	}
	patient, cancel := context.WithTimeout(ctx, sinkPatience)
	defer cancel()
	found, ok, err := finder.Found(patient, id.Plain())
	if err != nil {
		return unknown(o.hinted(err).Error())
	}
	seen, err := shard.ParseOrderKey(found.Key)
	switch {
	case ok && err != nil:
		return unknown("the mark of the document cannot be read: " + err.Error())
	case row.CommittedOp == shard.Delete && ok && seen <= row.Committed:
		in.Why = "a search still finds the deleted version " + found.Version + ": the engine has not refreshed its index yet"
	case row.CommittedOp != shard.Delete && !ok:
		in.Why = "no search finds the document yet: the engine has not refreshed its index"
	case row.CommittedOp != shard.Delete && seen < row.Committed:
		in.Why = "a search still finds version " + found.Version + ": the engine has not refreshed its index yet"
	default:
		in.Searchable = Yes
	}
	return in
}
