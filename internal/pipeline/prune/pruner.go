package prune

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/lullhq/lull/internal/backoff"
	"github.com/lullhq/lull/internal/clock"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/deadletter"
	"github.com/lullhq/lull/internal/fanout"
	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/internal/redrive"
	"github.com/lullhq/lull/internal/rows"
	"github.com/lullhq/lull/internal/schedule"
	"github.com/lullhq/lull/internal/shard"
)

// Pruner is prune for one sink. All fields are required, except Launcher, which only Rescue and
// samples need, and those that name their zero value.
type Pruner struct {
	Shards   shard.Store
	Scanner  shard.Scanner
	Flights  flight.Store
	Letters  deadletter.Store
	Schedule schedule.Store
	Live     queue.Queue
	Bulk     queue.Queue
	Launcher flight.Launcher
	Config   *config.Config
	Sink     string
	Clock    clock.Clock
	Journal  journal.Journal

	// Fired is when the rule fired that asked for this run, by a clock that is not Clock. The zero
	// time is for a run that nobody dated.
	Fired time.Time

	// NewToken makes the token of a run: random, so that a run never ends the turn of another.
	NewToken func() shard.Token
	// NewID makes the id of a rescued flight: a fresh ULID. The segment of the flights relies on it
	// that ids sort by time.
	NewID    func(now time.Time) flight.ID
	Budget   Budget        // zero fields have the defaults
	Parallel fanout.Runner // nil for goroutines
}

// Budget bounds one run.
type Budget struct {
	Time    time.Duration // for all segments together; default 40s. The function's time-out must be longer
	Rows    int           // rows read; default 100,000. It doubles while a pass takes longer than a day
	Events  int           // scheduled events sent; default 20,000
	Flights int           // flights looked at; default 2,000
	Letters int           // dead letters looked at; default 2,000
}

func (b Budget) complete() Budget {
	return Budget{
		Time: cmp.Or(max(b.Time, 0), 40*time.Second), Rows: cmp.Or(max(b.Rows, 0), 100_000),
		Events: cmp.Or(max(b.Events, 0), 20_000), Flights: cmp.Or(max(b.Flights, 0), 2_000),
		Letters: cmp.Or(max(b.Letters, 0), 2_000),
	}
}

const (
	// maxParallel bounds the writes in flight.
	maxParallel = 16
	// endMargin is how long a run's own lease outlives its budget: for writes under way and for END
	// RUN.
	endMargin = 15 * time.Second
)

// Report is what one run did. Counts are of this run.
type Report struct {
	Ran      bool // false: it was not this caller's turn
	Schedule ScheduleReport
	Letters  LettersReport
	Flights  FlightsReport
	Rows     RowsReport
}

// run is one run of the pruner.
type run struct {
	*Pruner
	start  time.Time
	token  shard.Token
	budget Budget
	report Report
	state  cursors
	health shard.Row       // the sink's health row
	sent   map[string]bool // dead letters whose message this run has sent

	suspects []*suspect // by age
}

// cursors is where the next run goes on, and since when runs have ended one after the other, kept
// in the run row. Times are microseconds since 1970.
type cursors struct {
	Flights string       `json:"flights,omitempty"`
	Letters string       `json:"letters,omitempty"`
	Ended   shard.Micros `json:"ended,omitempty"` // the last run that came to its end
	// the first one after the table was away for longer than a run may be missed; 0 for always
	Since shard.Micros `json:"since,omitempty"`
}

// missed notes where runs were missed: the table was away, or prune was.
func (c *cursors) missed(now shard.Micros, every time.Duration) {
	// Two intervals, because a run that starts a little late is not a run that was missed.
	if c.Ended != 0 && c.Ended.Add(2*every) < now {
		c.Since = now
	}
	c.Ended = now
}

// Run does one run, if it is this caller's turn. The error joins what failed, each named by its
// segment; the report is valid beside it.
func (p *Pruner) Run(ctx context.Context) (Report, error) {
	r := &run{
		Pruner: p, start: p.Clock.Now(), token: p.NewToken(), budget: p.Budget.complete(), sent: map[string]bool{},
	}
	// By a clock that is ahead, rows are older than they are kept. A run that is late by two
	// intervals is not started any more.
	if off := clock.Off(r.start, p.Fired, 2*p.Config.Lifecycle.PruneEvery); off != 0 {
		detail := "this clock is off by " + off.String()
		p.note(journal.Note{Step: journal.ClockOff, Detail: detail})
		return r.report, fmt.Errorf("start a run: %s, by the rule's", detail)
	}
	// The conditional "last run" row comes first. A caller that does not get it does nothing else.
	err := inTurn(ctx, r, "prune-"+p.Sink, &r.state, func() error {
		r.report.Ran = true
		// Noted before the segments, because flights are judged by how long the table has been there.
		r.state.missed(shard.MicrosOf(r.start), r.Config.Lifecycle.PruneEvery)
		return errors.Join(r.segments(ctx)...)
	})
	return r.report, err
}

// inTurn does something if it is this caller's turn by the run row of that name. It goes on from
// what the last turn saved there, and saves where the next one goes on, whatever failed.
func inTurn[S any](ctx context.Context, r *run, name string, saved *S, do func() error) error {
	text, mine, err := r.begin(ctx, name)
	if err != nil {
		return fmt.Errorf("start a run: %w", err)
	}
	if !mine {
		return nil
	}
	if json.Unmarshal([]byte(text), saved) != nil {
		*saved = *new(S) // of another version: a pass from the beginning does no harm
	}
	failed := do()
	next, err := json.Marshal(saved)
	if err == nil {
		// The time of a segment may be over, that of the turn is not.
		last, cancel := r.Clock.Deadline(context.WithoutCancel(ctx), endMargin)
		err = r.end(last, name, string(next))
		cancel()
	}
	if err != nil {
		err = fmt.Errorf("end the run: %w", err)
	}
	return errors.Join(failed, err)
}

// segments runs one segment after the other, the urgent ones first, each with its share of the time
// that is left.
func (r *run) segments(ctx context.Context) (failures []error) {
	var err error
	if r.health, err = r.table().One(ctx, shard.HealthRow(r.Sink), shard.Eventual); err != nil {
		failures = append(failures, fmt.Errorf("read the sink's health: %w", err))
		r.health = shard.Row{OpenUntil: shard.MicrosOf(r.start) + 1} // not known to be healthy
	}
	// The time that a segment does not use is shared by those after it.
	end := r.start.Add(r.budget.Time)
	list := []struct {
		name string
		do   func(context.Context) error
	}{
		{"scheduled events", r.schedule},
		{"dead letters", r.letters},
		{"flights", r.flights},
		{"rows", r.rows},
		{"sample", r.sample},
	}
	for i, s := range list {
		share := end.Sub(r.Clock.Now()) / time.Duration(len(list)-i)
		mine, cancel := r.Clock.Deadline(ctx, share)
		err := s.do(mine)
		cancel()
		// out of time is not a failure: the next run goes on
		if err != nil && !(errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil) {
			failures = append(failures, fmt.Errorf("%s: %w", s.name, err))
		}
	}
	return failures
}

// begin takes the turn by the run row and returns what the last run saved there. It is at most one
// per interval: a tenth less than the rule's, which does not fire to the second.
func (r *run) begin(ctx context.Context, name string) (saved string, mine bool, err error) {
	now := shard.MicrosOf(r.Clock.Now())
	every := r.Config.Lifecycle.PruneEvery
	// The turn lasts as long as a run may take, so a run that dies blocks the others for no longer.
	w := shard.StartRun(name, r.token, now, now.Add(r.budget.Time+endMargin), every-every/10)
	old, err := r.table().Write(ctx, w)
	if refused, ok := shard.AsRefused(err); ok {
		return refused.Row.Cursor, refused.Row.Owner == r.token, nil // ours where only the answer was lost
	}
	return old.Cursor, err == nil, err
}

// end gives the turn back and saves where the next run goes on. Where somebody else has the turn by
// now it is not ours to save.
func (r *run) end(ctx context.Context, name, save string) error {
	_, err := r.table().Write(ctx, shard.EndRun(name, r.token, save))
	if _, ok := shard.AsRefused(err); ok {
		return nil
	}
	return err
}

// table is the rows with retries.
func (p *Pruner) table() rows.Table { return rows.Table{Store: p.Shards, Clock: p.Clock} }

// try is the one layer of retries around a call that may be repeated.
func (p *Pruner) try(ctx context.Context, f func() error) error {
	return backoff.Do(ctx, p.Clock, f)
}

// page gets one page of a list, with retries. An empty cursor in the answer means that the list has
// ended.
func page[T any](ctx context.Context, p *Pruner, get func() ([]T, string, error)) (list []T, next string, err error) {
	err = p.try(ctx, func() (err error) {
		list, next, err = get()
		return err
	})
	return list, next, err
}

// failures counts in a report what failed, and keeps the first error.
type failures struct {
	count *int
	first error
}

// add counts what failed; without an error it does nothing.
func (f *failures) add(err error) {
	if err != nil {
		*f.count++
		f.keep(err)
	}
}

// keep keeps an error that stands for nothing that is counted here, or is counted already.
func (f *failures) keep(err error) {
	if f.first == nil {
		f.first = err
	}
}

// of is the segment's error, nil for none: how many failed of all, and the first reason.
func (f *failures) of(all int) error {
	if f.first == nil {
		return nil
	}
	return fmt.Errorf("%d of %d failed, the first: %w", *f.count, all, f.first)
}

// mine reports whether what is meant for a sink, in a collection, is this pruner's: of a sink that
// is configured no more, it is the collection's now.
func (p *Pruner) mine(sink string, doc shard.DocID) bool {
	if _, ok := p.Config.Sinks[sink]; !ok {
		sink = p.Config.SinkOf(doc)
	}
	return sink == p.Sink
}

// queue returns the queue of a lane. Every lane but bulk counts as live.
func (p *Pruner) queue(lane flight.Lane) queue.Queue {
	if lane == flight.Bulk {
		return p.Bulk
	}
	return p.Live
}

func (p *Pruner) note(n journal.Note) {
	n.At, n.Sink = p.Clock.Now(), p.Sink
	p.Journal.Note(n)
}

// service is what operators use, for the automatic redrives.
func (p *Pruner) service() *redrive.Service {
	return &redrive.Service{
		Shards: p.Shards, Letters: p.Letters, Flights: p.Flights, Config: p.Config, Clock: p.Clock, Journal: p.Journal,
		// There is no queue of another sink here: the pruner of that sink redrives into it.
		Queues: func(sink string, lane flight.Lane) queue.Queue {
			if _, known := p.Config.Sinks[sink]; known && sink != p.Sink {
				return nil
			}
			return p.queue(lane)
		},
	}
}
