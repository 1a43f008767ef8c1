// SPDX-License-Identifier: Apache-2.0

package dlq

import (
	"context"
	"errors"
	"fmt"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

// fate is the decision about one event of a message that SQS moved.
type fate byte

const (
	// the event is committed or skipped, or its dead letter is stored; the note is written already
	isDone   fate = iota
	isDead        // the event must be parked
	isLeased      // a flight may be writing the version: try later
	neverRan      // the version was never claimed: give the message back to its queue
	isUnsure      // the event cannot be judged now: try later
)

// verdict is one event with its fate and the facts for it.
type verdict struct {
	event.Event
	fate   fate
	reason deadletter.Reason
	detail string
	row    shard.Row    // the row, from a consistent read
	until  shard.Micros // for isLeased: the end of the lease
}

// dies marks the event as one to park.
func (v *verdict) dies(reason deadletter.Reason, detail string) {
	v.fate, v.reason, v.detail = isDead, reason, detail
}

// judge judges the events of a message that SQS moved here, or that was sent here without a run.
// The message is handled as a whole: if one of its events is leased, all events wait. If one event
// never ran, all are given back, to be judged again. Otherwise judge makes a task for each dead
// letter of the message.
func (j *job) judge(ctx context.Context) {
	if j.results == nil {
		return
	}
	verdicts, ok := j.verdicts(ctx)
	if !ok {
		j.kept = true
		return
	}
	var until shard.Micros
	back := false
	for i := range verdicts {
		until = max(until, verdicts[i].until)
		back = back || verdicts[i].fate == neverRan
	}
	switch {
	case until != 0:
		// The longest lease decides, because the message is handled as a whole.
		j.h.wait(ctx, j.m, until)
		j.kept = true
		return
	case back:
		err := j.giveBack(ctx)
		if err == nil {
			return
		}
		// A message without room for a copy's attribute is parked below instead.
		if !errors.Is(err, queue.ErrTooLarge) {
			j.note(&event.Event{}, journal.Failed, "give the message back: "+err.Error())
			j.kept = true
			return
		}
	}
	j.makeTasks(verdicts)
}

// makeTasks makes the tasks for the dead events, one for each dead letter. Events without an order
// key share a dead letter, and so do events with the same version.
func (j *job) makeTasks(verdicts []verdict) {
	maker := deadletter.Of(j.m)
	now := j.h.Clock.Now()
	letter := func(v *verdict, detail string) deadletter.Letter {
		l := maker.New(v.reason, detail, v.Doc, v.Key, v.Index, now)
		l.Hash, l.Sink, l.Lane = maker.Hash(), j.h.Sink, string(j.ln)
		return l
	}
	at := map[string]int{}
	for i := range verdicts {
		v := &verdicts[i]
		if v.fate == neverRan {
			v.dies(deadletter.ReceiveCount, "the version never ran, and the message has no room for a copy's attribute")
		}
		if v.fate != isDead {
			continue
		}
		l := letter(v, v.detail)
		n, known := at[l.ID]
		if !known {
			if v.Key != "" && (v.row.Pending == v.Key || v.row.Claimed == v.Key) {
				l.Refusals, l.LastError = v.row.Refusals, v.row.LastError
			}
			n, at[l.ID] = len(j.tasks), len(j.tasks)
			j.tasks = append(j.tasks, task{job: j, letter: l})
		}
		j.tasks[n].events = append(j.tasks[n].events, v)
	}
	for i := range j.tasks {
		if t := &j.tasks[i]; len(t.events) > 1 {
			v := t.events[0]
			t.letter = letter(v, fmt.Sprintf("%d events, the first: %s", len(t.events), v.detail))
		}
	}
}

// verdicts decides about every event by its row. It returns false if the message must stay
// unchanged.
func (j *job) verdicts(ctx context.Context) ([]verdict, bool) {
	h := j.h
	verdicts := make([]verdict, 0, len(j.results))
	var docs []shard.DocID
	var rowOf []int // index of the verdict of docs[i]
	for i, r := range j.results {
		v := verdict{Event: r.Event}
		v.Index = i
		switch {
		case r.Invalid != nil:
			if r.Invalid.Transient() && !h.overdue(j.m) {
				j.note(&v.Event, journal.Failed, r.Invalid.Error())
				return nil, false
			}
			v.Doc, v.Key, v.Class = r.Invalid.Doc, r.Invalid.Key, r.Invalid.Key.Class()
			v.dies(r.Invalid.Reason, r.Invalid.Detail())
		case r.Object != nil:
			v.dies(deadletter.ReceiveCount, "the object was not read to its end")
		case r.Skip != "":
			j.note(&v.Event, journal.Skipped, r.Skip)
		default:
			docs, rowOf = append(docs, v.Doc), append(rowOf, len(verdicts))
		}
		verdicts = append(verdicts, v)
	}
	if len(docs) == 0 {
		return verdicts, true
	}
	// One read serves the whole message. The read is consistent, because lull relies on dead = k
	// only from a consistent read (design section 5).
	rows, err := h.rows().Read(ctx, docs, shard.Consistent)
	if err != nil {
		j.note(&verdicts[rowOf[0]].Event, journal.Failed, "read the rows: "+err.Error())
		return nil, false
	}
	for i, at := range rowOf {
		verdicts[at].row = rows[i]
		j.byRow(&verdicts[at])
		if verdicts[at].fate == isUnsure {
			return nil, false
		}
	}
	return verdicts, true
}

// byRow decides about an event by its row, which was read consistently.
func (j *job) byRow(v *verdict) {
	h, r, k := j.h, v.row, v.Key
	judgement := shard.Judge(r, k, v.Class, h.aged(j.m))
	switch judgement {
	case shard.Stale:
		j.note(&v.Event, journal.Superseded, k.Behind(r.Committed))
		return
	case shard.Duplicate:
		j.note(&v.Event, journal.Duplicate, "this version is committed")
		return
	case shard.TakenBack:
		j.note(&v.Event, journal.Superseded, "an operator took the version back")
		return
	case shard.Foreign:
		j.note(&v.Event, journal.Schema, "row")
		v.fate = isUnsure
		return
	}
	// Someone who can send to this queue must not be able to end a version of another sink, or
	// replace its dead letter.
	if sink, astray := h.astray(v.Doc); astray && h.Config.Queues.Elsewhere == config.ElsewhereSkip {
		j.note(&v.Event, journal.Skipped, "the collection belongs to sink "+sink)
		return
	} else if astray {
		v.dies(deadletter.Contract, fmt.Sprintf(
			"collection: %s belongs to sink %s, but this was in a queue of sink %s", v.Doc.Collection(), sink, h.Sink))
		return
	}
	switch judgement {
	case shard.Parked:
		if j.claimed != "" {
			// This may be the dead letter that marked the row, and it is not stored yet.
			v.dies(j.claimed, "the row marks the version dead: "+r.LastError)
			return
		}
		n := j.about(&v.Event, journal.AlreadyDead, "its dead letter is stored")
		n.Letter = deadletter.ID(v.Doc, k, "")
		h.note(n)
		return
	case shard.ClassMismatch:
		v.dies(deadletter.ClassMismatch,
			fmt.Sprintf("version: the row has versions of class %s, this one is %s", r.VersionClass, v.Class))
		return
	case shard.TooOld:
		if j.m.MovedFrom == "" {
			v.fate = neverRan // receive judges it again
			break
		}
		v.dies(deadletter.TooOld, "the message is older than rows are kept, and its row has no committed version")
	case shard.Held:
		j.held(v)
	}
	if r.LeaseUntil >= h.now() {
		v.fate, v.until = isLeased, r.LeaseUntil
	}
}

// held decides about a version that the row has not decided yet.
func (j *job) held(v *verdict) {
	switch {
	// A message that SQS did not move has not run, even if the row has versions from other copies.
	// receive judges such a message.
	case j.m.MovedFrom == "", v.row.Claimed < v.Key && !j.h.overdue(j.m):
		v.fate = neverRan
	case v.row.Claimed > v.Key:
		j.note(&v.Event, journal.Blocked, "a newer version was claimed and may be in the sink")
		v.dies(deadletter.ReceiveCount, "a newer version was claimed without an answer")
	case v.row.Claimed < v.Key:
		v.dies(deadletter.ReceiveCount, "the version never ran, for longer than "+j.h.Config.Retry.DeadDeadline.String())
	default:
		v.dies(deadletter.ReceiveCount, fmt.Sprintf("claimed %d times without an answer", v.row.Attempts))
	}
}

// wait hides the message until the lease has ended.
func (h *Handler) wait(ctx context.Context, m queue.Message, until shard.Micros) {
	// Wait until a microsecond after the lease, in whole seconds, and at most the twelve hours of
	// SQS.
	d := min(queue.WholeSeconds(until.Sub(h.now())+1), queue.MaxHold)
	// If SQS refuses, the message returns when its visibility ends, and is judged again.
	if err := queue.Failed(h.Dead.Hold(ctx, []string{m.Receipt}, d)); err != nil {
		h.note(journal.Note{
			Step: journal.CallFailed, Message: m.ID, Detail: "change visibility: " + backoff.Class(err),
		})
	}
	h.note(journal.Note{
		Step: journal.Waiting, Message: m.ID, Sent: m.Sent, Until: until.Time(),
		Detail: "the row is leased: the message is not parked before the lease ends",
	})
}

// giveBack sends the message to its lane again, with the age of the original. After a crash the
// message may be sent twice, which does no harm to the rows.
func (j *job) giveBack(ctx context.Context) error {
	h := j.h
	out, err := deadletter.Copy(j.m.Body, j.m.Attributes, j.m.FirstSent(), h.Config.Retry.BackoffMax)
	if err != nil {
		return err
	}
	// SQS delays a message by 15 minutes at most.
	out.Delay = min(out.Delay, queue.MaxDelay)
	if err := queue.ErrorAt(h.queue(j.ln).Send(ctx, []queue.Outgoing{out}), 0); err != nil {
		return err
	}
	n := j.about(&event.Event{}, journal.Returned, "the version never ran")
	n.Until = h.Clock.Now().Add(out.Delay)
	h.note(n)
	return nil
}

// overdue reports whether the message, or the original of which it is a copy, is older than the
// dead deadline. An overdue message is not given back again.
func (h *Handler) overdue(m queue.Message) bool {
	return h.Clock.Now().Sub(m.FirstSent()) > h.Config.Retry.DeadDeadline
}

// aged reports whether the message is so old that its row may have been deleted (design sections 5
// and 6).
func (h *Handler) aged(m queue.Message) bool {
	return h.Config.Lifecycle.Aged(m.FirstSent(), h.Clock.Now())
}

// parkTask parks a dead letter, marks its row and writes notes about its events.
func (j *job) parkTask(ctx context.Context, t *task) bool {
	h, v := j.h, t.events[0]
	t.letter = h.named(t.letter)
	step := journal.DeadLettered
	if h.Config.DeadLetters == config.DeadLettersNone {
		step = journal.Dropped
	} else if !h.store(ctx, t.letter) {
		return false
	}
	// PARK follows only after the dead letter is stored (design section 10).
	if j.marks(v) && !j.mark(ctx, v) {
		return false
	}
	for _, v := range t.events {
		n := j.about(&v.Event, step, string(t.letter.Reason)+": "+t.letter.Detail)
		n.Letter = t.letter.ID
		h.note(n)
	}
	return true
}

func (j *job) note(e *event.Event, step journal.Step, detail string) {
	j.h.note(j.about(e, step, detail))
}

func (j *job) about(e *event.Event, step journal.Step, detail string) journal.Note {
	return journal.Note{
		Step: step, Doc: e.Doc, Key: e.Key, Op: e.Op, Lane: string(j.ln), Message: j.m.ID, Event: e.Index,
		Sent: j.m.Sent, Trace: j.m.Attributes[queue.AttrTrace].String, Detail: detail,
	}
}
