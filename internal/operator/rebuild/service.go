package rebuild

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/clock"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/rows"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// Service rebuilds collections of one sink. All fields are required but Stale and Idle. It is safe
// for concurrent use.
type Service struct {
	Shards   shard.Store
	Sink     sink.Rebuilder
	SinkName string
	Config   *config.Config
	Clock    clock.Clock
	Stale    time.Duration // how old a row may be that a turn reads; 0 where it is never old
	Journal  journal.Journal
	NewToken func() shard.Token // random, fresh at each call
	// Idle reports whether nothing waits in the bulk lane any more. It is asked where the source fills
	// the new index.
	Idle func(ctx context.Context) (bool, error)
}

// Phase is how far a rebuild has come.
type Phase string

// The phases, in their order.
const (
	Creating  Phase = "creating"  // the new index is made
	Announced Phase = "announced" // writes begin to go to both
	Filling   Phase = "filling"   // by the engine's copy
	Sourcing  Phase = "sourcing"  // by a resync from the source, which somebody else sends
	Comparing Phase = "comparing"
	Switching Phase = "switching"
	Tidying   Phase = "tidying" // readers have the new index; what is not needed goes
	Done      Phase = "done"
	Aborted   Phase = "aborted"
)

// Order says what to rebuild.
type Order struct {
	Collection event.Collection
	Mapping    []byte  // JSON of the engine; nil for that of the index in use
	Settings   []byte  // JSON of the engine, over those of the index in use
	Source     bool    // the source fills the new index, not the engine's copy
	Keep       int     // how many indices of earlier rebuilds stay, the one that was in use too
	Drop       bool    // delete the index in use once the new one is in its place
	Allow      int     // how many documents the new index may refuse, or the source may leave out
	Rate       float64 // documents a second of the engine's copy, 0 for no limit
	DryRun     bool
	By         string         // who asked, for the audit
	Report     func(Progress) // called now and then, from one goroutine; may be nil
}

// Progress is how a rebuild stands.
type Progress struct {
	Collection event.Collection `json:"collection"`
	Phase      Phase            `json:"phase"`
	Name       string           `json:"name"`  // that readers use
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
	Done       int64            `json:"done"`             // of the phase: copied, or compared
	Passes     int              `json:"passes,omitempty"` // comparisons, the one under way too
	Repaired   int64            `json:"repaired"`         // documents that a comparison found to differ
	Missed     int64            `json:"missed"`           // writes beside it that the new index did not take
	Refused    []Refusal        `json:"refused,omitempty"`
	Left       int              `json:"left"` // documents that the new index refuses, or that the source left out
	Error      string           `json:"error,omitempty"`

	At   shard.Micros `json:"at,omitempty"`   // what the health row knows it by
	Task string       `json:"task,omitempty"` // of the engine's copy
}

// Refusal is a document that is not in the new index, and why.
type Refusal struct {
	ID     string `json:"id"`
	Reason string `json:"reason"`
}

// Errors of a rebuild that somebody else can do something about.
var (
	ErrUnderWay = errors.New("a rebuild is under way")
	ErrNone     = errors.New("no rebuild is under way")
	ErrBusy     = errors.New("another program drives the rebuild")
	ErrSwitched = errors.New("readers have the new index already")
	ErrRefused  = errors.New("documents would be missing from the new index")
)

const (
	// holdFor is for how long a program has a rebuild to itself without a sign of life.
	holdFor = 30 * time.Second
	// beatEvery is how often it gives one.
	beatEvery = 5 * time.Second
	// lateFor is for how long a request of a program that was killed may still be carried out.
	lateFor = 30 * time.Second
	// callTime bounds a request to the engine.
	callTime = time.Minute
	// sealLife is how long after SEAL a call that switches the name may still be carried out, and
	// switchTime how long it is waited for.
	sealLife   = time.Minute
	switchTime = 20 * time.Second
	// maxNamed is how many documents that are left out are named, maxLeft how many are counted.
	maxNamed = 10
	maxLeft  = 1000
	// maxPasses is how often the indices are compared at most.
	maxPasses = 20
)

// Start begins a rebuild and drives it to its end, or, where the source fills the new index, until
// that may begin. The progress is valid beside an error, too: Resume goes on from it.
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
		return p, nil
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
	r.p, r.order = p, o
	if err := r.save(ctx); err != nil {
		return r.give(ctx, err)
	}
	r.audit("begun: %s beside %s", p.New, p.Old)
	return r.give(ctx, r.drive(ctx))
}

// Resume goes on with the rebuild that is under way. Nil changes nothing of how many documents may
// be left out.
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
	if allow != nil {
		r.p.Allow = *allow
	}
	r.p.By = by
	r.audit("resumed: %s", r.p.Phase)
	return r.give(ctx, r.drive(ctx))
}

// Abort ends the rebuild that is under way, and deletes its index. ErrSwitched says that readers
// have it already.
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

// Status says how the rebuild of the sink stands; ErrNone where there is none.
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

// run is the name of the row that keeps how far a rebuild is.
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
