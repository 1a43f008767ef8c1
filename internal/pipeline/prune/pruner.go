// SPDX-License-Identifier: Apache-2.0

package prune

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/pipeline/redrive"
	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/fanout"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/seam/rows"
	"github.com/lullhq/lull/internal/seam/schedule"
	"github.com/lullhq/lull/internal/shard"
)

// Pruner prunes one sink. All fields are required, except Launcher, which only Rescue and samples
// need, and fields whose comment says what their zero value means.
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

	// Fired is the time at which the rule fired that started this run, by another clock than Clock.
	// Zero means unknown.
	Fired time.Time

	// NewToken makes the token of a run. The token is random, so that a run never ends the turn of
	// another run.
	NewToken func() shard.Token
	// NewID makes the id of a rescued flight: a new ULID. prune lists flights by age, so it needs
	// ids that sort by time.
	NewID    func(now time.Time) flight.ID
	Budget   Budget        // fields that are zero get their defaults
	Parallel fanout.Runner // nil for goroutines
}

// Budget bounds one run.
type Budget struct {
	Time time.Duration // time for all segments together; default 40s, less than the function's time-out
	// number of rows that a run reads; default 100,000. It doubles for each day that a pass is late
	Rows    int
	Events  int // number of scheduled events that a run sends; default 20,000
	Flights int // number of flights that a run examines; default 2,000
	Letters int // number of dead letters that a run examines; default 2,000
}

func (b Budget) complete() Budget {
	return Budget{
		Time: cmp.Or(max(b.Time, 0), 40*time.Second), Rows: cmp.Or(max(b.Rows, 0), 100_000),
		Events: cmp.Or(max(b.Events, 0), 20_000), Flights: cmp.Or(max(b.Flights, 0), 2_000),
		Letters: cmp.Or(max(b.Letters, 0), 2_000),
	}
}

const (
	// maxParallel is the number of writes that may run at the same time.
	maxParallel = 16
	// endMargin is how much longer than its budget a run keeps its lease. Writes that have begun,
	// and END RUN, need this time.
	endMargin = 15 * time.Second
)

// Report counts what one run did.
type Report struct {
	Ran      bool // false if it was another run's turn
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
	sent   map[string]bool // dead letters whose message this run redrove

	suspects []*suspect // the flights that may be stuck, oldest first
}

// cursors says where the next run continues, and since when no run was missed. The run row stores
// the cursors.
type cursors struct {
	Flights string       `json:"flights,omitempty"`
	Letters string       `json:"letters,omitempty"`
	Ended   shard.Micros `json:"ended,omitempty"` // when the last complete run started
	// time of the first run after an outage of the table or of prune; 0 if no run was ever missed
	Since shard.Micros `json:"since,omitempty"`
}

// missed records the time if runs were missed, because the table was unreachable or prune did not
// run.
func (c *cursors) missed(now shard.Micros, every time.Duration) {
	// The limit is two intervals, because no run was missed if a run only starts a little late.
	if c.Ended != 0 && c.Ended.Add(2*every) < now {
		c.Since = now
	}
	c.Ended = now
}

// Run does one run, if it is this caller's turn. The error joins the failures of all segments and
// names the segments. The report is valid even if there is an error.
func (p *Pruner) Run(ctx context.Context) (Report, error) {
	r := &run{
		Pruner: p, start: p.Clock.Now(), token: p.NewToken(), budget: p.Budget.complete(), sent: map[string]bool{},
	}
	// If the clock is ahead, rows look older than they are, and would be deleted too early. So a
	// run is refused if its clock is wrong, or if it starts more than two intervals after its rule
	// fired.
	if off := clock.Off(r.start, p.Fired, 2*p.Config.Lifecycle.PruneEvery); off != 0 {
		detail := "this clock is off by " + off.String()
		p.note(journal.Note{Step: journal.ClockOff, Detail: detail})
		return r.report, fmt.Errorf("start a run: %s, by the time of the rule", detail)
	}
	// The conditional write of the run row comes first. A caller that is refused does nothing else.
	err := inTurn(ctx, r, "prune-"+p.Sink, &r.state, func() error {
		r.report.Ran = true
		// Record missed runs before the segments run, because flights are judged by how long the
		// table has been healthy.
		r.state.missed(shard.MicrosOf(r.start), r.Config.Lifecycle.PruneEvery)
		return errors.Join(r.segments(ctx)...)
	})
	return r.report, err
}

// inTurn calls do if the run row with that name says that it is this caller's turn. It loads saved
// from the run row before do, and stores saved after do, even if do fails.
func inTurn[S any](ctx context.Context, r *run, name string, saved *S, do func() error) error {
	text, mine, err := r.begin(ctx, name)
	if err != nil {
		return fmt.Errorf("start a run: %w", err)
	}
	if !mine {
		return nil
	}
	if json.Unmarshal([]byte(text), saved) != nil {
		*saved = *new(S) // another version of lull saved this: starting the pass again does no harm
	}
	failed := do()
	next, err := json.Marshal(saved)
	if err == nil {
		// The time for the segments may be over, but the turn has some time left.
		last, cancel := r.Clock.Deadline(context.WithoutCancel(ctx), endMargin)
		err = r.end(last, name, string(next))
		cancel()
	}
	if err != nil {
		err = fmt.Errorf("end the run: %w", err)
	}
	return errors.Join(failed, err)
}

// segments runs the segments one after the other, the urgent segments first. Each segment has its
// share of the remaining time.
func (r *run) segments(ctx context.Context) (failures []error) {
	var err error
	if r.health, err = r.table().One(ctx, shard.HealthRow(r.Sink), shard.Eventual); err != nil {
		failures = append(failures, fmt.Errorf("read the sink's health: %w", err))
		r.health = shard.Row{OpenUntil: shard.MicrosOf(r.start) + 1} // the sink is not known to be healthy
	}
	// Later segments share the time that a segment does not use.
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
		// A segment that runs out of time has not failed, because the next run continues.
		if err != nil && !(errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil) {
			failures = append(failures, fmt.Errorf("%s: %w", s.name, err))
		}
	}
	return failures
}

// begin takes the turn by writing the run row, and returns what the last run saved there. There is
// at most one run in an interval. The row allows a tenth less than an interval, because a rule does
// not fire exactly to the second.
func (r *run) begin(ctx context.Context, name string) (saved string, mine bool, err error) {
	now := shard.MicrosOf(r.Clock.Now())
	every := r.Config.Lifecycle.PruneEvery
	// The turn lasts as long as a run may take, so that a killed run does not block other runs for
	// longer.
	w := shard.StartRun(name, r.token, now, now.Add(r.budget.Time+endMargin), every-every/10)
	old, err := r.table().Write(ctx, w)
	if refused, ok := shard.AsRefused(err); ok {
		return refused.Row.Cursor, refused.Row.Owner == r.token, nil // the turn is ours if only the answer was lost
	}
	return old.Cursor, err == nil, err
}

// end gives the turn back and saves where the next run continues. If another run has the turn by
// now, end saves nothing.
func (r *run) end(ctx context.Context, name, save string) error {
	_, err := r.table().Write(ctx, shard.EndRun(name, r.token, save))
	if _, ok := shard.AsRefused(err); ok {
		return nil
	}
	return err
}

// table accesses the rows with retries.
func (p *Pruner) table() rows.Table { return rows.Table{Store: p.Shards, Clock: p.Clock} }

// try retries a call that may be repeated. Only try retries in this package.
func (p *Pruner) try(ctx context.Context, f func() error) error {
	return backoff.Do(ctx, p.Clock, f)
}

// page gets one page of a list, with retries. An empty cursor in the answer means the end of the
// list.
func page[T any](ctx context.Context, p *Pruner, get func() ([]T, string, error)) (list []T, next string, err error) {
	err = p.try(ctx, func() (err error) {
		list, next, err = get()
		return err
	})
	return list, next, err
}

// failures counts failures in a report, and keeps the first error.
type failures struct {
	count *int
	first error
}

// add counts a failure. If err is nil, add does nothing.
func (f *failures) add(err error) {
	if err != nil {
		*f.count++
		f.keep(err)
	}
}

// keep keeps an error without counting it, because the error does not concern an item, or is
// counted already.
func (f *failures) keep(err error) {
	if f.first == nil {
		f.first = err
	}
}

// segmentError returns the error of the segment, or nil if nothing failed. The error has the number
// of failures and the first error.
func (f *failures) segmentError(all int) error {
	if f.first == nil {
		return nil
	}
	return fmt.Errorf("%d of %d failed, the first: %w", *f.count, all, f.first)
}

// mine reports whether this pruner handles an item of the given sink. If that sink is not in the
// settings any more, the pruner of the collection's current sink handles the item.
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

// service makes the service that does the automatic redrives. Operators use the same service.
func (p *Pruner) service() *redrive.Service {
	return &redrive.Service{
		Shards: p.Shards, Letters: p.Letters, Flights: p.Flights, Config: p.Config, Clock: p.Clock, Journal: p.Journal,
		// This function cannot send to the queue of another sink. The pruner of the other sink
		// redrives its dead letters.
		Queues: func(sink string, lane flight.Lane) queue.Queue {
			if _, known := p.Config.Sinks[sink]; known && sink != p.Sink {
				return nil
			}
			return p.queue(lane)
		},
	}
}
