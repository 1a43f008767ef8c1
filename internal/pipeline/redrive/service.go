// SPDX-License-Identifier: Apache-2.0

package redrive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/seam/rows"
	"github.com/lullhq/lull/internal/seam/schedule"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/source"
)

// Service lists, sends, drops and cancels parked dead letters. All fields are required, except
// Flights and Schedule, which only Cancel and CancelScheduled need. A Service is safe for
// concurrent use.
type Service struct {
	Shards   shard.Store
	Letters  deadletter.Store
	Flights  flight.Store
	Schedule schedule.Store
	Queues   func(sink string, lane flight.Lane) queue.Queue // nil if the queue does not exist
	Config   *config.Config
	Clock    clock.Clock
	Journal  journal.Journal
}

// Outcome is the result for one dead letter. In a dry run it is the expected result.
type Outcome string

// The outcomes. Only Sent sends a message. Only Superseded and Dropped delete a dead letter.
const (
	Sent      Outcome = "sent"       // the message is in its queue again
	Covered   Outcome = "covered"    // sent together with another dead letter of the message
	WouldSend Outcome = "would_send" // in a dry run: a redrive sends it
	WouldDrop Outcome = "would_drop" // in a dry run: a redrive or drop deletes it
	// deleted: the version or a newer one is committed, or an operator took the version back
	Superseded Outcome = "superseded"
	Busy       Outcome = "busy"             // the version is pending or leased: try again later
	TooOld     Outcome = "too_old_to_judge" // not sent, unless the operator forces the redrive
	TooLarge   Outcome = "too_large"        // no space for lull-first-sent: the upstream must publish again
	Empty      Outcome = "empty"            // a queue accepts no empty body: the upstream must publish again
	Foreign    Outcome = "unknown_schema"   // the row has a newer schema
	Gone       Outcome = "gone"             // deleted by another caller in the meantime
	Dropped    Outcome = "dropped"          // deleted, because the operator asked for it
	Failed     Outcome = "failed"           // with an error
)

// How says how a dead letter is sent again.
type How struct {
	Auto   bool   // by lull itself; such redrives are counted separately
	Force  bool   // send the dead letter even if it is too old to judge
	DryRun bool   // only report the expected outcome
	By     string // the operator, for the audit; empty for lull itself
}

// ErrUnknown says that there is no dead letter with the given id.
var ErrUnknown = errors.New("no such dead letter")

// Show returns a dead letter with its body, or ErrUnknown.
func (d *Service) Show(ctx context.Context, id string) (deadletter.Letter, error) {
	l, ok, err := d.get(ctx, id)
	switch {
	case err != nil:
		return deadletter.Letter{}, fmt.Errorf("show dead letter %s: %w", id, err)
	case !ok:
		return deadletter.Letter{}, fmt.Errorf("show dead letter %s: %w", id, ErrUnknown)
	}
	l.State = l.Shown(d.Clock.Now(), d.Config.Queues.DeadLetterRetention)
	return l, nil
}

// With sends one dead letter again, unless the row forbids this. It sends the message only once,
// also for those other dead letters of the message that also accepts and whose rows allow it. With
// returns these other dead letters, even if sending failed. After an error the dead letters remain
// parked, unless the outcome is Sent.
func (d *Service) With(ctx context.Context, id string, how How, also func(deadletter.Facts) bool) (Outcome,
	[]deadletter.Facts, error,
) {
	l, ok, err := d.get(ctx, id)
	if err != nil {
		return Failed, nil, fmt.Errorf("get dead letter %s: %w", id, err)
	}
	if !ok {
		return Gone, nil, nil
	}
	// The caller's list may be old. Only a consistent read of the row decides.
	judged, err := d.judge(ctx, []deadletter.Facts{l.Facts}, how.Force)
	if err != nil {
		return Failed, nil, fmt.Errorf("redrive %s: %w", id, err)
	}
	switch outcome := judged[0].outcome; outcome {
	case Superseded:
		return outcome, nil, d.supersede(ctx, l.Facts, how)
	case Sent:
	default:
		return outcome, nil, nil
	}
	q, out, outcome, err := d.copyOf(l, how)
	if outcome != Sent || err != nil {
		return outcome, nil, err
	}
	// The other dead letters are read only if the message will be sent. Otherwise each of them
	// would read all the others when the caller comes to it.
	if also != nil && l.Hash != "" {
		others, err := d.others(ctx, l, how, also)
		if err != nil {
			return Failed, nil, fmt.Errorf("redrive %s: %w", id, err)
		}
		judged = append(judged, others...)
	}
	// All checks that need no write are done.
	if how.DryRun {
		return WouldSend, facts(judged[1:]), nil
	}
	return d.send(ctx, q, out, judged, how)
}

// others returns the dead letters of l's message that may be sent together with l.
func (d *Service) others(ctx context.Context, l deadletter.Letter, how How, also func(deadletter.Facts) bool) (
	[]judgement, error,
) {
	found, err := backoff.Get(ctx, d.Clock, func() ([]deadletter.Facts, error) {
		return d.Letters.Message(ctx, l.Hash)
	})
	if err != nil {
		return nil, err
	}
	// A copy has the age of its original, so dead letters can share a copy only if their ages are
	// equal.
	found = slices.DeleteFunc(found, func(f deadletter.Facts) bool {
		return f.ID == l.ID || d.sinkOf(f) != d.sinkOf(l.Facts) || f.Lane != l.Lane ||
			!f.FirstSent.Equal(l.FirstSent) || !also(f)
	})
	judged, err := d.judge(ctx, found, how.Force)
	return slices.DeleteFunc(judged, func(j judgement) bool { return j.outcome != Sent }), err
}

// judgement is a dead letter with the outcome that its row allows.
type judgement struct {
	deadletter.Facts
	row     shard.Row
	outcome Outcome
}

// judge decides by the rows, which it reads consistently.
func (d *Service) judge(ctx context.Context, all []deadletter.Facts, force bool) ([]judgement, error) {
	docs := make([]shard.DocID, len(all))
	for i, f := range all {
		docs[i] = f.Doc
	}
	rows, err := d.rows().Of(ctx, docs, shard.Consistent)
	if err != nil {
		return nil, fmt.Errorf("read the row: %w", err)
	}
	judged := make([]judgement, len(all))
	for i, f := range all {
		judged[i] = judgement{f, rows[f.Doc], Sent}
		if f.Doc != "" && f.Key != "" { // without document and key, the row says nothing about the dead letter
			judged[i].outcome = d.decide(rows[f.Doc], f, force)
		}
	}
	return judged, nil
}

// decide applies the rule of design section 10: a committed version means superseded, and a pending
// or leased version means busy. The age is checked last, because only the age can be forced.
func (d *Service) decide(r shard.Row, f deadletter.Facts, force bool) Outcome {
	now := d.Clock.Now()
	switch shard.Judge(r, f.Key, f.Key.Class(), false) {
	case shard.Foreign:
		return Foreign
	case shard.Stale, shard.Duplicate, shard.TakenBack:
		return Superseded
	}
	switch {
	case !shard.MayRedrive(r, f.Key, shard.MicrosOf(now)):
		return Busy
	case d.aged(f, now) && r.Committed == "" && !force:
		return TooOld
	}
	return Sent
}

// aged reports whether the dead letter is so old that its row may have been deleted (design
// sections 5 and 6).
func (d *Service) aged(f deadletter.Facts, now time.Time) bool {
	return d.Config.Lifecycle.Aged(f.FirstSent, now)
}

// supersede deletes a dead letter whose version, or a newer one, is committed.
func (d *Service) supersede(ctx context.Context, f deadletter.Facts, how How) error {
	if how.DryRun {
		return nil
	}
	if err := d.try(ctx, func() error { return d.Letters.Drop(ctx, f.ID) }); err != nil {
		return fmt.Errorf("delete the superseded dead letter %s: %w", f.ID, err)
	}
	d.note(f, journal.Dropped, "superseded: its version or a newer one is committed, or an operator took the version back")
	return nil
}

// copyOf returns the copy to send and its queue. The outcome is Sent if there is a copy to send.
func (d *Service) copyOf(l deadletter.Letter, how How) (queue.Queue, queue.Outgoing, Outcome, error) {
	first := l.FirstSent
	// The copy must be young enough for receive to accept it.
	if how.Force {
		first = later(first, d.judgeable(d.Clock.Now()))
	}
	// A queue accepts no empty body, so the attempt would fail.
	if l.Body == "" {
		return nil, queue.Outgoing{}, Empty, nil
	}
	out, err := deadletter.Copy(l.Body, l.Attributes, first, 0)
	if errors.Is(err, queue.ErrTooLarge) {
		return nil, out, TooLarge, nil
	}
	if err != nil {
		return nil, out, Failed, err
	}
	// A dead letter without a lane is sent to the live lane.
	lane := flight.Live
	if l.Lane == string(flight.Bulk) {
		lane = flight.Bulk
	}
	sink := d.sinkOf(l.Facts)
	q := d.Queues(sink, lane)
	if q == nil {
		return nil, out, Failed, fmt.Errorf("redrive %s: sink %q has no %s queue", l.ID, sink, lane)
	}
	return q, out, Sent, nil
}

// sinkOf returns the sink to whose queue a copy is sent. By default, this is the sink that the dead
// letter came from.
//
// With `queues.elsewhere: skip` it is the sink of the document's collection. Otherwise receive
// would skip the copy if the event came to a wrong queue, or if its collection was moved to another
// sink. But if match rules name sinks, it is the sink that the dead letter came from. A sender to
// one sink must not reach another sink by a redrive.
func (d *Service) sinkOf(f deadletter.Facts) string {
	if f.Doc == "" || d.Config.Queues.Elsewhere != config.ElsewhereSkip {
		return f.Sink
	}
	for _, s := range d.Config.Sources {
		if slices.ContainsFunc(s.Match, func(m source.Match) bool { return m.Sink != "" }) {
			return f.Sink
		}
	}
	return d.Config.SinkOf(f.Doc)
}

// send removes the marks from the rows, sends the copy, and then marks the dead letters as
// redriven. If send is killed before the end, the copy is sent again later and judged by version.
// The first dead letter of judged must be sent. send may leave out other dead letters of judged.
func (d *Service) send(ctx context.Context, q queue.Queue, out queue.Outgoing, judged []judgement, how How) (Outcome,
	[]deadletter.Facts, error,
) {
	now := d.Clock.Now()
	// The marks are removed first, because receive deletes a copy whose key is still marked dead.
	var going []judgement
	var failed error
	for i, j := range judged {
		outcome, err := Sent, error(nil)
		// A dead letter of an event in a wrong queue has another id. The row's mark does not belong
		// to it.
		if j.row.Dead == j.Key && j.Key != "" && j.ID == deadletter.ID(j.Doc, j.Key, "") {
			outcome, err = d.unmark(ctx, j.Facts, how)
		}
		if i == 0 && (outcome != Sent || err != nil) {
			return outcome, nil, err
		}
		// If another dead letter is not sent now, the caller sends it later by itself.
		if failed = cmp.Or(failed, err); outcome == Sent && err == nil {
			going = append(going, j)
		}
	}
	l := judged[0].Facts
	if err := queue.ErrorAt(q.Send(ctx, []queue.Outgoing{out}), 0); err != nil {
		return Failed, facts(going[1:]), fmt.Errorf("send dead letter %s again: %w", l.ID, err)
	}
	// The copy is in the queue. A later failure is reported with the outcome Sent.
	for _, j := range going {
		err := d.try(ctx, func() error { return d.Letters.MarkRedriven(ctx, j.ID, now, how.Auto) })
		if err != nil {
			failed = cmp.Or(failed, fmt.Errorf("mark dead letter %s as redriven (it was sent): %w", j.ID, err))
		}
		d.note(j.Facts, journal.Redriven, d.detail(j.Facts, how))
	}
	return Sent, facts(going[1:]), failed
}

func facts(judged []judgement) []deadletter.Facts {
	out := make([]deadletter.Facts, len(judged))
	for i := range judged {
		out[i] = judged[i].Facts
	}
	return out
}

// detail says who sent a dead letter again.
func (d *Service) detail(f deadletter.Facts, how How) string {
	detail := "by " + how.By
	if how.Auto {
		detail = fmt.Sprintf("by itself, %d of %d", f.Auto+1, d.Config.Retry.AutoRedrives)
	}
	if how.Force {
		detail += ", forced"
	}
	return detail
}

// unmark writes REDRIVE, which removes dead = k. Otherwise receive would find that the dead letter
// of the copy is stored. If the row refuses REDRIVE, the returned row decides.
func (d *Service) unmark(ctx context.Context, f deadletter.Facts, how How) (Outcome, error) {
	_, err := d.rows().Write(ctx, shard.Redrive(f.Doc, f.Key, shard.MicrosOf(d.Clock.Now())))
	if err == nil {
		return Sent, nil
	}
	refused, ok := shard.AsRefused(err)
	if !ok {
		return Failed, fmt.Errorf("remove the mark of dead letter %s: %w", f.ID, err)
	}
	outcome := d.decide(refused.Row, f, how.Force)
	if outcome == Superseded {
		return outcome, d.supersede(ctx, f, how)
	}
	return outcome, nil // Sent if the mark was already removed, perhaps by an earlier try of this write
}

// judgeable returns the earliest first-sent time with which receive still accepts a copy after the
// redrive span. A forced copy has this time. The time is not later: with the version policy
// `arrival`, the copy should count as as old as possible.
func (d *Service) judgeable(now time.Time) time.Time {
	l := d.Config.Lifecycle
	return now.Add(-(l.RowRetention - l.ProducerLateness - l.RedriveSpan))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (d *Service) rows() rows.Table { return rows.Table{Store: d.Shards, Clock: d.Clock} }

// try retries a call that may be repeated. No other code of this package retries.
func (d *Service) try(ctx context.Context, f func() error) error {
	return backoff.Do(ctx, d.Clock, f)
}

func (d *Service) get(ctx context.Context, id string) (l deadletter.Letter, ok bool, err error) {
	err = d.try(ctx, func() (err error) {
		l, ok, err = d.Letters.Get(ctx, id)
		return err
	})
	return l, ok, err
}

// note records a step of a dead letter.
func (d *Service) note(f deadletter.Facts, step journal.Step, detail string) {
	d.Journal.Note(journal.Note{
		Step: step, At: d.Clock.Now(), Doc: f.Doc, Key: f.Key, Sink: f.Sink, Lane: f.Lane, Event: f.Event, Sent: f.Sent,
		Detail: detail, Letter: f.ID,
	})
}
