// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/operator/replay"
	"github.com/lullhq/lull/internal/pipeline/archive"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/source"
)

// ArchiveRange selects the messages of the archive that lull received at From or later, and before
// To.
type ArchiveRange struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

func (r ArchiveRange) check() error {
	return want(!r.From.IsZero() && r.From.Before(r.To) && r.To.Year() <= 9999,
		"from, to: want a time and a later time")
}

// ReplayOrder is the next step of a replay.
type ReplayOrder struct {
	ArchiveRange
	Collection shard.Collection `json:"collection,omitempty"`
	Source     string           `json:"source,omitempty"`
	Run        string           `json:"run"`              // a ULID, the same for all steps
	Cursor     string           `json:"cursor,omitempty"` // Next of the step before; empty for the first step
	Limit      int              `json:"limit,omitempty"`  // how many messages at most, 1 to 500; 0 is 500
	DryRun     bool             `json:"dry_run,omitempty"`
	By         string           `json:"by"` // the operator, for the audit
}

// ReplayStep is the result of one step.
type ReplayStep = replay.Step

// replayer sends the messages of the archive again.
type replayer struct {
	layout
	records
	sender

	Archive archive.Store // nil if the stack archives nothing
	Sources *source.Set
	Journal journal.Journal
}

// checkReplay refuses an order that no step can carry out.
func (o *replayer) checkReplay(r ReplayOrder) error {
	_, known := o.Config.Sources[r.Source]
	_, wrong := runOf(r.Run)
	return cmp.Or(wrong, r.check(), o.archives(), named(r.By),
		want(known || r.Source == "", "source %q: there is no such source", r.Source), filtered(r.Collection))
}

// Archived adds up the messages and bytes that the archive has in a time range.
func (o *replayer) Archived(ctx context.Context, r ReplayOrder) (archive.Size, error) {
	if err := o.checkReplay(r); err != nil {
		return archive.Size{}, err
	}
	size, err := archive.Measure(ctx, o.Archive, r.From, r.To)
	if err != nil {
		return size, fmt.Errorf("measure the archive: %w", err)
	}
	return size, nil
}

// Replay does the next step of a replay.
func (o *replayer) Replay(ctx context.Context, r ReplayOrder) (ReplayStep, error) {
	run, _ := runOf(r.Run)
	limit, wrong := limited(r.Limit, replay.MaxStep, replay.MaxStep)
	if err := cmp.Or(o.checkReplay(r), wrong); err != nil {
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
		Send: func(ctx context.Context, part int, sink string, out []queue.Outgoing) []error {
			return o.send(ctx, part, sink, flight.Bulk, out)
		},
		Sources: o.Sources, Other: o.rowsOf,
	}
	return s.Step(ctx, replay.Order{
		From: r.From, To: r.To, Collection: r.Collection, Source: r.Source, Run: run, DryRun: r.DryRun,
	}, r.Cursor, limit)
}

// archives returns an error if the stack has no archive.
func (o *replayer) archives() error {
	return want(o.Archive != nil,
		"archive.keep: this stack has no archive: set it to how long messages are kept, such as 14d, and deploy")
}

// ReplayCursor is where the next step of the job begins.
type ReplayCursor struct {
	ArchiveRange        // the range when the job began, because "2h" later means another time
	Run          string `json:"run"`
	Measured     bool   `json:"measured,omitempty"`
	At           string `json:"at,omitempty"` // the place in the archive
}

// ReplayLine is a line of the answer of a replay: first the size of the archive, and then each
// fault.
type ReplayLine struct {
	Archive *archive.Size `json:"archive,omitempty"`
	*replay.Fault
}

// The counts of a replay are the outcomes of events, and these two.
const (
	replayedMessages = "messages sent"
	replayedBroken   = "unreadable objects"
)

// ReplayJob returns a job that sends the messages of a time range again. from and to are the range
// as the operator wrote it. The job ignores the Cursor and the Limit of the order. rate is as in
// [job.Runner].
func ReplayJob(api API, o ReplayOrder, from, to string, rate float64) job.Job[ReplayCursor, ReplayLine] {
	if o.Limit = replay.MaxStep; rate > 0 {
		o.Limit = max(1, min(replay.MaxStep, int(rate)))
	}
	id := "replay"
	if o.Collection != "" {
		id += "-" + string(o.Collection)
	}
	args := struct {
		From       string           `json:"from"`
		To         string           `json:"to,omitempty"`
		Collection shard.Collection `json:"collection,omitempty"`
		Source     string           `json:"source,omitempty"`
		Parts      int              `json:"parts.of,omitempty"`
	}{from, to, o.Collection, o.Source, api.Spread()}
	return job.Job[ReplayCursor, ReplayLine]{
		ID: id, Verb: "replay", Args: args, Final: final, First: ReplayCursor{ArchiveRange: o.ArchiveRange, Run: o.Run},
		Step: func(ctx context.Context, at ReplayCursor, s *job.Step[ReplayLine]) (ReplayCursor, bool, error) {
			o := o
			o.ArchiveRange, o.Run, o.Cursor = at.ArchiveRange, at.Run, at.At
			if !at.Measured { // a separate step, so that the operator sees the cost before messages are sent
				size, err := api.Archived(ctx, o)
				s.Expect(size.Messages)
				s.Say(ReplayLine{Archive: &size})
				at.Measured = true
				return at, size.Messages == 0, err
			}
			step, err := api.Replay(ctx, o)
			for outcome, n := range step.Events {
				s.Count(string(outcome), n)
			}
			for _, f := range step.Faults {
				if f.Outcome == replay.Unreadable {
					s.Count(replayedBroken, 1)
				}
				s.Say(ReplayLine{Fault: &f})
			}
			s.Count(replayedMessages, step.Sent)
			countParts(s, step.Parts)
			s.Did(step.Messages)
			s.Costs(max(step.Sent, step.Messages/10)) // a message that is not sent still costs a read
			at.At = step.Next
			return at, step.Next == "", err
		},
	}
}

// Replayed has the counts of a replay.
type Replayed struct {
	ArchiveRange
	Run      string         `json:"run"`
	Messages int            `json:"messages"` // messages that were read
	Sent     int            `json:"sent"`     // messages that were sent
	Events   map[string]int `json:"events"`   // events, by outcome
	// Parts counts the messages of each part, if the stack has only a part of the documents.
	Parts  map[int]int `json:"parts,omitempty"`
	Broken int         `json:"unreadable_objects"`
}

// ReplayedBy returns the counts of a job.
func ReplayedBy(s job.State) (Replayed, error) {
	at, err := job.CursorOf[ReplayCursor](s)
	if err != nil {
		return Replayed{}, err
	}
	r := Replayed{
		ArchiveRange: at.ArchiveRange, Run: at.Run, Messages: s.Did, Sent: s.Counts[replayedMessages],
		Broken: s.Counts[replayedBroken], Events: maps.Clone(s.Counts), Parts: PartsOf(s),
	}
	maps.DeleteFunc(r.Events, func(name string, _ int) bool {
		return name == replayedMessages || name == replayedBroken || strings.HasPrefix(name, countPart)
	})
	return r, nil
}
