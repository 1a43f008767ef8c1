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

// compare does a step of comparing both indices. They are compared until no write is missed.
func (r *run) compare(ctx context.Context) error {
	switch r.p.Stage {
	case idling:
		return r.sourced(ctx)
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

// sourced waits until the documents that the source sent are written.
func (r *run) sourced(ctx context.Context) error {
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

// count reads how many writes were missed, and begins a comparison. It waits between the two: a
// write that is counted as missed may still arrive, and so may the write of a turn that was killed.
func (r *run) count(ctx context.Context) error {
	if r.p.Passes >= r.p.MostPasses {
		r.halt(fmt.Errorf(
			"after %d comparisons writes are still missed by the new index, %d by now: find out why, and resume", maxPasses,
			r.p.Missed,
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
		switch switched, err := r.named(ctx); {
		case err != nil:
			return err
		case switched: // by a program that was stopped
			return r.end(ctx)
		}
		r.halt(errors.New("the sink's health row does not know of this rebuild any more: abort it, and begin anew"))
		return nil
	}
	if err := r.Clock.Sleep(ctx, lateFor); err != nil {
		return err
	}
	r.enter(Comparing, walking)
	r.p.Passes++
	r.p.Missed, r.p.Seen = row.RebuildMissed, row.RebuildMissed
	r.p.Left, r.p.Refused, r.p.Differ = 0, nil, nil
	// The comparison before this one may have stopped at any place.
	r.p.Place, r.p.Second, r.p.Ended, r.p.Late, r.p.Cut = "", false, false, false, false
	return nil
}

// walk compares some pages, and repairs the new index. When it is through both indices, every
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
				r.refused(fmt.Sprintf("of %d compared", r.p.Total))
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

// maxDiffer bounds the documents in a cursor that differ, in bytes of JSON. The row of the job has
// 300 KB, of which its lines may take 100.
const maxDiffer = 100 << 10

// storable returns how many of the documents that differ the cursor can store. A page of long ids
// is repaired in the step that reads it. What cannot be repaired at once, such as when the engine
// throttles, is left to another comparison.
func (r *run) storable() int {
	size := 0
	for i, d := range r.p.Differ {
		text, _ := json.Marshal(d) // cannot fail: a text and a truth
		if size += len(text) + 1; size > maxDiffer {
			return i
		}
	}
	return len(r.p.Differ)
}

// page compares the next page of one index.
func (r *run) page(ctx context.Context) error {
	index, compare := r.p.Old, r.lacking
	if r.p.Second {
		index, compare = r.p.New, r.extra
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

// lacking finds the documents that the new index lacks, or has in an older version.
func (r *run) lacking(ctx context.Context, docs []sink.Versioned) error {
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
	return r.newer(ctx, unsent)
}

func (r *run) differs(id string, newer bool) {
	r.p.Differ = append(r.p.Differ, differing{ID: id, Newer: newer})
	r.p.Repaired++
}

// newer finds the unsent documents that must be copied although the source fills the new index.
// Their rows have a committed put, so the line of the export may have been stale, or may have
// needed no write. Without a committed put the line would have been written. So the source did not
// send it, and the document is left out.
func (r *run) newer(ctx context.Context, unsent []string) error {
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

// copied counts a document that is newer than the export, and names the first ones.
func (r *run) copied(id string) {
	r.p.Newer++
	if len(r.p.NewerIDs) < maxNamed {
		r.p.NewerIDs = append(r.p.NewerIDs, short(id))
		r.audit("copies %s: newer than the export", shard.DocID(string(r.p.Collection)+"#"+short(id)))
	}
}

// short shortens a document's id for messages.
func short(id string) string { return clip(id, 100) }

// maxReason is how many bytes of what the engine says of a document are kept.
const maxReason = 500

func clip(text string, most int) string {
	if len(text) > most {
		return text[:most] + "..."
	}
	return text
}

// extra finds the documents that only the new index has. They were deleted from the index in use,
// because the index function writes to that one first.
func (r *run) extra(ctx context.Context, docs []sink.Versioned) error {
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

// maxTries is how often repair compares documents that differ. They may be written in the meantime.
const maxTries = 8

// repair makes documents equal in both indices, once. What it does not see equal is compared again.
// It reads the new index before the index in use. So a version that it sees in the new index has
// already reached the index in use.
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
				r.copied(d.ID)
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
		r.halt(fmt.Errorf("the new index takes no documents: %s: %s: find out why, and resume", last.Kind, last.Reason))
	} else {
		r.halt(fmt.Errorf("%d documents keep changing, such as %s: resume", len(r.p.Differ), r.p.Differ[0].ID))
	}
	return nil
}

// copy transfers documents. odd are the outcomes that are unknown, or that show that the new index
// takes nothing now.
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

// leave counts a document that is not in the new index, and names the first ones.
func (r *run) leave(id, why string) {
	r.p.Left++
	if len(r.p.Refused) < maxNamed {
		id, why = short(id), clip(why, maxReason)
		r.p.Refused = append(r.p.Refused, Refusal{ID: id, Reason: why})
		key := shard.DocID(string(r.p.Collection) + "#" + id)
		r.audit("leaves %s out: %s", key, why)
	}
	if r.p.Left > max(maxLeft, r.p.Allow) {
		r.refused("at least")
	}
}
