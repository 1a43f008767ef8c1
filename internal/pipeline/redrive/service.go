package redrive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/backoff"
	"github.com/lullhq/lull/internal/clock"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/deadletter"
	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/internal/rows"
	"github.com/lullhq/lull/internal/schedule"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/source"
)

// Service works on parked dead letters. All fields are required, except Flights and Schedule, which
// only Cancel and CancelScheduled need. It is safe for concurrent use.
type Service struct {
	Shards   shard.Store
	Letters  deadletter.Store
	Flights  flight.Store
	Schedule schedule.Store
	Queues   func(sink string, lane flight.Lane) queue.Queue // nil for a queue that does not exist
	Config   *config.Config
	Clock    clock.Clock
	Journal  journal.Journal
}

// Outcome is what became, or in a dry run would become, of one dead letter.
type Outcome string

// The outcomes. Only Sent sends; only Superseded and Dropped take a dead letter away.
const (
	Sent       Outcome = "sent"
	Covered    Outcome = "covered"          // its message was sent with another dead letter of it
	WouldSend  Outcome = "would_send"       // in a dry run
	WouldDrop  Outcome = "would_drop"       // in a dry run
	Superseded Outcome = "superseded"       // its version or a newer one is committed: the dead letter is gone
	Busy       Outcome = "busy"             // pending or leased: somebody works on it, later
	TooOld     Outcome = "too_old_to_judge" // may be forced
	TooLarge   Outcome = "too_large"        // no room for lull-first-sent: the upstream has to publish again
	Empty      Outcome = "empty"            // no queue takes an empty body: the upstream has to publish again
	Foreign    Outcome = "unknown_schema"   // the row has a newer schema
	Gone       Outcome = "gone"             // somebody else took the dead letter away meanwhile
	Dropped    Outcome = "dropped"
	Failed     Outcome = "failed" // with an error
)

// How a dead letter is sent again.
type How struct {
	Auto   bool   // by lull itself: counted apart
	Force  bool   // although it is too old to judge
	DryRun bool   // say what would happen
	By     string // who asked, for the audit; empty for lull itself
}

// ErrUnknown says that there is no dead letter with that id.
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

// With sends one dead letter again, unless its row says otherwise. Those dead letters of its
// message go along that also accepts and whose rows allow it: the message is sent once for all of
// them. It returns their ids, also where sending failed for all. An error leaves the dead letters
// parked, unless it stands beside Sent.
func (d *Service) With(ctx context.Context, id string, how How, also func(deadletter.Facts) bool) (Outcome,
	[]string, error,
) {
	l, ok, err := d.get(ctx, id)
	if err != nil {
		return Failed, nil, fmt.Errorf("get dead letter %s: %w", id, err)
	}
	if !ok {
		return Gone, nil, nil
	}
	// What the caller listed may be old. Only a consistent read of the row decides.
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
	// The others are asked for once the message is known to go: where it does not, each has its own
	// turn, and would ask for all the others.
	if also != nil && l.Hash != "" {
		others, err := d.others(ctx, l, how, also)
		if err != nil {
			return Failed, nil, fmt.Errorf("redrive %s: %w", id, err)
		}
		judged = append(judged, others...)
	}
	// Everything that refuses without a write has been asked by now.
	if how.DryRun {
		return WouldSend, ids(judged[1:]), nil
	}
	return d.send(ctx, q, out, judged, how)
}

// others are the dead letters of a message that may go along with one of them.
func (d *Service) others(ctx context.Context, l deadletter.Letter, how How, also func(deadletter.Facts) bool) (
	[]judgement, error,
) {
	found, err := backoff.Get(ctx, d.Clock, func() ([]deadletter.Facts, error) {
		return d.Letters.Message(ctx, l.Hash)
	})
	if err != nil {
		return nil, err
	}
	// A copy is as old as one of them, so it stands for those alone that are as old.
	found = slices.DeleteFunc(found, func(f deadletter.Facts) bool {
		return f.ID == l.ID || d.sinkOf(f) != d.sinkOf(l.Facts) || f.Lane != l.Lane ||
			!f.FirstSent.Equal(l.FirstSent) || !also(f)
	})
	judged, err := d.judge(ctx, found, how.Force)
	return slices.DeleteFunc(judged, func(j judgement) bool { return j.outcome != Sent }), err
}

// judgement is what its row makes of a dead letter.
type judgement struct {
	deadletter.Facts
	row     shard.Row
	outcome Outcome
}

// judge says what the rows, read consistently, allow.
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
		if f.Doc != "" && f.Key != "" { // else there is nothing to judge it by before it can be decoded
			judged[i].outcome = d.decide(rows[f.Doc], f, force)
		}
	}
	return judged, nil
}

// decide is the rule of design section 10: committed means superseded, and work in progress means
// busy. Age comes last, because only age can be forced.
func (d *Service) decide(r shard.Row, f deadletter.Facts, force bool) Outcome {
	now := d.Clock.Now()
	switch shard.Judge(r, f.Key, f.Key.Class(), false) {
	case shard.Foreign:
		return Foreign
	case shard.Stale, shard.Duplicate:
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

// aged says that the dead letter is older than rows are certain to be kept (design sections 5 and
// 6).
func (d *Service) aged(f deadletter.Facts, now time.Time) bool {
	return d.Config.Lifecycle.Aged(f.FirstSent, now)
}

// supersede takes a dead letter away whose version, or a newer one, is committed.
func (d *Service) supersede(ctx context.Context, f deadletter.Facts, how How) error {
	if how.DryRun {
		return nil
	}
	if err := d.try(ctx, func() error { return d.Letters.Drop(ctx, f.ID) }); err != nil {
		return fmt.Errorf("take away the superseded dead letter %s: %w", f.ID, err)
	}
	d.note(f, journal.Dropped, "superseded: its version or a newer one is committed")
	return nil
}

// copyOf is the copy to be sent, and the queue that takes it. Sent says that there is one.
func (d *Service) copyOf(l deadletter.Letter, how How) (queue.Queue, queue.Outgoing, Outcome, error) {
	first := l.FirstSent
	// The copy must be young enough for receive to accept it.
	if how.Force {
		first = later(first, d.judgeable(d.Clock.Now()))
	}
	// A queue takes no empty body, so the attempt could only fail.
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
	// A dead letter without a lane goes back by the live lane.
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

// sinkOf is the sink whose queue takes a copy: the one that the dead letter comes from. Where
// receive skips what belongs elsewhere, that would lose it if it came to the wrong queue, or if its
// collection has moved since: it goes to its own sink. Not where match rules name sinks: whoever
// may send to one of them must not reach another one by a redrive.
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

// send takes the marks off the rows, sends the copy and only then notes it in the dead letters,
// which stay. A crash in between sends it again later, and every copy is judged by version. The
// first of the judged is the dead letter itself; others may turn out not to go along.
func (d *Service) send(ctx context.Context, q queue.Queue, out queue.Outgoing, judged []judgement, how How) (Outcome,
	[]string, error,
) {
	now := d.Clock.Now()
	// The marks go first, because receive acknowledges a copy whose key is still marked dead.
	var going []judgement
	var failed error
	for i, j := range judged {
		outcome, err := Sent, error(nil)
		// What came to the wrong queue is not the dead letter that the row's mark stands for.
		if j.row.Dead == j.Key && j.Key != "" && j.ID == deadletter.ID(j.Doc, j.Key, "") {
			outcome, err = d.unmark(ctx, j.Facts, how)
		}
		if i == 0 && (outcome != Sent || err != nil) {
			return outcome, nil, err
		}
		// One that does not go along has its own turn.
		if failed = cmp.Or(failed, err); outcome == Sent && err == nil {
			going = append(going, j)
		}
	}
	l := judged[0].Facts
	if err := queue.ErrorAt(q.Send(ctx, []queue.Outgoing{out}), 0); err != nil {
		return Failed, ids(going[1:]), fmt.Errorf("send dead letter %s again: %w", l.ID, err)
	}
	// The copy is under way. A failure from here on is reported beside Sent.
	for _, j := range going {
		err := d.try(ctx, func() error { return d.Letters.MarkRedriven(ctx, j.ID, now, how.Auto) })
		if err != nil {
			failed = cmp.Or(failed, fmt.Errorf("mark dead letter %s as redriven (it was sent): %w", j.ID, err))
		}
		d.note(j.Facts, journal.Redriven, d.detail(j.Facts, how))
	}
	return Sent, ids(going[1:]), failed
}

func ids(judged []judgement) []string {
	out := make([]string, len(judged))
	for i := range judged {
		out[i] = judged[i].ID
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

// unmark is REDRIVE: dead = k goes, so that the copy is not taken for stored. A refusal is judged
// by the row that it returns.
func (d *Service) unmark(ctx context.Context, f deadletter.Facts, how How) (Outcome, error) {
	_, err := d.rows().Write(ctx, shard.Redrive(f.Doc, f.Key, shard.MicrosOf(d.Clock.Now())))
	if err == nil {
		return Sent, nil
	}
	refused, ok := shard.AsRefused(err)
	if !ok {
		return Failed, fmt.Errorf("take the mark of dead letter %s off: %w", f.ID, err)
	}
	outcome := d.decide(refused.Row, f, how.Force)
	if outcome == Superseded {
		return outcome, d.supersede(ctx, f, how)
	}
	return outcome, nil // Sent where the mark was gone already, perhaps by this very call
}

// judgeable is the oldest time of sending that receive still judges as new after the redrive span:
// what a forced copy pretends, and no later, so that under policy arrival it passes for as old as
// it can.
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

// try is the one layer of retries around a call that may be repeated.
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

// note speaks of a dead letter, not of a message.
func (d *Service) note(f deadletter.Facts, step journal.Step, detail string) {
	d.Journal.Note(journal.Note{
		Step: step, At: d.Clock.Now(), Doc: f.Doc, Key: f.Key, Sink: f.Sink, Lane: f.Lane, Event: f.Event, Sent: f.Sent,
		Detail: detail, Letter: f.ID,
	})
}
