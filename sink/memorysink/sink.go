// SPDX-License-Identifier: Apache-2.0

package memorysink

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// Settings describe a search engine.
type Settings struct {
	Versions     bool          // refuse a write whose fence is smaller than the stored one
	ForgetAfter  time.Duration // how long the sink remembers the fence of a deleted document, 0 for always
	Latency      time.Duration // how long a request takes
	RememberOps  bool          // remember applied ops for [Sink.History]
	MaxDocuments int           // limit of one request, 0 for none: Write then makes several requests, one after another
	Generation   string        // the name of the first index; empty for a random name
}

// Answer is what a sink returns instead of doing its work.
type Answer struct {
	Outcome sink.Outcome
	Apply   bool // also apply the op: Outcome then shows only that the answer got lost
}

// Rule answers an op in place of the sink, for example to imitate an outage. If the rule returns
// false, the sink applies the op.
type Rule func(op sink.Op) (Answer, bool)

// Sink keeps documents in memory. For each op, the sink first uses a scripted answer, and then the
// rule. If neither gives an answer, the sink applies the op.
type Sink struct {
	clk clock.Clock
	set Settings

	mu      sync.Mutex
	docs    map[shard.DocID]held
	script  map[shard.DocID][]Answer
	request []Answer
	rule    Rule
	down    error
	history map[shard.DocID][]sink.Op
	counts  Counts
	made    int // how often the index was created again
	indices indices
}

// held is a stored document, or the fence of a deleted document.
type held struct {
	sink.Stored
	deleted bool
	at      time.Time
}

// Counts contains how many requests, ops and pings a sink got, and how many ops were Applied and
// Newer.
type Counts struct{ Requests, Ops, Applied, Newer, Pings int64 }

var (
	_ sink.Sink   = (*Sink)(nil)
	_ sink.Reader = (*Sink)(nil)
	_ sink.Marker = (*Sink)(nil)

	_ sink.Sampler = (*Sink)(nil)

	_ sink.Generator = (*Sink)(nil)
)

// New returns an empty sink.
func New(clk clock.Clock, set Settings) *Sink {
	set.Generation = cmp.Or(set.Generation, rand.Text())
	return &Sink{
		clk: clk, set: set,
		docs: map[shard.DocID]held{}, script: map[shard.DocID][]Answer{}, history: map[shard.DocID][]sink.Op{},
	}
}

// Generation returns the same text until [Sink.Recreate]. A copy made by [Sink.Copy] has the same
// generation. A real engine also keeps the name of an existing index when it restores a snapshot
// into that index.
func (s *Sink) Generation(ctx context.Context, _ shard.Collection) (string, error) {
	if err := s.wait(ctx); err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprint(s.set.Generation, "-", s.made), s.down
}

// Recreate deletes the index with all documents, and makes an empty index with the same name.
func (s *Sink) Recreate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.docs)
	s.made++
}

// Copy returns a new sink with the current documents. Tests use the copy as a snapshot to restore.
func (s *Sink) Copy() *Sink {
	c := New(s.clk, s.set)
	s.mu.Lock()
	defer s.mu.Unlock()
	c.docs, c.made = maps.Clone(s.docs), s.made
	return c
}

// Script queues answers for the next ops on a document. Each op uses one answer.
func (s *Sink) Script(doc shard.DocID, answers ...Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script[doc] = append(s.script[doc], answers...)
}

// ScriptRequests queues answers for the next requests. Each request uses one answer, which all its
// ops get.
func (s *Sink) ScriptRequests(answers ...Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.request = append(s.request, answers...)
}

// SetRule replaces the current rule; nil removes the rule.
func (s *Sink) SetRule(r Rule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rule = r
}

// SetLatency changes how long a request takes.
func (s *Sink) SetLatency(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set.Latency = d
}

// SetDown makes Ping fail with err, and every op Unknown without being applied. SetDown(nil) ends
// that.
func (s *Sink) SetDown(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = err
}

// Counts returns the numbers since the sink was created.
func (s *Sink) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts
}

// History returns the ops that were applied to a document, in order, if Settings.RememberOps is
// set.
func (s *Sink) History(doc shard.DocID) []sink.Op {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.history[doc])
}

// Ping waits the latency and fails while the sink is down.
func (s *Sink) Ping(ctx context.Context) error {
	if err := s.wait(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts.Pings++
	return s.down
}

// Write applies the ops after the latency. If ctx ends first, no op of the current request is
// applied, and later requests are not sent.
func (s *Sink) Write(ctx context.Context, ops []sink.Op) []sink.Outcome {
	out := make([]sink.Outcome, 0, len(ops))
	all := func(o sink.Outcome, part []sink.Op) []sink.Outcome {
		return slices.Repeat([]sink.Outcome{o}, len(part))
	}
	for part := range slices.Chunk(ops, cmp.Or(s.set.MaxDocuments, len(ops), 1)) {
		if ctx.Err() != nil {
			out = append(out, all(sink.Outcome{Kind: sink.Throttled, Apart: true, Reason: "not_sent"}, part)...)
		} else if err := s.wait(ctx); err != nil {
			out = append(out, all(sink.Outcome{Kind: sink.Unknown, Reason: reasonOf(err)}, part)...)
		} else {
			out = append(out, s.answer(part)...)
		}
	}
	return out
}

func reasonOf(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "time-out"
	}
	return "called off"
}

// answer handles one request and returns its outcomes.
func (s *Sink) answer(ops []sink.Op) []sink.Outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts.Requests++
	s.counts.Ops += int64(len(ops))
	var whole *Answer
	if len(s.request) > 0 {
		whole, s.request = &s.request[0], s.request[1:]
	}
	out := make([]sink.Outcome, len(ops))
	for i, op := range ops {
		a, scripted := s.scriptedAnswer(op, whole)
		if !scripted || a.Apply {
			out[i] = s.apply(op)
		}
		if scripted {
			out[i] = a.Outcome
		}
	}
	return out
}

// scriptedAnswer returns the answer that a test has set for an op, if there is one.
func (s *Sink) scriptedAnswer(op sink.Op, whole *Answer) (Answer, bool) {
	switch {
	case s.down != nil:
		return Answer{Outcome: sink.Outcome{Kind: sink.Unknown, Status: 503, Reason: "unavailable"}}, true
	case whole != nil:
		return *whole, true
	case len(s.script[op.Doc]) > 0:
		a := s.script[op.Doc][0]
		if s.script[op.Doc] = s.script[op.Doc][1:]; len(s.script[op.Doc]) == 0 {
			delete(s.script, op.Doc)
		}
		return a, true
	case s.rule != nil:
		return s.rule(op)
	}
	return Answer{}, false
}

// apply does with one op what a search engine does.
func (s *Sink) apply(op sink.Op) sink.Outcome {
	var document []byte
	if op.Kind == shard.Put {
		plain, fault := sink.Plain(op.Document)
		if fault != nil {
			return fault.Outcome()
		}
		document = plain
	}
	now := s.clk.Now()
	old, there := s.docs[op.Doc]
	if there && old.deleted && s.set.ForgetAfter > 0 && !now.Before(old.at.Add(s.set.ForgetAfter)) {
		delete(s.docs, op.Doc)
		old, there = held{}, false
	}
	if s.set.Versions && there && op.Fence < old.Fence {
		s.counts.Newer++
		return sink.Outcome{Kind: sink.Newer, Status: 409, Reason: "version_conflict"}
	}
	status := 200
	if op.Kind == shard.Delete && (!there || old.deleted) {
		status = 404
	}
	if op.Kind == shard.Delete && !s.set.Versions {
		delete(s.docs, op.Doc)
	} else {
		s.docs[op.Doc] = held{deleted: op.Kind == shard.Delete, at: now, Stored: op.Meta().Stored(op.Doc, document)}
	}
	s.counts.Applied++
	if s.set.RememberOps {
		s.history[op.Doc] = append(s.history[op.Doc], op)
	}
	return sink.Outcome{Kind: sink.Applied, Status: status}
}

// Sample returns the id of the first document of a collection.
func (s *Sink) Sample(_ context.Context, c shard.Collection) (first shard.DocID, found bool, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for doc, h := range s.docs {
		if s.set.Versions && !h.deleted && doc.Collection() == c && (!found || doc < first) {
			first, found = doc, true
		}
	}
	return first, found, nil
}

// wait sleeps for the latency of a request.
func (s *Sink) wait(ctx context.Context) error {
	s.mu.Lock()
	latency := s.set.Latency
	s.mu.Unlock()
	return s.clk.Sleep(ctx, latency)
}
