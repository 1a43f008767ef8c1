// SPDX-License-Identifier: Apache-2.0

package rebuild

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// compare does a step of the comparison of both indices. The comparison is repeated until the new
// index misses no write during it.
func (r *run) compare(ctx context.Context) error {
	switch r.p.Stage {
	case idling:
		return r.awaitSource(ctx)
	case counting:
		return r.count(ctx)
	case walking:
		return r.walk(ctx)
	default:
		if over, err := r.outlast(ctx); !over {
			return err
		}
		if err := r.Sink.StopFill(ctx, r.p.New); err != nil {
			return err
		}
		r.p.Stage, r.p.Idle = idling, 0
		return nil
	}
}

// awaitSource waits until the documents that the source sent are written.
func (r *run) awaitSource(ctx context.Context) error {
	if !r.p.Source || r.Service.Idle == nil || r.p.Idle == 2 {
		r.p.Stage = counting
		return nil
	}
	empty, err := r.Service.Idle(ctx)
	if err != nil {
		return fmt.Errorf("look at the bulk lane: %w", err)
	}
	if r.p.Idle++; !empty {
		r.p.Idle = 0
	}
	return r.Clock.Sleep(ctx, beatEvery)
}

// count reads how many writes the new index has missed, waits, and begins a comparison. It waits
// because a write that is counted as missed may still arrive, and so may the write of a turn that
// was killed.
func (r *run) count(ctx context.Context) error {
	if r.p.Passes >= r.p.MostPasses {
		r.halt(fmt.Errorf(
			"after %d comparisons the new index still misses writes, %d until now: see the logs of index, "+
				"fix the cause, and resume", maxPasses, r.p.Missed,
		))
		return nil
	}
	row, err := r.health(ctx)
	switch {
	case err != nil:
		return err
	case row.PausedAt != 0:
		r.halt(ErrPaused)
		return nil
	case row.RebuildAt != r.p.At:
		switch switched, err := r.isSwitched(ctx); {
		case err != nil:
			return err
		case switched: // a program that was stopped has switched the name
			return r.end(ctx)
		}
		r.halt(errors.New("the sink's health row no longer names this rebuild: abort it, and start again"))
		return nil
	}
	if err := r.Clock.Sleep(ctx, lateFor); err != nil {
		return err
	}
	r.enter(Comparing, walking)
	r.p.Passes++
	r.p.Missed, r.p.Seen = row.RebuildMissed, row.RebuildMissed
	r.p.Left, r.p.Refused, r.p.Differ = 0, nil, nil
	// The comparison before may have stopped at any place.
	r.p.Place, r.p.Second, r.p.Ended, r.p.Late, r.p.Cut = "", false, false, false, false
	return nil
}

// walk compares some pages, and repairs the new index. After the last page of both indices, every
// document that differed was seen equal in both, or is counted as left out.
func (r *run) walk(ctx context.Context) error {
	for until := r.Clock.Now().Add(beatEvery); ; {
		switch {
		case len(r.p.Differ) > 0:
			if err := r.repair(ctx); err != nil {
				return err
			}
		case r.p.Ended && r.p.Second:
			r.p.Ended = false
			switch {
			case r.p.Left > r.p.Allow:
				r.haltRefused(fmt.Sprintf("the index in use had %d", r.p.Total))
			case r.p.Cut:
				r.enter(Comparing, counting)
			default:
				r.enter(Switching, "")
			}
			return nil
		default:
			if r.p.Ended {
				r.p.Ended, r.p.Second = false, true
			}
			if err := r.page(ctx); err != nil {
				return err
			}
		}
		kept := r.storable()
		if r.p.Error != "" || r.p.Tries > 1 || kept == len(r.p.Differ) && !r.Clock.Now().Before(until) {
			r.p.Cut = r.p.Cut || kept < len(r.p.Differ)
			r.p.Differ = r.p.Differ[:kept]
			return nil
		}
	}
}

// maxDiffer bounds the documents that differ in a cursor, in bytes of JSON. The row of the job has
// 300 KB, and its lines may take 100 KB of them.
const maxDiffer = 100 << 10

// storable returns how many of the documents that differ the cursor can store. If the ids are so
// long that not all fit, walk repairs the page in the same step. If that fails, such as when the
// engine throttles, another comparison repairs the documents that do not fit.
func (r *run) storable() int {
	size := 0
	for i, d := range r.p.Differ {
		text, _ := json.Marshal(d) // cannot fail: a string and a bool
		if size += len(text) + 1; size > maxDiffer {
			return i
		}
	}
	return len(r.p.Differ)
}

// page compares the next page of one index.
func (r *run) page(ctx context.Context) error {
	index, compare := r.p.Old, r.findLacking
	if r.p.Second {
		index, compare = r.p.New, r.findExtra
	}
	docs, next, err := r.Sink.Walk(ctx, index, r.p.Place)
	if err != nil {
		return err
	}
	r.p.Place, r.p.Ended, r.p.Tries = next, next == "", 0
	return compare(ctx, docs)
}

func ids[T any](docs []T, id func(T) string) []string {
	ids := make([]string, len(docs))
	for i, d := range docs {
		ids[i] = id(d)
	}
	return ids
}

func idOf(d sink.Versioned) string { return d.ID }

// findLacking finds the documents of a page that the new index lacks, or has in an older version.
func (r *run) findLacking(ctx context.Context, docs []sink.Versioned) error {
	has, err := r.Sink.VersionsOf(ctx, r.p.New, ids(docs, idOf))
	if err != nil {
		return err
	}
	var unsent []string
	for i, d := range docs {
		switch {
		case has[i] >= d.Version:
		case r.p.Source && has[i] < 0 && d.Version < int64(r.p.At):
			unsent = append(unsent, d.ID)
		default:
			r.differs(d.ID, false)
		}
	}
	r.p.Done += int64(len(docs))
	return r.findNewer(ctx, unsent)
}

func (r *run) differs(id string, newer bool) {
	r.p.Differ = append(r.p.Differ, differing{ID: id, Newer: newer})
	r.p.Repaired++
}

// findNewer finds the unsent documents that must be copied although the source fills the new index.
// These have a committed put in their rows, so the line of the export may have been stale, or may
// have needed no write. Without a committed put, lull would have written the line. So the source
// did not send that document, and it is left out.
func (r *run) findNewer(ctx context.Context, unsent []string) error {
	for part := range slices.Chunk(unsent, maxRows) {
		docs := make([]shard.DocID, len(part))
		for i, id := range part {
			if doc, err := shard.NewDocID(r.p.Collection, id); err == nil {
				docs[i], _ = r.Config.RowAt(doc, r.SinkName)
			}
		}
		rows, err := r.table().Of(ctx, docs, shard.Consistent)
		if err != nil {
			return fmt.Errorf("read the rows of documents that the new index lacks: %w", err)
		}
		// A document that was deleted since Walk listed it does not count as left out.
		has, err := r.Sink.VersionsOf(ctx, r.p.Old, part)
		if err != nil {
			return err
		}
		for i, id := range part {
			switch row := rows[docs[i]]; {
			case has[i] < 0:
			case row.Committed != "" && row.CommittedOp != shard.Delete:
				r.differs(id, true)
			default:
				r.leave(id, "the source did not send it")
			}
		}
	}
	return nil
}

// maxRows is how many rows are read at a time.
const maxRows = 100

// countNewer counts a document that is newer than the export. The progress names the first of these
// documents.
func (r *run) countNewer(id string) {
	r.p.Newer++
	if len(r.p.NewerIDs) < maxNamed {
		r.p.NewerIDs = append(r.p.NewerIDs, short(id))
		r.audit("copies %s: newer than the export", shard.DocID(string(r.p.Collection)+"#"+short(id)))
	}
}

// short shortens a document's id for messages.
func short(id string) string { return clip(id, 100) }

// maxReason bounds the engine's reason for one document, in bytes.
const maxReason = 500

func clip(text string, most int) string {
	if len(text) > most {
		return text[:most] + "..."
	}
	return text
}

// findExtra finds the documents of a page of the new index whose version differs in the index in
// use. The index function writes to the index in use first. So a document that only the new index
// has was deleted.
func (r *run) findExtra(ctx context.Context, docs []sink.Versioned) error {
	has, err := r.Sink.VersionsOf(ctx, r.p.Old, ids(docs, idOf))
	if err != nil {
		return err
	}
	for i, d := range docs {
		if has[i] != d.Version {
			r.differs(d.ID, false)
		}
	}
	return nil
}

// maxTries is how often repair compares documents that differ, because they may be written in the
// meantime.
const maxTries = 8

// repair tries once to make the documents that differ equal in both indices. A document that it
// does not see equal is compared again. It reads the new index before the index in use. So a
// version that it sees in the new index has already reached the index in use.
func (r *run) repair(ctx context.Context) error {
	wait := time.Duration(0)
	if r.p.Tries > 1 {
		wait = time.Second << min(r.p.Tries, 3)
	}
	if r.p.Late { // a request without an answer may still take effect
		wait = lateFor
	}
	if err := r.Clock.Sleep(ctx, wait); err != nil {
		return err
	}
	all := ids(r.p.Differ, func(d differing) string { return d.ID })
	after, err := r.Sink.VersionsOf(ctx, r.p.New, all)
	if err != nil {
		return err
	}
	before, err := r.Sink.VersionsOf(ctx, r.p.Old, all)
	if err != nil {
		return err
	}
	var copies, gone []sink.Versioned
	differ := r.p.Differ[:0]
	for i, d := range r.p.Differ {
		switch {
		case before[i] == after[i]:
			if d.Newer {
				r.countNewer(d.ID)
			}
			continue
		case before[i] < 0:
			gone = append(gone, sink.Versioned{ID: d.ID, Version: after[i]})
		case after[i] < before[i]:
			copies = append(copies, sink.Versioned{ID: d.ID, Version: before[i]})
		default: // written since the new index was read
		}
		differ = append(differ, d)
	}
	r.p.Differ = differ
	odd, err := r.copy(ctx, copies)
	if err != nil {
		return err
	}
	for _, o := range r.Sink.Erase(ctx, r.p.Collection, r.p.New, gone) {
		if o.Kind != sink.Applied && o.Kind != sink.Newer {
			odd = append(odd, o)
		}
	}
	r.p.Late = slices.ContainsFunc(odd, func(o sink.Outcome) bool { return o.Kind == sink.Unknown })
	if r.p.Tries++; r.p.Tries < maxTries || len(r.p.Differ) == 0 || r.p.Error != "" {
		return nil
	}
	if len(odd) > 0 {
		last := odd[len(odd)-1]
		r.halt(fmt.Errorf("the new index accepts no documents: %s: %s: fix the cause, and resume", last.Kind, last.Reason))
	} else {
		r.halt(fmt.Errorf("%d documents change all the time, such as %s: resume when there are fewer changes",
			len(r.p.Differ), r.p.Differ[0].ID))
	}
	return nil
}

// copy copies documents to the new index. odd are the outcomes that are unknown, or that show that
// the new index accepts no documents now.
func (r *run) copy(ctx context.Context, copies []sink.Versioned) (odd []sink.Outcome, err error) {
	if len(copies) == 0 {
		return nil, nil
	}
	outcomes, err := r.Sink.Transfer(ctx, r.p.Collection, r.p.Old, r.p.New, ids(copies, idOf))
	if err != nil {
		return nil, err
	}
	var gone []sink.Versioned
	for i, o := range outcomes {
		switch o.Kind {
		case sink.Applied, sink.Newer:
		case sink.Rejected, sink.Refused:
			// The new index may have an older version, which readers must not find.
			gone = append(gone, copies[i])
			r.p.Differ = slices.DeleteFunc(r.p.Differ, func(d differing) bool { return d.ID == copies[i].ID })
			r.leave(copies[i].ID, o.Reason)
		default:
			odd = append(odd, o)
		}
	}
	for i, o := range r.Sink.Erase(ctx, r.p.Collection, r.p.New, gone) {
		if o.Kind != sink.Applied && o.Kind != sink.Newer {
			return nil, fmt.Errorf("delete the older version of %s from the new index: %s: %s", gone[i].ID, o.Kind, o.Reason)
		}
	}
	return odd, nil
}

// leave counts a document that the new index will not have. The progress names the first of these
// documents.
func (r *run) leave(id, why string) {
	r.p.Left++
	if len(r.p.Refused) < maxNamed {
		id, why = short(id), clip(why, maxReason)
		r.p.Refused = append(r.p.Refused, Refusal{ID: id, Reason: why})
		key := shard.DocID(string(r.p.Collection) + "#" + id)
		r.audit("leaves %s out: %s", key, why)
	}
	if r.p.Left > max(maxLeft, r.p.Allow) {
		r.haltRefused("the comparison stopped at these, so there may be more")
	}
}
