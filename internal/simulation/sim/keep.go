// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/operator/feed"
	"github.com/lullhq/lull/internal/pipeline/index"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// This file concerns documents that are published again with the same bytes. The file contains the
// engine's name for its index, and the bytes that the oracle knows.

// keeps reports whether any document may be committed without a write.
func (w *World) keeps() bool {
	for name, s := range w.cfg.Sinks {
		if s.Unchanged == sink.Keep && w.pipeNamed(name) != nil {
			return true
		}
	}
	return false
}

// Generation returns the name of the index.
func (r engineReader) Generation(ctx context.Context, of shard.Collection) (name string, err error) {
	err = r.v.request(ctx, fault.Search, 0, func() { name, _ = r.e.docs.Generation(background, of) })
	return name, err
}

// recordPublished records the bytes of the published events.
func (o *oracle) recordPublished(to feed.Route) {
	if !o.w.keeps() {
		return
	}
	for _, r := range to.Events {
		if plain, bad := sink.Plain([]byte(r.Event.Data)); r.Invalid == nil && bad == nil {
			for _, row := range o.w.cfg.RowsOf(r.Event.Doc) {
				o.bytes[version{row, r.Event.Key}] = string(plain)
			}
		}
	}
}

// shows reports whether the sink has the bytes of a version.
func (o *oracle) shows(doc shard.DocID, k shard.OrderKey) bool {
	stored, there, _ := o.w.pipeOf(doc).engine.docs.Get(background, doc) // fails only if its context ends
	want, known := o.bytes[version{doc, k}]
	return there && known && want == string(stored.Document)
}

// shown returns the newest version that the sink has. The shown version is the written version, or
// a newer version with the same bytes that was committed without a write.
func (l *ledger) shown() shard.OrderKey { return max(l.inSink, l.same) }

// kept checks that the sink has the bytes of a version that was committed without a write.
func (o *oracle) kept(doc shard.DocID, l *ledger, row shard.Row) {
	k := row.Committed
	if k < l.committed {
		o.violate("no old version becomes new", fmt.Sprintf("%s: %s was kept after %s", doc, k, l.committed))
	}
	if !o.shows(doc, k) {
		o.violate("what is committed is in the sink", fmt.Sprintf("%s: %s was kept, the sink holds other bytes, of %s",
			doc, k, l.inSink))
	}
	l.same, l.committed = k, max(l.committed, k)
	o.fresh(doc, k)
}

// loaded notes a COMMIT of a payload that was loaded under the lease and needed no write. At the
// end of the run, the sink's document is compared with the payload's object.
func (o *oracle) loaded(l *ledger, k shard.OrderKey) {
	if len(o.w.objects) > 0 && o.w.keeps() && l.inSinkOp == shard.Put {
		l.same = k
	}
}

// content returns the content of an object at this version. If documents are published again, two
// consecutive versions have the same content.
func (w *World) content(version int) int {
	if w.options.Upstream.Again {
		return version / 2
	}
	return version
}

// mixed runs some turns with other settings or with an older build, as in a deployment. The older
// build does not know content, and leaves its value as it is.
func (w *World) mixed(h *index.Handler) {
	if !w.options.Upstream.Again || !w.keeps() {
		return
	}
	if w.dice.chance(0.1) {
		h.Config = w.deployed(func(s *sink.Settings) { s.Unchanged = sink.Write })
		if w.dice.chance(0.5) {
			h.Shards = olderBuild{h.Shards}
		}
	}
}

// deployed returns the settings with a change of each sink.
func (w *World) deployed(change func(*sink.Settings)) *config.Config {
	cfg := *w.cfg
	cfg.Sinks = map[string]sink.Settings{}
	for name, s := range w.cfg.Sinks {
		change(&s)
		cfg.Sinks[name] = s
	}
	return &cfg
}

type olderBuild struct{ shard.Store }

func (s olderBuild) Write(ctx context.Context, w shard.Write) (shard.Row, error) {
	var update []shard.Action
	for _, a := range w.Update {
		if a.Attr != shard.AttrContent {
			update = append(update, a)
		}
	}
	w.Update = update
	return s.Store.Write(ctx, w)
}
