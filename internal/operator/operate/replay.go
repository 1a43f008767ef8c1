package operate

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/lullhq/lull/internal/operator/replay"
	"github.com/lullhq/lull/internal/pipeline/archive"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

// ArchiveRange selects the messages of the archive that lull received at From or later, and before
// To.
type ArchiveRange struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

func (r ArchiveRange) check() error {
	return want(!r.From.IsZero() && r.From.Before(r.To) && r.To.Year() <= 9999, "from, to: want a time and a later one")
}

// ReplayOrder is the next step of a replay.
type ReplayOrder struct {
	ArchiveRange
	Collection shard.Collection `json:"collection,omitempty"`
	Source     string           `json:"source,omitempty"`
	Run        string           `json:"run"`              // a ULID, the same for all steps
	Cursor     string           `json:"cursor,omitempty"` // of the step before; empty for the first step
	Limit      int              `json:"limit,omitempty"`  // how many messages at most, 1 to 500; 0 is 500
	DryRun     bool             `json:"dry_run,omitempty"`
	By         string           `json:"by"` // who asks, for the audit
}

// ReplayStep is the result of one step.
type ReplayStep = replay.Step

// Archived adds up what the archive has of a time.
func (o *Operator) Archived(ctx context.Context, r ArchiveRange) (archive.Size, error) {
	if err := cmp.Or(r.check(), o.archives()); err != nil {
		return archive.Size{}, err
	}
	size, err := archive.Measure(ctx, o.Archive, r.From, r.To)
	if err != nil {
		return size, fmt.Errorf("measure the archive: %w", err)
	}
	return size, nil
}

// Replay does the next step of a replay.
func (o *Operator) Replay(ctx context.Context, r ReplayOrder) (ReplayStep, error) {
	run, err := runOf(r.Run)
	limit, wrong := limited(r.Limit, replay.MaxStep, replay.MaxStep)
	_, known := o.Config.Sources[r.Source]
	err = cmp.Or(err, r.check(), o.archives(), named(r.By), wrong,
		want(known || r.Source == "", "source %q: there is no such source", r.Source), filtered(r.Collection))
	if err != nil {
		return ReplayStep{}, err
	}
	if r.Cursor == "" && !r.DryRun {
		o.Journal.Note(journal.Note{
			Step: journal.Replayed, At: o.Clock.Now(), Until: r.To,
			Detail: fmt.Sprintf("%s to %s in run %s, by %s", r.From.UTC().Format(time.RFC3339),
				r.To.UTC().Format(time.RFC3339), run, r.By),
		})
	}
	s := replay.Service{
		Store: o.Archive, Shards: o.Shards, Config: o.Config, Clock: o.Clock,
		Send: func(ctx context.Context, sink string, out []queue.Outgoing) []error {
			return o.send(ctx, sink, flight.Bulk, out)
		},
		Sources: o.Sources,
	}
	return s.Step(ctx, replay.Order{
		From: r.From, To: r.To, Collection: r.Collection, Source: r.Source, Run: run, DryRun: r.DryRun,
	}, r.Cursor, limit)
}

// archives returns an error if the stack has no archive.
func (o *Operator) archives() error {
	return want(o.Archive != nil,
		"archive.keep: nothing is archived here: set it to how long, such as 14d, and deploy")
}

// Archived adds up what the archive has of a time.
func (c *Client) Archived(ctx context.Context, r ArchiveRange) (archive.Size, error) {
	return ask[ArchiveRange, archive.Size](ctx, c, "archived", r)
}

// Replay does the next step of a replay.
func (c *Client) Replay(ctx context.Context, r ReplayOrder) (ReplayStep, error) {
	return ask[ReplayOrder, ReplayStep](ctx, c, "replay", r)
}
