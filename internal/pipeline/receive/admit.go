package receive

import (
	"context"
	"errors"

	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
)

// ask reads rows and does ADMIT, and notes whether the table answered. A throttled request
// counts as answered. If the invocation's own time has ended, nothing is known about the table.
func (b *batch) ask(ctx context.Context) {
	// The rest of the time is for the dead letters, the manifest and the start of the flight.
	call, cancel := b.until(ctx, tableShare)
	defer cancel()
	b.readRows(call)
	b.admit(call)
	// One answer, even a refusal or a throttle, proves that the table can be reached.
	answered, lost := false, false
	for i := range b.docs {
		d := &b.docs[i]
		throttled := errors.Is(d.err, shard.ErrThrottled)
		answered = answered || d.answered || throttled
		lost = lost || d.err != nil && !throttled
	}
	b.unreachable = lost && !answered && ctx.Err() == nil
}

// readRows reads the rows of documents with a redelivered or overdue message. ADMIT is likely to
// be refused for them, and a refused ADMIT costs more than the read.
func (b *batch) readRows(ctx context.Context) {
	var ids []shard.DocID
	var which []int
	for i := range b.docs {
		// One such event is enough: the row serves all events of the document.
		for _, e := range b.docs[i].events {
			if p := &b.events[e]; b.msgs[p.msg].ReceiveCount > 1 || b.overdue(p) {
				ids, which = append(ids, b.docs[i].id), append(which, i)
				break
			}
		}
	}
	if len(ids) == 0 {
		return
	}
	// Consistent, because the judgement may believe that the row is absent or that a version is
	// dead (design section 5). If the read fails, the answer to ADMIT decides.
	rows, err := b.rows().Read(ctx, ids, shard.Consistent)
	b.lost("read rows", err)
	if err != nil {
		return
	}
	b.readable = true
	for i, d := range which {
		b.docs[d].read, b.docs[d].before, b.docs[d].after = true, rows[i], rows[i]
	}
}

// admit is step 3: ADMIT the newest version of every document, in parallel and bounded.
func (b *batch) admit(ctx context.Context) {
	// One time for the whole batch: index computes the cap from the manifest's admitted-at.
	b.admitted = b.h.Clock.Now()
	flightID := string(b.flightID())
	// errors are kept per document
	b.h.Parallel.Each(maxParallel, len(b.docs), func(i int) { b.admitNewest(ctx, &b.docs[i], flightID) })
}

// admitNewest admits the newest version of the document that its row has not decided. A version
// that is a dead letter, or becomes one here, is passed over. Otherwise nothing would admit the
// older ones.
func (b *batch) admitNewest(ctx context.Context, d *docState, flightID string) {
	known := d.read
	for _, e := range d.events {
		p := &b.events[e]
		if known && d.after.Pending >= p.Key {
			return // another flight has admitted this version or a newer one
		}
		if known && (b.overdue(p) || shard.Judge(d.after, p.Key, p.Class, b.aged(p)) != shard.Held) {
			continue
		}
		// If the table does not answer, outage mode writes this version.
		d.asked = e
		if b.admitOne(ctx, d, p, flightID); d.admitted || d.err != nil {
			return
		}
		known = true // from the image of the refused write
	}
}

// admitOne is one ADMIT. A refusal is an answer, not an error. It returns the row that judges
// the events.
func (b *batch) admitOne(ctx context.Context, d *docState, p *pending, flightID string) {
	w := shard.Admit(shard.Admission{
		Doc: p.Doc, Key: p.Key, Class: p.Class, Flight: flightID, Group: b.tenant(p.msg).group,
		Now: shard.MicrosOf(b.admitted), Aged: b.aged(p),
	})
	if d.err = ctx.Err(); d.err != nil {
		return // the time for the table is over: the other messages are received again
	}
	old, err := b.rows().Write(ctx, w)
	if refused, ok := shard.AsRefused(err); ok {
		d.before, d.after, d.answered = refused.Row, refused.Row, true
		b.h.note(b.about(p, journal.RowRefused, w.Transition.String()))
		b.conflict(p, refused.Row)
		return
	}
	if d.err = err; err != nil {
		return
	}
	// ADMIT returns the row before it. The row after it is computed, which saves a read.
	d.before, d.after, d.answered, d.admitted = old, w.Apply(old), true, true
	n := b.about(p, journal.Admitted, "newer")
	if old.Pending == "" {
		n.Detail = "new burst"
	}
	n.Old, n.Flight = old, flightID
	b.h.note(n)
	b.conflict(p, old)
}

// conflict counts a version that the row knows with another payload. The greater key wins,
// whatever order they arrive in.
func (b *batch) conflict(p *pending, row shard.Row) {
	if shard.VersionConflict(row.Pending, p.Key) || shard.VersionConflict(row.Committed, p.Key) {
		b.h.note(b.about(p, journal.Conflict, "another payload under the same version"))
	}
}

// judge is the rest of step 3, and step 4: it judges every event by its row, and computes when
// the held ones are due.
func (b *batch) judge() {
	for i := range b.docs {
		d := &b.docs[i]
		for _, e := range d.events {
			b.judgeOne(d, &b.events[e])
		}
	}
}

// judgeOne judges one event by the newest image of its row: read, left by ADMIT, or returned by a
// refusal.
func (b *batch) judgeOne(d *docState, p *pending) {
	if d.err != nil {
		b.fail(p, "ADMIT: "+d.err.Error())
		return
	}
	switch j := shard.Judge(d.after, p.Key, p.Class, b.aged(p)); j {
	case shard.Stale:
		b.done(p, journal.Stale, p.Key.Behind(d.after.Committed))
	case shard.Duplicate:
		b.done(p, journal.Duplicate, "this version is committed")
	case shard.Parked:
		if says := b.state[p.msg].letter; says != "" {
			// This may be the dead letter that the row's mark is about, and it is not stored
			// yet.
			b.letter(p, says, "its row is marked dead: "+d.after.LastError)
			return
		}
		b.done(p, journal.AlreadyDead, "its dead letter is stored")
	case shard.TakenBack:
		b.done(p, journal.Stale, "an operator took it back")
	case shard.ClassMismatch:
		b.letter(p, deadletter.ClassMismatch, "version: the row has versions of class "+d.after.VersionClass.String()+
			", this one is "+p.Class.String())
	case shard.TooOld:
		b.letter(p, deadletter.TooOld, "older than rows are kept, and nothing committed to judge it by")
	case shard.Foreign:
		// Code does not touch a row of a newer schema (design section 5). The message is
		// received again.
		b.h.note(b.about(p, journal.Schema, "row"))
		b.fail(p, "the row has a newer schema")
	case shard.Held:
		switch {
		case !b.overdue(p):
			b.keep(d, p)
		case !d.after.Leased(b.now()):
			b.letter(p, overdueReason(d.after), "tried for longer than "+b.h.Config.Retry.DeadDeadline.String())
		default:
			// A flight could hold it for another twelve hours, beyond the queue's retention. The
			// visibility is about as long as the lease: at the next receive the version is
			// committed, or becomes a dead letter.
			b.fail(p, "overdue, and its row is leased")
		}
	}
}

// overdueReason returns why a version is overdue. If its source shows an older state, index has
// written that into the row.
func overdueReason(r shard.Row) deadletter.Reason {
	if deadletter.StaleSource.Begins(r.LastError) {
		return deadletter.StaleSource
	}
	return deadletter.DeadDeadline
}

// keep holds the event in this invocation's flight.
func (b *batch) keep(d *docState, p *pending) {
	m := &b.msgs[p.msg]
	p.hold, b.state[p.msg].held = true, true
	// While the sink is unhealthy, the quiet window widens up to max wait (design section 8).
	t := b.h.Config.Timing(p.Doc.Collection())
	again := m.ReceiveCount > 1
	if circuit, _ := shard.Health(b.health, b.now()); circuit != shard.CircuitClosed && !again {
		t = shard.Widen(t, b.health.Level)
	}
	p.due = shard.Due(d.before, d.after, shard.Arrival{
		Sent: shard.MicrosOf(m.Sent), Now: b.now(), Again: again, NotBefore: shard.MicrosOf(p.NotBefore),
	}, t)
}
