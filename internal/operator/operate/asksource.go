// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/operator/export"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

// SourceOrder names documents of a collection, to compare with what their source shows.
type SourceOrder struct {
	Collection shard.Collection `json:"collection"`
	Sink       string           `json:"sink,omitempty"` // the sink, if the collection has several
	// Keys are at most MaxAsked documents. Without keys, AskSource only says whether the source can
	// be asked.
	Keys []shard.DocID `json:"keys,omitempty"`
	// Known are versions that the source has shown before, by key. A document that is in Known is
	// compared with its version, and the source is not asked.
	Known    map[shard.DocID]string `json:"known,omitempty"`
	Versions bool                   `json:"versions,omitempty"` // compare only versions, and no content
}

// SourceAnswers has one answer for each key of the order.
type SourceAnswers struct {
	Source string `json:"source"`
	// Every is how often the settings verify the collection; 0 for never.
	Every     time.Duration  `json:"every_ns,omitempty"`
	Documents []SourceAnswer `json:"documents"`
}

// SourceAnswer is what the source says about a document.
type SourceAnswer struct {
	Key     shard.DocID `json:"key"`
	Version string      `json:"version,omitempty"` // the version that the source shows, or else lull's version
	// State is same, newer, in_motion, missing, older, changed, undone, other_class, orphan,
	// invalid, or silent. It is silent if the source gives no answer now.
	State string `json:"state"`
	Drift bool   `json:"drift,omitempty"` // lull differs from the source
	Why   string `json:"why,omitempty"`   // why the state is invalid or silent
	// Ahead says that lull has not committed what the source shows. Its event may be on the way.
	Ahead bool `json:"ahead,omitempty"`
	// Shown says that Version is the version that the source shows.
	Shown      bool           `json:"shown,omitempty"`
	Touch      queue.Outgoing `json:"touch,omitzero"`           // the message that makes lull fetch the document again
	Copy       ReconcileCopy  `json:"copy,omitzero"`            // the copy in the sink
	RetryAfter time.Duration  `json:"retry_after_ns,omitempty"` // the wait that a silent source asks for
}

// MaxAsked is the number of documents of a SourceOrder.
const MaxAsked = 100

// AskSource compares documents with what their source shows. It only reads.
func (o *comparer) AskSource(ctx context.Context, r SourceOrder) (SourceAnswers, error) {
	sink, err := o.auditedSink(r.Collection, r.Sink)
	err = cmp.Or(err, want(len(r.Keys) <= MaxAsked, "keys: %d, at most %d in one order", len(r.Keys), MaxAsked))
	if err != nil {
		return SourceAnswers{}, err
	}
	name, err := o.asked(r.Collection)
	if err != nil {
		return SourceAnswers{}, err
	}
	a := export.Asker{
		Looker: o.looker(sink), Sources: o.Sources.At(sink), Collection: r.Collection, Source: name, Fetch: o.Fetch,
		// The document in the sink has fields that an enricher added, and the source does not have
		// them.
		Versions: r.Versions || o.Config.Collections[string(r.Collection)].Enrich != nil,
	}
	if err := a.Writes(); err != nil {
		return SourceAnswers{}, inputf("collection %s: lull cannot write a message of source %s that names one document: "+
			"compare with an export: %w", r.Collection, name, err)
	}
	for _, key := range r.Keys {
		if key.Collection() != r.Collection || o.Config.SinkOf(key) != sink {
			return SourceAnswers{}, inputf("keys: %s is not of collection %s in sink %s", key, r.Collection, sink)
		}
		if err := o.whole(key); err != nil {
			return SourceAnswers{}, err
		}
	}
	done := SourceAnswers{Source: name, Documents: []SourceAnswer{}}
	if v := o.Config.Collections[string(r.Collection)].Verify; v != nil {
		done.Every = v.Every
	}
	if len(r.Keys) == 0 {
		return done, nil
	}
	answers, err := a.Ask(ctx, r.Keys, r.Known)
	for _, one := range answers {
		done.Documents = append(done.Documents, asSourceAnswer(one))
	}
	return done, o.moving(ctx, sink, err)
}

func asSourceAnswer(a export.Answer) SourceAnswer {
	s := SourceAnswer{
		Key: a.Doc, Version: a.Version, State: string(a.State), Drift: a.State.Drift(), Why: a.Why, Ahead: a.Ahead,
		Shown: a.Shown, Touch: a.Touch,
		Copy: ReconcileCopy{Key: a.Doc, OrderKey: a.Copy.Key.String(), Fence: int64(a.Copy.Fence)},
	}
	if a.Away != nil {
		s.RetryAfter = a.Away.RetryAfter
	}
	return s
}

// asked returns the source that has the documents of a collection. It refuses a collection of
// several sources, because lull cannot know which of them has a document.
func (o *comparer) asked(c shard.Collection) (string, error) {
	from := o.Config.Writers(string(c))
	switch {
	case len(from) > 1:
		return "", inputf("collection %s: the events of several sources may be of this collection (%s): let only one "+
			"source name it, see sources.<name>.collections", c, strings.Join(from, ", "))
	case len(from) == 0 || o.Config.Sources[from[0]].Fetch == nil:
		return "", inputf("collection %s: it has no source with the setting fetch: compare with an export", c)
	case o.Fetch == nil:
		return "", inputf("collection %s: this program cannot ask source %s", c, from[0])
	}
	return from[0], nil
}
