package sim

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/operate"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/internal/shard"
)

// Absurd is a document of which one version is far above all others, and the operator who resets it
// once that one is committed.
type Absurd struct {
	At    time.Duration // of the absurd version; the good ones come around it
	Looks time.Duration // when the operator begins to look
}

// The document of an Absurd: good versions are sent around the absurd one, and the operator takes
// versions from the middle one on again.
const (
	absurdID      = "absurd"
	goodVersions  = 5
	middleVersion = 3
	resetTries    = 60
)

func absurdBody(version string) queue.Outgoing {
	return queue.Outgoing{Body: fmt.Sprintf(`{"type":"doc.changed","subject":%q,"sequence":%q,"data":{"title":%q}}`,
		absurdID, version, version)}
}

// plague sends the versions, and plans the operator.
func (w *World) plague(a Absurd) {
	w.after(a.At, func() { w.publish(absurdBody(strings.Repeat("9", 40))) })
	for v := 1; v <= goodVersions; v++ {
		at := a.At + time.Duration(v-middleVersion)*w.dice.upTo(20*time.Second)
		w.after(max(at, 0), func() { w.publish(absurdBody(strconv.Itoa(v))) })
	}
	w.after(a.Looks, func() {
		w.operator++ // the world is not at rest before the operator has gone
		w.reset(resetTries)
	})
}

// reset runs the command until it is done, or the absurd version does not come any more. Then the
// source sends its good versions again: those that came meanwhile were stale.
func (w *World) reset(tries int) {
	doc := shard.DocID(w.cfg.DefaultCollection + "#" + absurdID)
	w.invoke("operator", patience, func(ctx context.Context, v *invocation) {
		o := w.operate(v)
		if k := w.table.row(doc).Committed; k == "" || !strings.HasPrefix(k.VersionText(), "999") {
			return // nothing absurd yet
		}
		order := operate.ResetOrder{Key: doc, To: strconv.Itoa(middleVersion), By: "the simulator"}
		_, _ = o.Reset(ctx, order) // what is busy is tried again
	}, func(error) {
		switch {
		case w.oracle.ledger(doc).forgot != "":
			// As the command says: a few seconds later. An eventual read may still show what was committed.
			w.after(w.drawn.StaleBy, func() {
				for v := 1; v <= goodVersions; v++ {
					w.publish(absurdBody(strconv.Itoa(v)))
				}
				w.operator--
			})
			return
		case tries > 0:
			w.after(5*time.Second, func() { w.reset(tries - 1) })
			return
		}
		w.operator--
	})
}

// resets takes a version out of the count that an operator gave up. Nobody may be writing then.
func (o *oracle) resets(l *ledger, old, row shard.Row) {
	for _, g := range l.grants {
		if g.alive() && !o.w.beyondGuard {
			o.violate("a reset meets no writer", fmt.Sprintf("%s: while %s %d holds a claim of %s", row.Doc, g.v.Name, g.v.ID,
				g.key))
		}
	}
	l.forgot, l.committed, l.resetAt = old.Committed, row.Committed, o.w.now
	l.marked = row.Dead == old.Committed
}

// doneBeforeReset reports whether an event was done by what an operator took back: it is that
// version itself, or an older one that an invocation judged just before.
func (o *oracle) doneBeforeReset(e *event) bool {
	l := o.ledger(e.doc)
	return l.forgot != "" && (e.key == l.forgot || e.key < l.forgot && o.w.now-l.resetAt < time.Minute)
}
