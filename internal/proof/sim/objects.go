package sim

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	docevent "github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/deadletter"
	"github.com/lullhq/lull/internal/local/fault"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/source"
)

// place is the bucket of the objects that events refer to, where the settings allow it.
const place = "s3://open/"

// Object is a change of what a reference shows: the upstream changes its object before it sends the
// event.
type Object struct {
	At      time.Duration
	Doc     string // its id
	Version int
	Removed bool
	Ref     string // where it is; empty for the place of its id
}

// ref is where the object is.
func (o Object) ref() string { return cmp.Or(o.Ref, place+o.Doc) }

// refers reports whether events may refer to objects.
func refers(sources *source.Set) bool {
	r := sources.Decode(queue.Message{Body: touched("a", 1, ""), Sent: epoch})
	return r[0].Invalid == nil
}

// touched is an event whose payload is its document's object.
func touched(id string, version int, extra string) string {
	return fmt.Sprintf(`{"type":"doc.touched","subject":%q,"sequence":"%d"%s,"dataref":%q}`, id, version, extra, place+id)
}

// change makes an object what its newest version says, in whichever order the changes come.
func (w *World) change(o Object) {
	if o.Version >= w.objects[o.ref()].Version {
		w.objects[o.ref()] = o
	}
}

// objectClient is the bucket as one invocation reads it.
type objectClient struct{ v *invocation }

// Load shows the newest version of an object. It fails as any request to S3 does.
func (c objectClient) Load(ctx context.Context, ref string) (body []byte, err error) {
	w := c.v.w
	if w.dice.chance(w.rates.IOFailBefore) {
		return nil, fault.ErrInjected
	}
	failed := c.v.request(ctx, fault.Bucket, 0, func() {
		o, known := w.objects[ref]
		if !known || o.Removed {
			w.missing++
			err = &docevent.Invalid{
				Reason: deadletter.Payload, Field: "dataref", Problem: "the object is not there", Missing: true,
			}
			return
		}
		body = fmt.Appendf(nil, `{"state":%d}`, w.content(o.Version))
	})
	if failed != nil {
		return nil, failed
	}
	return body, err
}

// contents sees what an applied write put into the sink: never an older content of its object after
// a newer one.
func (o *oracle) contents(op sink.Op, l *ledger) {
	var shown struct{ State int }
	if len(o.w.objects) == 0 || op.Kind == shard.Delete || json.Unmarshal(op.Document, &shown) != nil {
		return
	}
	if shown.State < l.state && !o.w.beyondGuard && !l.open {
		o.violate("no older content follows a newer one", fmt.Sprintf("%s: content %d after %d", op.Doc, shown.State,
			l.state))
	}
	l.state = shown.State
}

// checkContents says whether the sink holds the newest content of each object.
func (w *World) checkContents(doc shard.DocID, l *ledger) {
	ref, shown := w.refs[doc.ID()]
	o, known := w.objects[ref]
	known = known && shown
	if known && l.inSinkOp == shard.Put && !l.listed && l.state != w.content(o.Version) {
		w.oracle.violate("the sink holds the newest content", fmt.Sprintf("%s: content %d in the sink, %d in its place",
			doc, l.state, w.content(o.Version)))
	}
}
