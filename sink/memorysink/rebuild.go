// SPDX-License-Identifier: Apache-2.0

package memorysink

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

var _ sink.Rebuilder = (*Sink)(nil)

// indices are a sink's indices that are not in use.
type indices struct {
	beside map[string]*Sink            // by name
	inUse  map[shard.Collection]string // by collection: the name of its index, if the name differs from the collection
}

// Beside returns the named index if it exists and is not in use, otherwise nil. Tests set rules on
// the returned index.
func (s *Sink) Beside(index string) *Sink {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.indices.beside[index]
}

// Into returns a sink that writes to the named index.
func (s *Sink) Into(c shard.Collection, index string) sink.Sink { return intoIndex{s, c, index} }

type intoIndex struct {
	*Sink
	c     shard.Collection
	index string
}

// Write writes to the index, even if the index is now in use.
func (i intoIndex) Write(ctx context.Context, ops []sink.Op) []sink.Outcome {
	if at := i.holderOf(i.index); at != nil {
		return at.Write(ctx, ops)
	}
	return slices.Repeat([]sink.Outcome{{Kind: sink.Configuration, Status: 404, Reason: "index_missing"}}, len(ops))
}

// holderOf returns the sink that has the documents of an index, or nil if the index does not exist.
func (s *Sink) holderOf(index string) *Sink {
	s.mu.Lock()
	defer s.mu.Unlock()
	if beside := s.indices.beside[index]; beside != nil {
		return beside
	}
	for _, name := range s.indices.inUse {
		if name == index {
			return s
		}
	}
	for doc := range s.docs {
		if c := doc.Collection(); string(c) == index && s.indices.inUse[c] == "" {
			return s
		}
	}
	return nil
}

// Standing returns the index of the collection that is in use.
func (s *Sink) Standing(ctx context.Context, c shard.Collection) (sink.Standing, error) {
	at := sink.Standing{Name: string(c), Index: string(c), Alias: true}
	if err := ctx.Err(); err != nil {
		return at, fmt.Errorf("find the index: %w", err)
	}
	if !s.set.Versions {
		return at, fmt.Errorf("a sink without versions %w", sink.ErrUnfit)
	}
	at.Documents = int64(len(s.snapshot(c)))
	s.mu.Lock()
	defer s.mu.Unlock()
	at.Index = cmp.Or(s.indices.inUse[c], at.Index)
	return at, nil
}

// Create makes an index. An index in memory has neither settings nor a mapping.
func (s *Sink) Create(ctx context.Context, n sink.NewIndex) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("make the index: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.indices.beside == nil {
		s.indices = indices{beside: map[string]*Sink{}, inUse: map[shard.Collection]string{}}
	}
	if s.indices.inUse[n.Collection] == "" {
		s.indices.inUse[n.Collection] = n.Like
	}
	if s.indices.beside[n.Name] == nil && s.indices.inUse[n.Collection] != n.Name {
		s.indices.beside[n.Name] = New(s.clk, s.set)
	}
	return nil
}

// Fill copies all documents before it returns.
func (s *Sink) Fill(ctx context.Context, c sink.Fill) (done sink.Filled, err error) {
	if c.Started != nil {
		if err := c.Started("copy"); err != nil {
			return done, err
		}
	}
	for place := ""; ; {
		docs, next, err := s.Walk(ctx, c.From, place)
		if err != nil {
			return done, err
		}
		for _, d := range docs {
			out, err := s.Transfer(ctx, s.collectionIn(c.From), c.From, c.Into, []string{d.ID})
			if err != nil {
				return done, err
			}
			switch out[0].Kind {
			case sink.Applied, sink.Newer:
			case sink.Rejected, sink.Refused:
				done.Refused = append(done.Refused, sink.RefusedCopy{ID: d.ID, Reason: out[0].Reason})
			default:
				return done, fmt.Errorf("copy: %s: %s", out[0].Kind, out[0].Reason)
			}
		}
		if place = next; place == "" {
			return done, nil
		}
	}
}

// StopFill does nothing, because no copy runs in the background.
func (s *Sink) StopFill(ctx context.Context, _ string) error { return ctx.Err() }

// Walk returns three documents at a time, in the order of their ids. Pages are so small that tests
// see several of them. A place is the last id of a page.
func (s *Sink) Walk(ctx context.Context, index, place string) (docs []sink.Versioned, next string, err error) {
	at := s.holderOf(index)
	if at == nil {
		return nil, "", nil
	}
	if err := cmp.Or(ctx.Err(), s.wait(ctx)); err != nil {
		return nil, "", fmt.Errorf("walk: %w", err)
	}
	for _, d := range at.snapshot("") {
		if at == s && d.Doc.Collection() != s.collectionIn(index) || place != "" && d.Doc.ID() <= place {
			continue
		}
		if docs = append(docs, sink.Versioned{ID: d.Doc.ID(), Version: int64(d.Fence)}); len(docs) == 3 {
			return docs, d.Doc.ID(), nil
		}
	}
	return docs, "", nil
}

// VersionsOf returns the fences of documents, which are their versions.
func (s *Sink) VersionsOf(ctx context.Context, index string, ids []string) ([]int64, error) {
	if err := cmp.Or(ctx.Err(), s.wait(ctx)); err != nil {
		return nil, fmt.Errorf("read versions: %w", err)
	}
	out := slices.Repeat([]int64{-1}, len(ids))
	at, prefix := s.holderOf(index), string(s.collectionIn(index))+"#"
	if at == nil {
		return out, nil
	}
	at.mu.Lock()
	defer at.mu.Unlock()
	for i, id := range ids {
		if d, ok := at.docs[shard.DocID(prefix+id)]; ok && !d.deleted {
			out[i] = int64(d.Fence)
		}
	}
	return out, nil
}

// collectionIn returns the collection of an index, in use or not. The name of the index begins with
// the name of the collection.
func (s *Sink) collectionIn(index string) shard.Collection {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c, name := range s.indices.inUse {
		if rest, ok := strings.CutPrefix(index, string(c)+"."); name == index || ok && rest != "" {
			return c
		}
	}
	return shard.Collection(index)
}

// Transfer copies documents from one index to another.
func (s *Sink) Transfer(ctx context.Context, c shard.Collection, from, into string, ids []string) ([]sink.Outcome,
	error,
) {
	out := slices.Repeat([]sink.Outcome{{Kind: sink.Applied}}, len(ids))
	a := s.holderOf(from)
	for i, id := range ids {
		doc := shard.DocID(string(c) + "#" + id)
		if a == nil {
			break
		}
		d, found, err := a.Get(ctx, doc)
		if err != nil {
			return nil, err
		}
		if !found {
			continue
		}
		key, err := shard.ParseOrderKey(d.Key)
		if err != nil {
			return nil, fmt.Errorf("transfer %s: %w", doc, err)
		}
		out[i] = s.Into(c, into).Write(ctx, []sink.Op{{
			Doc: doc, Kind: shard.Put, Fence: d.Fence, Key: key, Version: d.Version, At: d.Indexed,
			Document: d.Document,
		}})[0]
	}
	return out, nil
}

// Erase deletes documents of an index, with the given versions as fences.
func (s *Sink) Erase(ctx context.Context, c shard.Collection, index string, docs []sink.Versioned) []sink.Outcome {
	ops := make([]sink.Op, len(docs))
	for i, d := range docs {
		ops[i] = sink.Op{
			Doc: shard.DocID(string(c) + "#" + d.ID), Kind: shard.Delete, Fence: shard.Fence(d.Version),
		}
	}
	return s.Into(c, index).Write(ctx, ops)
}

// Switch replaces the documents of a collection by those of the index.
func (s *Sink) Switch(ctx context.Context, c shard.Collection, from, into string) error {
	if err := cmp.Or(ctx.Err(), s.wait(ctx)); err != nil {
		return fmt.Errorf("switch: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.indices.beside[into]
	switch {
	case s.indices.inUse[c] == into:
		return nil
	case next == nil || s.indices.inUse[c] != from:
		return fmt.Errorf("switch: there is no index %s to replace %s", into, from)
	}
	next.mu.Lock()
	defer next.mu.Unlock()
	old := New(s.clk, s.set)
	for doc, d := range s.docs {
		if doc.Collection() == c {
			old.docs[doc] = d
			delete(s.docs, doc)
		}
	}
	maps.Copy(s.docs, next.docs)
	delete(s.indices.beside, into)
	s.indices.beside[from], s.indices.inUse[c] = old, into
	s.made++ // the collection has another index now, so the generation changes
	return nil
}

// Settle does nothing, because Switch leaves nothing to remove.
func (s *Sink) Settle(ctx context.Context, _ string) error { return ctx.Err() }

// Earlier returns the indices of the collection that are not in use, the newest first.
func (s *Sink) Earlier(ctx context.Context, c shard.Collection) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for name := range s.indices.beside {
		if strings.HasPrefix(name, string(c)+".") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	slices.Reverse(names)
	return names, ctx.Err()
}

// Drop deletes an index. If the index is in use, readers find no documents after Drop.
func (s *Sink) Drop(ctx context.Context, index string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("drop: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.indices.beside, index)
	for c, name := range s.indices.inUse {
		if name == index {
			maps.DeleteFunc(s.docs, func(doc shard.DocID, _ held) bool { return doc.Collection() == c })
		}
	}
	return nil
}
