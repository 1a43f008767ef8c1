package rebuild

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// pass compares the two indices once, and repairs the new one. After it, every document that
// differed was seen equal in both, or is counted as left out.
func (r *run) pass(ctx context.Context) error {
	r.p.Passes++
	r.p.Left, r.p.Refused, r.p.Done, r.out = 0, nil, 0, map[string]bool{}
	if err := r.enter(ctx, Comparing); err != nil {
		return err
	}
	err := r.Sink.Walk(ctx, r.p.Old, func(docs []sink.Versioned) error { return r.lacking(ctx, docs) })
	if err == nil {
		err = r.Sink.Walk(ctx, r.p.New, func(docs []sink.Versioned) error { return r.extra(ctx, docs) })
	}
	if err != nil {
		return err
	}
	if r.p.Left > r.p.Allow {
		return r.refused(fmt.Sprintf("of %d compared", r.p.Total))
	}
	return nil
}

func ids(docs []sink.Versioned) []string {
	ids := make([]string, len(docs))
	for i, d := range docs {
		ids[i] = d.ID
	}
	return ids
}

// lacking copies the documents that the new index lacks, or has in an older version.
func (r *run) lacking(ctx context.Context, docs []sink.Versioned) error {
	has, err := r.Sink.VersionsOf(ctx, r.p.New, ids(docs))
	if err != nil {
		return err
	}
	var differ, unsent []string
	for i, d := range docs {
		switch {
		case has[i] >= d.Version:
		case r.p.Source && has[i] < 0 && d.Version < int64(r.p.At):
			unsent = append(unsent, d.ID)
		default:
			differ = append(differ, d.ID)
		}
	}
	newer, err := r.newer(ctx, unsent)
	if err != nil {
		return err
	}
	if err := r.repair(ctx, append(differ, newer...)); err != nil {
		return err
	}
	for _, id := range newer {
		if !r.out[id] {
			r.copied(id)
		}
	}
	r.p.Done += int64(len(docs))
	return r.beat(ctx)
}

// newer returns the unsent documents that must be copied although the source fills the new index.
// Their rows have a committed put, so the line of the export may have been stale, or may have
// needed no write. Without a committed put the line would have been written. So the source did not
// send it, and the document is left out.
func (r *run) newer(ctx context.Context, unsent []string) (newer []string, err error) {
	for part := range slices.Chunk(unsent, maxRows) {
		docs := make([]shard.DocID, len(part))
		for i, id := range part {
			if doc, err := shard.NewDocID(r.p.Collection, id); err == nil {
				docs[i], _ = r.Config.RowAt(doc, r.SinkName)
			}
		}
		rows, err := r.table().Of(ctx, docs, shard.Consistent)
		if err != nil {
			return nil, fmt.Errorf("read the rows of documents that the new index lacks: %w", err)
		}
		// A document that was deleted since Walk listed it does not count as left out.
		has, err := r.Sink.VersionsOf(ctx, r.p.Old, part)
		if err != nil {
			return nil, err
		}
		for i, id := range part {
			switch row := rows[docs[i]]; {
			case has[i] < 0:
			case row.Committed != "" && row.CommittedOp != shard.Delete:
				newer = append(newer, id)
			default:
				if err := r.leave(id, "the source did not send it"); err != nil {
					return nil, err
				}
			}
		}
	}
	return newer, nil
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
func short(id string) string {
	if len(id) > 100 {
		return id[:100] + "..."
	}
	return id
}

// extra deletes the documents that only the new index has. They were deleted from the index in use,
// because the index function writes to that one first.
func (r *run) extra(ctx context.Context, docs []sink.Versioned) error {
	has, err := r.Sink.VersionsOf(ctx, r.p.Old, ids(docs))
	if err != nil {
		return err
	}
	var differ []string
	for i, d := range docs {
		if has[i] != d.Version {
			differ = append(differ, d.ID)
		}
	}
	if err := r.repair(ctx, differ); err != nil {
		return err
	}
	return r.beat(ctx)
}

// tries is how often repair compares documents that differ. They may be written in the meantime.
const tries = 8

// repair makes documents equal in both indices, and repeats until it has seen them equal. It reads
// the new index before the index in use. So a version that it sees in the new index has already
// reached the index in use.
func (r *run) repair(ctx context.Context, differ []string) error {
	r.p.Repaired += int64(len(differ))
	for n := range tries {
		if len(differ) == 0 {
			return nil
		}
		if n > 1 {
			if err := r.sleep(ctx, r.Clock.Now().Add(time.Second<<min(n, 3))); err != nil {
				return err
			}
		}
		after, err := r.Sink.VersionsOf(ctx, r.p.New, differ)
		if err != nil {
			return err
		}
		before, err := r.Sink.VersionsOf(ctx, r.p.Old, differ)
		if err != nil {
			return err
		}
		var again []string
		var copies, gone []sink.Versioned
		for i, id := range differ {
			switch {
			case before[i] == after[i]:
			case before[i] < 0:
				gone, again = append(gone, sink.Versioned{ID: id, Version: after[i]}), append(again, id)
			case after[i] < before[i]:
				copies = append(copies, sink.Versioned{ID: id, Version: before[i]})
			default: // written since the new index was read
				again = append(again, id)
			}
		}
		copied, odd, err := r.copy(ctx, copies)
		if err != nil {
			return err
		}
		for _, o := range r.Sink.Erase(ctx, r.p.Collection, r.p.New, gone) {
			if o.Kind != sink.Applied && o.Kind != sink.Newer {
				odd = append(odd, o)
			}
		}
		if differ = append(again, copied...); n == tries-1 && len(odd) > 0 {
			last := odd[len(odd)-1]
			return fmt.Errorf("the new index takes no documents: %s: %s: find out why, and resume", last.Kind, last.Reason)
		}
		// A request without an answer may still take effect after the next comparison.
		if slices.ContainsFunc(odd, func(o sink.Outcome) bool { return o.Kind == sink.Unknown }) {
			if err := r.sleep(ctx, r.Clock.Now().Add(lateFor)); err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("%d documents keep changing, such as %s: resume", len(differ), differ[0])
}

// copy transfers documents, and returns the ids to compare again. odd are the outcomes that are
// unknown, or that show that the new index takes nothing now.
func (r *run) copy(ctx context.Context, copies []sink.Versioned) (again []string, odd []sink.Outcome, err error) {
	if len(copies) == 0 {
		return nil, nil, nil
	}
	var outcomes []sink.Outcome
	err = r.call(ctx, callTime, func(ctx context.Context) (err error) {
		outcomes, err = r.Sink.Transfer(ctx, r.p.Collection, r.p.Old, r.p.New, ids(copies))
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	var gone []sink.Versioned
	for i, o := range outcomes {
		switch o.Kind {
		case sink.Applied, sink.Newer:
			again = append(again, copies[i].ID)
		case sink.Rejected, sink.Refused:
			// The new index may have an older version, which readers must not find.
			gone = append(gone, copies[i])
			if err := r.leave(copies[i].ID, o.Reason); err != nil {
				return nil, nil, err
			}
		default:
			again, odd = append(again, copies[i].ID), append(odd, o)
		}
	}
	for i, o := range r.Sink.Erase(ctx, r.p.Collection, r.p.New, gone) {
		if o.Kind != sink.Applied && o.Kind != sink.Newer {
			return nil, nil, fmt.Errorf("delete the older version of %s from the new index: %s: %s", gone[i].ID, o.Kind,
				o.Reason)
		}
	}
	return again, odd, nil
}

// leave counts a document that is not in the new index, and names the first ones.
func (r *run) leave(id, why string) error {
	r.p.Left++
	r.out[id] = true
	if len(r.p.Refused) < maxNamed {
		id = short(id)
		r.p.Refused = append(r.p.Refused, Refusal{ID: id, Reason: why})
		key := shard.DocID(string(r.p.Collection) + "#" + id)
		r.audit("leaves %s out: %s", key, why)
	}
	if r.p.Left > max(maxLeft, r.p.Allow) {
		return r.refused("at least")
	}
	return nil
}
