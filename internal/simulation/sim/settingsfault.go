// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// settingsFault is a period in which the engine's settings are wrong. The engine's answers may seem
// to blame a document, but no document is the cause.
type settingsFault struct {
	from, to time.Duration
	says     sink.Outcome
	deletes  bool // the fault affects deletes
	puts     bool
}

// misjudged begins the reasons that an engine gives both for wrong settings and for wrong
// documents.
const misjudged = "illegal_argument_exception: settings"

// settingsFaults are answers of engines with wrong settings. Some have known texts, and some seem
// to blame the document.
var settingsFaults = []settingsFault{
	{
		says: sink.Outcome{Kind: sink.Configuration, Status: 404, Apart: true, Reason: "index_not_found_exception"},
		puts: true, deletes: true,
	},
	{says: sink.Outcome{Kind: sink.Configuration, Apart: true, Reason: "index_missing"}, deletes: true},
	{
		says: sink.Outcome{Kind: sink.Configuration, Status: 403, Reason: "security_exception"},
		puts: true, deletes: true,
	},
	{says: sink.Outcome{Kind: sink.Rejected, Status: 400, Apart: true, Reason: misjudged}, puts: true},
	{says: sink.Outcome{Kind: sink.Refused, Status: 400, Reason: misjudged}, puts: true, deletes: true},
}

// drawAnswers picks additional random answers of an engine. drawAnswers has separate dice, so that
// the runs of older seeds do not change.
func (w *World) drawAnswers() {
	d := newDice(w.options.Seed, 0x616e7377)
	if d.chance(0.2) {
		w.rates.NotSent = 0.2 * d.Float64()
	}
	if until := w.options.Upstream.Calm; d.chance(0.25) {
		f := oneOf(d, settingsFaults...)
		f.from = d.upTo(until)
		f.to = f.from + time.Duration(d.logUniform(5, max((until-f.from).Seconds(), 10))*float64(time.Second))
		w.settings = &f
	}
}

// applies reports whether the fault affects an operation now.
func (f *settingsFault) applies(now time.Duration, op sink.Op) bool {
	if f == nil || now < f.from || now >= f.to {
		return false
	}
	return f.puts && op.Kind == shard.Put || f.deletes && op.Kind == shard.Delete
}

// checkDeadLetter checks that a document that became a dead letter was the cause. The settings'
// fault must have lasted for the whole invocation, because lull cannot notice a shorter one. lull
// also needs a document that the index accepted before. The accepted document is the same document
// if its row still says so, or any document if the sink has versions.
func (o *oracle) checkDeadLetter(n journal.Note) {
	f, turn := o.w.settings, o.w.cfg.Index.Timeout+2*o.w.cfg.Index.Guard
	if !strings.Contains(n.Detail, misjudged) || f == nil || o.w.now >= f.to || o.w.now < f.from+turn {
		return
	}
	l, p := o.ledger(n.Doc), o.w.pipeOf(n.Doc)
	accepted := o.w.table.row(n.Doc).CommittedOp == shard.Put && l.committed != "" && l.shown() == l.committed &&
		l.inSinkOp == shard.Put && !l.open
	if p.versions && !accepted {
		for doc, other := range o.docs {
			same := doc.Collection() == n.Doc.Collection() && doc.Sink() == n.Doc.Sink()
			if same && p.engine.applied[doc] > o.w.now-turn || same && other.open {
				return // the document changes while index asks about it
			}
			accepted = accepted || same && other.inSinkOp == shard.Put && other.inSink != ""
		}
	}
	if accepted {
		o.violate("a document becomes a dead letter only because of its own fault",
			fmt.Sprintf("%s %s: %s", n.Doc, n.Key, n.Detail))
	}
}

// Get reads a document from the engine.
func (c engineClient) Get(ctx context.Context, doc shard.DocID) (stored sink.Stored, there bool, err error) {
	if stored, there, err = c.engineReader.Get(ctx, doc); err == nil {
		c.v.copies[c.e.row(doc)] = stored.Fence
	}
	return stored, there, err
}

// Sample returns the id of some document.
func (c engineClient) Sample(ctx context.Context, of shard.Collection) (doc shard.DocID, found bool, err error) {
	err = c.v.request(ctx, fault.Search, 0, func() { doc, found, _ = c.e.docs.Sample(background, of) })
	return doc.Plain(), found && err == nil, err
}
