package rebuild

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/config"
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
	Announced Phase = "announced" // turns start to write to both indices
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
	Keep       int     // how many earlier indices to keep, the one that was in use included
	Drop       bool    // delete the index in use once the new one is in its place
	Allow      int     // how many documents the new index may refuse, or the source may leave out
	Rate       float64 // documents a second of the engine's copy, 0 for no limit
	DryRun     bool
	By         string         // who asked, for the audit
	Report     func(Progress) // called now and then, from one goroutine; may be nil
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
	Total      int64            `json:"total"`            // documents of the old index when it began
	Done       int64            `json:"done"`             // documents that this phase has copied or compared
	Passes     int              `json:"passes,omitempty"` // comparisons, the current one included
	Repaired   int64            `json:"repaired"`         // documents that a comparison found to differ
	Missed     int64            `json:"missed"`           // live writes that the new index did not take
	Refused    []Refusal        `json:"refused,omitempty"`
	Left       int              `json:"left"` // documents that the new index refuses, or that the source left out
	// With Source, Newer counts documents that were copied from the index in use. Their rows may
	// have refused the line of the export, because a newer version was committed. NewerIDs are the
	// first ones.
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
	// holdFor is how long the lease of a rebuild lasts after each save.
	holdFor = 30 * time.Second
	// beatEvery is how often a program extends its lease.
	beatEvery = 5 * time.Second
	// lateFor is how long the engine may still carry out a request whose caller has stopped
	// waiting.
	lateFor = 30 * time.Second
	// callTime bounds a request to the engine.
	callTime = time.Minute
	// sealLife is how long after SEAL the engine may still carry out a call that switches the name.
	// Such a call starts at most sealMargin after SEAL. It has switchTime to answer, and the engine
	// may carry it out up to another switchTime later.
	sealLife   = time.Minute
	switchTime = 20 * time.Second
	sealMargin = 10 * time.Second
	// maxNamed is how many left-out documents are named, and maxLeft how many are counted.
	maxNamed = 10
	maxLeft  = 1000
	// maxPasses is the most comparisons of one run.
	maxPasses = 20
)

// Start starts a rebuild and drives it to its end. If the source fills the new index, it returns
// when the resync may begin. The progress is valid with an error, too: Resume continues from it.
func (s *Service) Start(ctx context.Context, o Order) (Progress, error) {
	p := Progress{
		Collection: o.Collection, Phase: Creating, Source: o.Source, Keep: o.Keep, Drop: o.Drop, Allow: o.Allow,
		Rate: o.Rate, By: o.By, Begun: s.Clock.Now().UTC().Truncate(time.Second),
	}
	at, err := s.Sink.Standing(ctx, o.Collection)
	if err != nil {
		return p, err
	}
	p.Name, p.Old, p.Alias, p.Total = at.Name, at.Index, at.Alias, at.Documents
	p.New = at.Name + ".r" + p.Begun.Format("20060102150405")
	if !at.Alias && !o.Drop {
		return p, fmt.Errorf(
			"%s %w: it is an index, not an alias: without a gap for readers, the new index can only take its "+
				"name in the moment in which it is deleted: say --drop-old",
			at.Name,
			sink.ErrUnfit,
		)
	}
	if o.DryRun {
		return p, s.try(ctx, p, o)
	}
	r, err := s.take(ctx, o.Report)
	if err != nil {
		return p, err
	}
	if r.p.Phase != "" {
		return r.give(
			ctx,
			fmt.Errorf("%w: of %s, begun at %s by %s: resume it, or abort it", ErrUnderWay, r.p.Collection,
				r.p.Begun.Format(time.RFC3339), r.p.By),
		)
	}
	if err := r.awake(ctx); err != nil {
		return r.give(ctx, err)
	}
	r.p, r.order = p, o
	if err := r.save(ctx); err != nil {
		return r.give(ctx, err)
	}
	r.audit("begun: %s beside %s", p.New, p.Old)
	return r.give(ctx, r.drive(ctx))
}

// try makes an empty index with the mapping and the settings of an order, and deletes it. Only the
// engine knows whether it accepts them. No rebuild uses the name.
func (s *Service) try(ctx context.Context, p Progress, o Order) error {
	if o.Mapping == nil && o.Settings == nil {
		return nil
	}
	r := run{Service: s, p: p}
	if err := r.awake(ctx); err != nil {
		return err
	}
	name := p.New + ".try"
	err := r.call(ctx, callTime, func(ctx context.Context) error {
		return s.Sink.Create(ctx, sink.NewIndex{
			Collection: o.Collection, Name: name, Like: p.Old, Mapping: o.Mapping, Settings: o.Settings,
		})
	})
	// Create may have made the index although it failed.
	drop := r.call(context.WithoutCancel(ctx), callTime, func(ctx context.Context) error {
		return s.Sink.Drop(ctx, name)
	})
	if err == nil && drop != nil {
		err = fmt.Errorf("the engine takes the mapping; delete the index %s, which tried it: %w", name, drop)
	}
	return err
}

// Resume continues the rebuild that is under way. A nil allow keeps the number of documents that
// may be left out.
func (s *Service) Resume(ctx context.Context, by string, allow *int, report func(Progress)) (Progress, error) {
	r, err := s.take(ctx, report)
	if err != nil {
		return Progress{}, err
	}
	switch r.p.Phase {
	case "":
		return r.give(ctx, ErrNone)
	case Creating:
		return r.give(ctx, errors.New("it was killed before its index was made: abort it, and begin anew"))
	case Sourcing:
		r.p.Phase = Comparing
	}
	if err := r.awake(ctx); err != nil {
		return r.give(ctx, err)
	}
	if allow != nil {
		r.p.Allow = *allow
	}
	r.p.By = by
	r.audit("resumed: %s", r.p.Phase)
	return r.give(ctx, r.drive(ctx))
}

// Abort ends the rebuild that is under way, and deletes its index. It returns ErrSwitched if
// readers already use that index.
func (s *Service) Abort(ctx context.Context, by string, report func(Progress)) (Progress, error) {
	r, err := s.take(ctx, report)
	if err != nil {
		return Progress{}, err
	}
	row, err := r.health(ctx)
	if err != nil {
		return r.give(ctx, err)
	}
	if r.p.Phase == "" && row.RebuildAt != 0 { // its own row was lost
		r.p = Progress{
			Collection: event.Collection(row.RebuildOf), New: row.RebuildInto, At: row.RebuildAt, Phase: Comparing,
		}
	}
	if r.p.Phase == "" {
		return r.give(ctx, ErrNone)
	}
	r.p.By = by
	return r.give(ctx, r.abort(ctx, row))
}

// Status returns the progress of the sink's rebuild, or ErrNone.
func (s *Service) Status(ctx context.Context) (Progress, error) {
	found, err := s.table().
		Read(ctx, []shard.DocID{shard.RunRow(s.run()), shard.HealthRow(s.SinkName)}, shard.Consistent)
	if err != nil {
		return Progress{}, fmt.Errorf("read the rebuild's rows: %w", err)
	}
	p, err := parse(found[0].Cursor)
	switch health := found[1]; {
	case err != nil:
		return p, err
	case p.Phase == "" && health.RebuildAt == 0:
		return p, ErrNone
	case p.Phase == "":
		return Progress{
			Collection: event.Collection(health.RebuildOf), New: health.RebuildInto, Missed: health.RebuildMissed,
			Begun: health.RebuildAt.Time(), Error: "its own row is lost: abort it",
		}, nil
	case p.At == health.RebuildAt:
		p.Missed = health.RebuildMissed
	}
	return p, nil
}

func (s *Service) table() rows.Table { return rows.Table{Store: s.Shards, Clock: s.Clock} }

// run is the name of the row that stores the progress.
func (s *Service) run() string { return "rebuild-" + s.SinkName }

func parse(text string) (p Progress, err error) {
	if text == "" {
		return p, nil
	}
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return p, fmt.Errorf("read how far the rebuild is: %w", err)
	}
	return p, nil
}
