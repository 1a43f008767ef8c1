// SPDX-License-Identifier: Apache-2.0

package receive

import (
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
)

// judge does the rest of step 3, and step 4: it judges every event by its row, and computes when
// each held event is due.
type judge struct {
	*invocation
	health shard.Row // health row of the sink
}

// judge returns the events that become dead letters.
func (j judge) judge(docs []*document) (dead faults) {
	for _, d := range docs {
		for _, p := range d.events {
			j.judgeOne(p, &dead)
		}
	}
	return dead
}

// judgeOne judges one event by the newest image of its row. That image was read, is the result of
// ADMIT, or was returned by a refusal.
func (j judge) judgeOne(p *pending, dead *faults) {
	d := p.doc
	if d.err != nil {
		j.fail(p, "ADMIT: "+d.err.Error())
		return
	}
	switch shard.Judge(d.after, p.Key, p.Class, j.aged(p)) {
	case shard.Stale:
		j.complete(p, p.about(journal.Stale, p.Key.Behind(d.after.Committed)))
	case shard.Duplicate:
		j.complete(p, p.about(journal.Duplicate, "this version is committed"))
	case shard.Parked:
		if says := p.msg.letter; says != "" {
			// This message may be the dead letter that marked the row, and that dead letter is not
			// stored yet.
			dead.add(p, says, "the row marks the version dead: "+d.after.LastError)
			return
		}
		j.complete(p, p.about(journal.AlreadyDead, "its dead letter is stored"))
	case shard.TakenBack:
		j.complete(p, p.about(journal.Stale, "an operator took the version back"))
	case shard.ClassMismatch:
		dead.add(p, deadletter.ClassMismatch, "version: the row has versions of class "+d.after.VersionClass.String()+
			", this one is "+p.Class.String())
	case shard.TooOld:
		dead.add(p, deadletter.TooOld, "the message is older than rows are kept, and its row has no committed version")
	case shard.Foreign:
		// Code does not touch a row of a newer schema (design section 5). The message is
		// received again.
		j.note(p.about(journal.Schema, "row"))
		j.fail(p, "the row has a newer schema")
	case shard.Held:
		switch {
		case !j.overdue(p):
			j.keep(p)
		case !d.after.Leased(j.now()):
			dead.add(p, overdueReason(d.after), "tried for longer than "+j.config.Retry.DeadDeadline.String())
		default:
			// A flight could hold the message for another twelve hours, beyond the queue's
			// retention. The visibility is about as long as the lease: at the next receive the
			// version is committed, or becomes a dead letter.
			j.fail(p, "the message is overdue, and its row is leased")
		}
	}
}

// overdueReason returns why a version is overdue. The source may show an older state than the
// version. index has then written StaleSource into the row's last error.
func overdueReason(r shard.Row) deadletter.Reason {
	if deadletter.StaleSource.Begins(r.LastError) {
		return deadletter.StaleSource
	}
	return deadletter.DeadDeadline
}

// keep holds the event in this invocation's flight.
func (j judge) keep(p *pending) {
	p.hold, p.msg.held = true, true
	// While the sink is unhealthy, the quiet window widens up to max wait (design section 8).
	t := j.config.Timing(p.Doc.Collection())
	again := p.msg.ReceiveCount > 1
	if circuit, _ := shard.Health(j.health, j.now()); circuit != shard.CircuitClosed && !again {
		t = shard.Widen(t, j.health.Level)
	}
	p.due = shard.Due(p.doc.before, p.doc.after, shard.Arrival{
		Sent: shard.MicrosOf(p.msg.Sent), Now: j.now(), Again: again, NotBefore: shard.MicrosOf(p.NotBefore),
	}, t)
}
