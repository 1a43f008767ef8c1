// SPDX-License-Identifier: Apache-2.0

package rebuild

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/rows"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// Service rebuilds collections of one sink. All fields are required, except Stale and Idle. It is
// safe for concurrent use.
type Service struct {
	Shards   shard.Store
	Sink     sink.Rebuilder
	SinkName string
	Config   *config.Config
	Clock    clock.Clock
	Stale    time.Duration // how old a row that a turn reads may be; 0 if it is never old
	Journal  journal.Journal
	NewToken func() shard.Token // random, fresh at each call
	// Idle reports whether the bulk lane is empty. It is called if the source fills the new index.
	Idle func(ctx context.Context) (bool, error)
}

// Phase is how far a rebuild has come.
type Phase string

// The phases, in their order.
const (
	Creating  Phase = "creating"  // the new index is made
	Announced Phase = "announced" // turns that begin from now on write to both indices
	Filling   Phase = "filling"   // the engine copies the documents
	Sourcing  Phase = "sourcing"  // a resync from the source copies the documents; an operator sends it
	Comparing Phase = "comparing"
	Switching Phase = "switching"
	Tidying   Phase = "tidying" // readers have the new index; old indices are deleted
	Done      Phase = "done"
	Aborted   Phase = "aborted"
)

// Order says what to rebuild.
type Order struct {
	Collection event.Collection
	Mapping    []byte  // JSON of the engine; nil for the mapping of the index in use
	Settings   []byte  // JSON of the engine; these replace settings of the index in use
	Source     bool    // the source fills the new index, not the engine's copy
	Keep       int     // how many earlier indices to keep, including the index that was in use
	Drop       bool    // delete the index that was in use, after the switch
	Allow      int     // how many documents the new index may refuse, or the source may leave out
	Rate       float64 // documents a second of the engine's copy, 0 for no limit
	DryRun     bool
	By         string // the operator, for the audit
}

// Progress says how far a rebuild is.
type Progress struct {
	Collection event.Collection `json:"collection"`
	Phase      Phase            `json:"phase"`
	Name       string           `json:"name"`  // the name that readers use
	Old        string           `json:"old"`   // the index that was in use
	New        string           `json:"new"`   // the index that takes its place
	Alias      bool             `json:"alias"` // the name is an alias, and not the old index itself
	Begun      time.Time        `json:"begun"`
	By         string           `json:"by"`
	Source     bool             `json:"source,omitempty"`
	Keep       int              `json:"keep"`
	Drop       bool             `json:"drop,omitempty"`
	Allow      int              `json:"allow,omitempty"`
	Rate       float64          `json:"rate,omitempty"`
	Total      int64            `json:"total"`            // documents of the old index when the rebuild began
	Done       int64            `json:"done"`             // documents that this phase has copied or compared
	Passes     int              `json:"passes,omitempty"` // number of comparisons, including the current one
	Repaired   int64            `json:"repaired"`         // documents that a comparison found to differ
	Missed     int64            `json:"missed"`           // live writes that did not reach the new index
	Refused    []Refusal        `json:"refused,omitempty"`
	Left       int              `json:"left"` // documents that the new index refuses, or that the source left out
	// With Source, Newer counts the documents that were copied from the index in use. Their rows
	// may have refused the line of the export, because a newer version was committed. NewerIDs
	// names the first of these documents.
	Newer    int      `json:"newer,omitempty"`
	NewerIDs []string `json:"newer_ids,omitempty"`
	Error    string   `json:"error,omitempty"`

	At   shard.Micros `json:"at,omitempty"`   // identifies the rebuild in the health row
	Task string       `json:"task,omitempty"` // the task of the copy in the engine
}

// Refusal is a document that is not in the new index, and why.
type Refusal struct {
	ID     string `json:"id"`
	Reason string `json:"reason"`
}

// Errors of a rebuild that a caller can act on.
var (
	ErrUnderWay = errors.New("a rebuild is under way")
	ErrNone     = errors.New("no rebuild is under way")
	ErrBusy     = errors.New("another program drives the rebuild")
	ErrSwitched = errors.New("readers have the new index already")
	ErrPaused   = errors.New("the sink is paused: `lull resume`, then start or resume the rebuild")
	ErrRefused  = errors.New("documents would be missing from the new index")
)

const (
	// beatEvery is about how long a step waits or works.
	beatEvery = 5 * time.Second
	// lateFor is how long the engine may still carry out a request whose caller has stopped
	// waiting.
	lateFor = 30 * time.Second
	// callTime bounds a call of the engine. A step makes at most two such calls.
	callTime = 25 * time.Second
	// sealLife is how long after SEAL the engine may still carry out a call that switches the name.
	// Such a call starts at most sealMargin after SEAL. It has switchTime to answer, and the engine
	// may carry it out up to another switchTime later.
	sealLife   = time.Minute
	switchTime = 20 * time.Second
	sealMargin = 10 * time.Second
	// maxNamed is how many of the documents that are left out the progress names. A comparison
	// stops after maxLeft of them.
	maxNamed = 10
	maxLeft  = 1000
	// maxPasses is the largest number of comparisons of one program.
	maxPasses = 20
)

// Plan returns the cursor with which a rebuild begins. It changes nothing, except in a dry run. A
// dry run tries the mapping and the settings with an empty index, and deletes that index.
func (s *Service) Plan(ctx context.Context, o Order) (Cursor, error) {
	c := Cursor{Progress: Progress{
		Collection: o.Collection, Phase: Creating, Source: o.Source, Keep: o.Keep, Drop: o.Drop, Allow: o.Allow,
		Rate: o.Rate, By: o.By, Begun: s.Clock.Now().UTC().Truncate(time.Second),
	}}
	stored, lease, taken := s.stored(ctx) // before the index in use, which another rebuild may change
	at, err := s.Sink.Standing(ctx, o.Collection)
	if err != nil {
		return c, err
	}
	c.Known = stored.Known
	c.Name, c.Old, c.Alias, c.Total = at.Name, at.Index, at.Alias, at.Documents
	c.New = at.Name + ".r" + c.Begun.Format("20060102150405")
	if !at.Alias && !o.Drop {
		return c, fmt.Errorf(
			"%s %w: it is an index, not an alias: the switch has to delete it and to give its name to the new "+
				"index: allow that with --drop-old",
			at.Name,
			sink.ErrUnfit,
		)
	}
	if o.DryRun {
		return c, s.try(ctx, c, o)
	}
	switch {
	case errors.Is(taken, ErrNone):
		return c, s.checkPaused(ctx)
	case taken != nil:
		return c, taken
	case lease.After(s.Clock.Now()):
		return c, busy(lease)
	default:
		return c, fmt.Errorf("%w: of collection %s, begun at %s by %s: resume or abort it (`lull rebuild resume`, "+
			"`lull rebuild abort`)", ErrUnderWay, stored.Collection, stored.Begun.Format(time.RFC3339), stored.By)
	}
}

// Continue returns the cursor from which a rebuild is resumed or aborted.
func (s *Service) Continue(ctx context.Context, a Action) (Cursor, error) {
	c, lease, err := s.stored(ctx)
	switch {
	case err != nil:
		return c, err
	case lease.After(s.Clock.Now()):
		return c, busy(lease)
	case a == Abort:
		return c, nil
	case c.Name == "":
		return c, errLost
	}
	return c, s.checkPaused(ctx)
}

func busy(until time.Time) error {
	return fmt.Errorf("%w, at least until %s: wait until then, or stop that program with `lull jobs stop`", ErrBusy,
		until.Format(time.RFC3339))
}

// try makes an empty index with the mapping and the settings of an order, and deletes the index.
// Only the engine knows whether it accepts them. No rebuild uses the name of this index.
func (s *Service) try(ctx context.Context, c Cursor, o Order) error {
	if o.Mapping == nil && o.Settings == nil {
		return nil
	}
	if err := s.checkPaused(ctx); err != nil {
		return err
	}
	name := c.New + ".try"
	err := s.call(ctx, callTime, func(ctx context.Context) error {
		return s.Sink.Create(ctx, sink.NewIndex{
			Collection: o.Collection, Name: name, Like: c.Old, Mapping: o.Mapping, Settings: o.Settings,
		})
	})
	// Create may have made the index although it failed.
	drop := s.call(context.WithoutCancel(ctx), callTime, func(ctx context.Context) error {
		return s.Sink.Drop(ctx, name)
	})
	if err == nil && drop != nil {
		err = fmt.Errorf("the engine accepts the mapping; delete the index %s, which was made to try it: %w", name, drop)
	}
	return err
}

// Status returns the progress of the sink's rebuild, or ErrNone.
func (s *Service) Status(ctx context.Context) (Progress, error) {
	c, _, err := s.stored(ctx)
	return c.Progress, err
}

// stored returns the cursor of the sink's rebuild, and the end of the lease of the program that
// drives it. It also finds a rebuild that a build without jobs began, and a rebuild whose own row
// was lost. It returns ErrNone if there is no rebuild.
func (s *Service) stored(ctx context.Context) (c Cursor, lease time.Time, err error) {
	state, err := s.ledger().Job(ctx, s.id())
	if err != nil && !errors.Is(err, job.ErrNone) {
		return c, lease, err
	}
	rows := []shard.DocID{shard.RunRow(s.id()), shard.HealthRow(s.SinkName)}
	found, err := s.table().Read(ctx, rows, shard.Consistent)
	if err != nil {
		return c, lease, fmt.Errorf("read the rebuild's rows: %w", err)
	}
	before, health := found[0], found[1]
	switch {
	case state.Active():
		c, err = parse(string(state.At))
		c.By, c.Error, lease = state.By, state.Error, state.Lease
	case before.Cursor != "":
		if c, err = parse(before.Cursor); before.Owner != "" {
			lease = before.LeaseUntil.Time()
		}
	}
	switch {
	case err != nil:
		return c, lease, err
	case c.Phase == Done, c.Phase == Aborted: // the rebuild has ended, but the write that empties its row was lost
		c = Cursor{}
	}
	c.Known = state.Saved
	switch {
	case c.Phase == "" && health.RebuildAt == 0:
		return c, lease, ErrNone
	case c.Phase == "":
		c.Progress = Progress{
			Collection: event.Collection(health.RebuildOf), New: health.RebuildInto, At: health.RebuildAt,
			Begun: health.RebuildAt.Time(), Phase: Switching, Missed: health.RebuildMissed, Error: errLost.Error(),
		}
	case c.At == health.RebuildAt:
		c.Missed = health.RebuildMissed
	}
	return c, lease, nil
}

// errLost is the error of a rebuild that only the health row names.
var errLost = errors.New("the progress of the rebuild is lost: abort it (`lull rebuild abort`)")

// adopt empties the row in which a build without jobs stored the rebuild. The row of the job stores
// it now.
func (s *Service) adopt(ctx context.Context) error {
	row, err := s.table().One(ctx, shard.RunRow(s.id()), shard.Consistent)
	if err != nil || row.Cursor == "" {
		return err
	}
	token, now := s.NewToken(), shard.MicrosOf(s.Clock.Now())
	_, err = s.table().Ensure(ctx, shard.StartRun(s.id(), token, now, now.Add(job.StepTime), 0),
		func(row shard.Row) bool { return row.Owner == token })
	if err == nil {
		_, err = s.table().Write(ctx, shard.EndRun(s.id(), token, ""))
	}
	if refused, ok := shard.AsRefused(err); ok {
		return busy(refused.Row.LeaseUntil.Time())
	}
	return err
}

func (s *Service) ledger() job.Ledger { return job.Ledger{Shards: s.Shards, Clock: s.Clock} }

func (s *Service) table() rows.Table { return rows.Table{Store: s.Shards, Clock: s.Clock} }

// id returns the id of the sink's job. Builds without jobs stored the rebuild in the row of this
// name.
func (s *Service) id() string { return JobID(s.SinkName) }

func parse(text string) (c Cursor, err error) {
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return c, fmt.Errorf("read the progress of the rebuild: %w", err)
	}
	return c, nil
}

func (s *Service) health(ctx context.Context) (shard.Row, error) {
	row, err := s.table().One(ctx, shard.HealthRow(s.SinkName), shard.Consistent)
	if err != nil {
		return row, fmt.Errorf("read the sink's health row: %w", err)
	}
	return row, nil
}

// checkPaused returns an error if an operator has paused the sink.
func (s *Service) checkPaused(ctx context.Context) error {
	row, err := s.health(ctx)
	if err == nil && row.PausedAt != 0 {
		err = ErrPaused
	}
	return err
}

// call calls f with a time limit.
func (s *Service) call(ctx context.Context, limit time.Duration, f func(ctx context.Context) error) error {
	call, cancel := s.Clock.Deadline(ctx, limit)
	defer cancel()
	return f(call)
}
