// SPDX-License-Identifier: Apache-2.0

package receive

import (
	"context"
	"errors"
	"time"

	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/rows"
	"github.com/lullhq/lull/internal/shard"
)

// admitter does ADMIT for the documents of a batch.
type admitter struct {
	*invocation
	table rows.Table
	newID func(time.Time) flight.ID
	admitted
}

// admitted is the result of all ADMITs of a batch, with what is known about the table.
type admitted struct {
	// flight is the id of this invocation's flight. ADMIT writes it into the rows before the
	// manifest exists.
	flight flight.ID
	// at is the one time that the whole batch was admitted at: index computes the cap from it.
	at          time.Time
	readable    bool // the table answered a read
	unreachable bool // the table answered no ADMIT, not even with a refusal
}

// admit reads rows, does ADMIT, and notes whether the table answered. A throttled request counts as
// answered. If the time of the invocation has ended, nothing is known about the table.
func (a *admitter) admit(ctx context.Context, docs []*document) admitted {
	// The rest of the invocation's time is for the dead letters, the manifest and the start of the
	// flight.
	call, cancel := a.until(ctx, tableShare)
	defer cancel()
	a.readRows(call, docs)
	a.at = a.clock.Now()
	a.flight = a.newID(a.start)
	// each document keeps its own error
	a.parallel.Each(maxParallel, len(docs), func(i int) { a.admitNewest(call, docs[i]) })
	// One answer, even a refusal or a throttle, proves that the table can be reached.
	answered, lost := false, false
	for _, d := range docs {
		throttled := errors.Is(d.err, shard.ErrThrottled)
		answered = answered || d.answered || throttled
		lost = lost || d.err != nil && !throttled
	}
	a.unreachable = lost && !answered && ctx.Err() == nil
	return a.admitted
}

// readRows reads the rows of documents with a redelivered or overdue message. ADMIT is likely to be
// refused for such documents, and a refused ADMIT costs more than the read.
func (a *admitter) readRows(ctx context.Context, docs []*document) {
	var ids []shard.DocID
	var which []*document
	for _, d := range docs {
		// One redelivered or overdue event is enough, because the row serves all events of the
		// document.
		for _, p := range d.events {
			if p.msg.ReceiveCount > 1 || a.overdue(p) {
				ids, which = append(ids, d.id), append(which, d)
				break
			}
		}
	}
	if len(ids) == 0 {
		return
	}
	// The read is consistent, because the decision may rely on an absent row or on a dead version
	// (design section 5). If the read fails, the answer to ADMIT decides.
	rows, err := a.table.Read(ctx, ids, shard.Consistent)
	a.noteFailed("read rows", err)
	if err != nil {
		return
	}
	a.readable = true
	for i, d := range which {
		d.read, d.before, d.after = true, rows[i], rows[i]
	}
}

// admitNewest admits the newest version of the document that the row has not decided yet. It passes
// over a version that is a dead letter, or becomes one here. Otherwise no flight would admit the
// older versions.
func (a *admitter) admitNewest(ctx context.Context, d *document) {
	known := d.read
	for _, p := range d.events {
		if known && d.after.Pending >= p.Key {
			return // another flight has admitted this version or a newer one
		}
		if known && (a.overdue(p) || shard.Judge(d.after, p.Key, p.Class, a.aged(p)) != shard.Held) {
			continue
		}
		// If the table does not answer, outage mode writes the version d.asked.
		d.asked = p
		if a.admitOne(ctx, d, p); d.admitted || d.err != nil {
			return
		}
		known = true // the row is now known from the image of the refused write
	}
}

// admitOne sends one ADMIT. A refusal is an answer, not an error. The document then has the row
// that judges its events.
func (a *admitter) admitOne(ctx context.Context, d *document, p *pending) {
	w := shard.Admit(shard.Admission{
		Doc: p.Doc, Key: p.Key, Class: p.Class, Flight: string(a.flight), Group: p.msg.tenant().group,
		Now: shard.MicrosOf(a.at), Aged: a.aged(p),
	})
	if d.err = ctx.Err(); d.err != nil {
		return // the time for the table is over: SQS delivers the other messages again
	}
	old, err := a.table.Write(ctx, w)
	if refused, ok := shard.AsRefused(err); ok {
		d.before, d.after, d.answered = refused.Row, refused.Row, true
		a.note(p.about(journal.RowRefused, w.Transition.String()))
		a.conflict(p, refused.Row)
		return
	}
	if d.err = err; err != nil {
		return
	}
	// ADMIT returns the row before ADMIT. The row after ADMIT is computed, which saves a read.
	d.before, d.after, d.answered, d.admitted = old, w.Apply(old), true, true
	n := p.about(journal.Admitted, "newer")
	if old.Pending == "" {
		n.Detail = "new burst"
	}
	n.Old, n.Flight = old, string(a.flight)
	a.note(n)
	a.conflict(p, old)
}

// conflict notes a version that the row has with another payload. The greater key wins, in whatever
// order the two arrive.
func (a *admitter) conflict(p *pending, row shard.Row) {
	if shard.VersionConflict(row.Pending, p.Key) || shard.VersionConflict(row.Committed, p.Key) {
		a.note(p.about(journal.Conflict, "another payload under the same version"))
	}
}
