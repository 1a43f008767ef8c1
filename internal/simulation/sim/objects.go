// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	docevent "github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/source"
)

// place is the bucket for the objects to which events refer, if the settings allow references.
const place = "s3://open/"

// Object is a change of an object to which events refer. The upstream changes the object before it
// sends the event.
type Object struct {
	At      time.Duration
	Doc     string // the id of the document
	Version int
	Removed bool
	Ref     string // the address of the object; empty for the default address of its document
}

// ref returns the address of the object.
func (o Object) ref() string { return cmp.Or(o.Ref, place+o.Doc) }

// refers reports whether the settings allow events to refer to objects.
func refers(sources *source.Set) bool {
	r := sources.Decode(queue.Message{Body: touched("a", 1, ""), Sent: epoch})
	return r[0].Invalid == nil
}

// touched returns an event whose payload is the object of its document.
func touched(id string, version int, extra string) string {
	return fmt.Sprintf(`{"type":"doc.touched","subject":%q,"sequence":"%d"%s,"dataref":%q}`, id, version, extra, place+id)
}

// change sets an object to its newest version, even if the changes arrive in another order.
func (w *World) change(o Object) {
	if o.Version >= w.objects[o.ref()].Version {
		w.objects[o.ref()] = o
	}
}

// objectClient is the bucket as one invocation reads it.
type objectClient struct{ v *invocation }

// Load returns the newest version of an object. Load may fail as any request to S3.
func (c objectClient) Load(ctx context.Context, ref string) ([]byte, error) {
	w := c.v.w
	if w.dice.chance(w.rates.IOFailBefore) {
		return nil, fault.ErrInjected
	}
	return c.show(ctx, ref, "dataref", "the object is not there", func(version int) []byte {
		return fmt.Appendf(nil, `{"state":%d}`, w.content(version))
	})
}

// Fetch returns the source's state of a document.
func (c objectClient) Fetch(ctx context.Context, from, ref string) ([]byte, error) {
	return c.show(ctx, ref, "fetch", "the source answered 404", func(version int) []byte {
		return c.v.w.answer(from, version)
	})
}

// show requests an object. show returns the object's newest version, or an error if the object does
// not exist.
func (c objectClient) show(ctx context.Context, ref, field, missing string, say func(version int) []byte) (
	body []byte, err error,
) {
	w := c.v.w
	if failed := c.v.request(ctx, fault.Bucket, 0, func() {
		if o, known := w.objects[ref]; known && !o.Removed {
			body = say(o.Version)
		} else {
			err = w.notThere(field, missing)
		}
	}); failed != nil {
		return nil, failed
	}
	return body, err
}

// notThere returns the error for a missing object, with the field and the problem.
func (w *World) notThere(field, problem string) error {
	w.coverage[point{aLoad, "missing", ""}]++
	return &docevent.Invalid{Reason: deadletter.Payload, Field: field, Problem: problem, Missing: true}
}

// state is the JSON pointer to the number of a version in an answer of a simulated source.
const state = "/state"

// answer returns a source's answer for a version. The settings name the place of the version in the
// answer.
func (w *World) answer(from string, version int) []byte {
	body, settings := fmt.Sprintf(`{"state":%d}`, version), w.cfg.Sources[from]
	p, err := source.ParsePointer(settings.Fetch.Version)
	if err == nil && p.Text != "" && p.Text != state {
		body = p.Put(body, source.Quoted(source.NumberedVersion(settings.Class, uint32(version))))
	}
	return []byte(body)
}

// contents checks the content of each applied write: an older content of an object must never
// follow a newer one.
func (o *oracle) contents(op sink.Op, l *ledger) {
	state, ok := stateOf(op.Document)
	if len(o.w.objects) == 0 || op.Kind == shard.Delete || !ok {
		return
	}
	if o.w.lags {
		// Lagging replicas may show a newer content for one event, and the event's own content for
		// the next.
		if version, err := strconv.Atoi(op.Version); err != nil || state < version {
			o.violate("no content is older than its version", fmt.Sprintf("%s: content %d for version %s", op.Doc,
				state, op.Version))
		}
	} else if state < l.state && !o.w.beyondGuard && !l.open {
		o.violate("no older content replaces a newer one", fmt.Sprintf("%s: content %d after %d", op.Doc, state,
			l.state))
	}
	l.state = state
}

// stateOf returns the state of the object that a document shows, or false if the document is not
// JSON.
func stateOf(document []byte) (int, bool) {
	var shown struct{ State int }
	err := json.Unmarshal(document, &shown)
	return shown.State, err == nil
}

// checkContents checks that the sink has the newest content of each object.
func (w *World) checkContents(doc shard.DocID, l *ledger) {
	ref, shown := w.refs[doc.ID()]
	o, known := w.objects[ref]
	known = known && shown
	if known && l.inSink != "" && !l.listed && (l.inSinkOp == shard.Delete) != o.Removed {
		w.oracle.violate("the sink holds what its source shows", fmt.Sprintf("%s: %s in the sink, removed in the source: %t",
			doc, l.inSinkOp, o.Removed))
	}
	if known && l.inSinkOp == shard.Put && !l.listed && l.state != w.content(o.Version) {
		w.oracle.violate("the sink holds the newest content", fmt.Sprintf("%s: content %d in the sink, %d in the source",
			doc, l.state, w.content(o.Version)))
	}
}
