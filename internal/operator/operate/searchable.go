// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"errors"

	"github.com/lullhq/lull/internal/operator/searchability"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/searchable"
	"github.com/lullhq/lull/sink"
)

// Searchable says, for each sink of a document, whether a search finds a version of it. It asks the
// sinks that this program can read; see [searchability.Service].
func (o *documents) Searchable(ctx context.Context, q searchable.Question) (searchable.Answer, error) {
	s := searchability.Service{Shards: o.Shards, Config: o.Config, Clock: o.Clock, Engines: o}
	a, err := s.Answer(ctx, q)
	if wrong := (*searchability.Error)(nil); errors.As(err, &wrong) {
		return a, input(err)
	}
	return a, err
}

// Finds asks a sink what a search finds.
func (o *documents) Finds(ctx context.Context, name string, row shard.Row) (searchable.State, string, bool) {
	reader, err := o.reader(name)
	if err != nil {
		return searchable.Unknown, o.hinted(err).Error(), false
	}
	finder, ok := reader.(sink.Finder)
	if !ok {
		return searchable.Unknown, "the kind " + o.Config.Sinks[name].Kind + " does not say what a search finds", false
	}
	patient, cancel := context.WithTimeout(ctx, sinkPatience)
	defer cancel()
	found, there, err := finder.Found(patient, row.Doc.Plain())
	if err != nil {
		return searchable.Unknown, o.hinted(err).Error(), true
	}
	seen, err := shard.ParseOrderKey(found.Key)
	deleted := row.CommittedOp == shard.Delete
	switch {
	case there && err != nil:
		return searchable.Unknown, "the mark of the document cannot be read: " + err.Error(), true
	case deleted && there && seen <= row.Committed:
		return searchable.No, "a search still finds the deleted version " + found.Version +
			": the engine has not refreshed its index yet", true
	case !deleted && !there:
		return searchable.No, "no search finds the document yet: the engine has not refreshed its index", true
	case !deleted && seen < row.Committed:
		return o.same(patient, name, row, reader, found)
	}
	return searchable.Yes, "", true
}

// same says whether the older version that a search finds has the bytes of the committed version. A
// document that did not change is committed without a write (unchanged: keep), and its mark in the
// engine stays older (ADR 0034).
func (o *documents) same(ctx context.Context, name string, row shard.Row, r sink.Reader, found sink.Stored) (
	searchable.State, string, bool,
) {
	if row.Content != "" {
		s, there, err := r.Get(ctx, row.Doc.Plain())
		if err == nil && there && s.Key == found.Key {
			if b, err := o.looker(name).Bytes(ctx, row, s); err == nil && b == shard.BytesSame {
				return searchable.Yes, "", true
			}
		}
	}
	return searchable.No, "a search still finds version " + found.Version + ": the engine has not refreshed its index yet", true
}
