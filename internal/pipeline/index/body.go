// SPDX-License-Identifier: Apache-2.0

package index

import (
	"errors"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/sink"
)

// builder builds the body of a document from the message of the document.
type builder struct {
	*holding
	sources Source
}

// makeBody builds the document for the sink, or records why the document can never be built.
func (b *builder) makeBody(d *document, m queue.Message, ev event.Event) {
	var fault *event.Invalid
	body, err := b.sources.Document(m, ev)
	switch {
	case err == nil:
		d.body = b.plainBody(d, body)
	case errors.As(err, &fault) && fault.Stale:
		b.handleStale(d, fault)
	case errors.As(err, &fault):
		d.fault, d.faultFor = fault.Detail(), fault.Reason
	default:
		d.fault, d.faultFor = err.Error(), deadletter.RejectedBySink
	}
}

// plainBody returns a document in the form in which every sink stores it, if lull must recognise
// unchanged content. If no sink can hold the document, plainBody returns it unchanged, and the sink
// rejects the document.
func (b *builder) plainBody(d *document, body []byte) []byte {
	if b.config.Keeps(string(d.id.Collection()), b.sinkName) {
		if plain, fault := sink.Plain(body); fault == nil {
			return plain
		}
	}
	return body
}

// handleStale handles a document whose replica shows an older state than the event.
func (b *builder) handleStale(d *document, fault *event.Invalid) {
	e := d.newest()
	sent := b.message(e).Sent
	if b.config.Retry.Overdue(sent, d.reference.NotBefore, b.clock.Now()) {
		d.fault, d.faultFor = fault.Detail(), deadletter.StaleSource
		return
	}
	d.unloaded = string(deadletter.StaleSource) + ": " + fault.Problem
	d.loadAfter = b.patience(d, mostPatience)
}

// patience returns the shortest wait before a document is loaded again: half of the time that the
// document has waited already. So lull does not ask an origin often for a document that waits long.
func (b *builder) patience(d *document, most time.Duration) time.Duration {
	return min(b.now().Sub(d.newest().Admitted)/2, most)
}

// buildApart builds a document, or a part of one. A panic affects only this document: lull makes no
// request for it, and after MaxRefusals tries the document becomes a dead letter.
func (b *builder) buildApart(d *document, f func() error) (err error) {
	if p := b.catch("make the document", d.id, func() { err = f() }); p != nil {
		d.body, d.reference = nil, nil
		d.fault, d.faultFor = "make the document: "+p.Error(), deadletter.Panic
		return nil
	}
	return err
}
