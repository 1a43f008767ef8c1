package rebuild

import (
	"context"
	"fmt"
	"time"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// pass compares the two indices once, and repairs the new one. Every document that differed has
// been seen alike at its end, or is counted as left out.
func (r *run) pass(ctx context.Context) error {
	r.p.Passes++
	r.p.Left, r.p.Refused, r.p.Done = 0, nil, 0
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

// differing repairs those of some documents of one index that differ from what the other one has.
func (r *run) differing(ctx context.Context, docs []sink.Versioned, other string,
	differs func(d sink.Versioned, has int64) (bool, error),
) error {
	has, err := r.Sink.VersionsOf(ctx, other, ids(docs))
	if err != nil {
		return err
	}
	var differ []string
	for i, d := range docs {
		if yes, err := differs(d, has[i]); err != nil {
			return err
		} else if yes {
			differ = append(differ, d.ID)
		}
	}
	return r.repair(ctx, differ)
}

func ids(docs []sink.Versioned) []string {
	ids := make([]string, len(docs))
	for i, d := range docs {
		ids[i] = d.ID
	}
	return ids
}

// lacking copies what the index in use has and the new one has not, or has in an older version.
func (r *run) lacking(ctx context.Context, docs []sink.Versioned) error {
	err := r.differing(ctx, docs, r.p.New, func(d sink.Versioned, has int64) (bool, error) {
		if r.p.Source && has < 0 && d.Version < int64(r.p.At) {
			return false, r.leave(d.ID, "the source did not send it")
		}
		return has < d.Version, nil
	})
	if err != nil {
		return err
	}
	r.p.Done += int64(len(docs))
	return r.beat(ctx)
}

// extra deletes what only the new index has. What it holds was in the index in use before: index
// writes to that first. So what is not there any more was deleted.
func (r *run) extra(ctx context.Context, docs []sink.Versioned) error {
	err := r.differing(ctx, docs, r.p.Old, func(d sink.Versioned, has int64) (bool, error) {
		return has != d.Version, nil
	})
	if err != nil {
		return err
	}
	return r.beat(ctx)
}

// tries is how often documents are looked at that differ. They may be written meanwhile.
const tries = 8

// repair makes documents alike, and looks until they are. The new index is read before the one in
// use: so what is newer in the first is in the second by then.
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
		copied, why, err := r.copy(ctx, copies)
		if err != nil {
			return err
		}
		for _, o := range r.Sink.Erase(ctx, r.p.Collection, r.p.New, gone) {
			if o.Kind != sink.Applied && o.Kind != sink.Newer {
				why = o.Kind.String() + ": " + o.Reason
			}
		}
		if differ = append(again, copied...); n == tries-1 && why != "" {
			return fmt.Errorf("the new index takes no documents: %s: find out why, and resume", why)
		}
	}
	return fmt.Errorf("%d documents keep changing, such as %s: resume", len(differ), differ[0])
}

// copy transfers documents, and returns those to look at again. why is the last answer that says
// that the new index takes nothing now.
func (r *run) copy(ctx context.Context, copies []sink.Versioned) (again []string, why string, err error) {
	if len(copies) == 0 {
		return nil, "", nil
	}
	var outcomes []sink.Outcome
	err = r.call(ctx, callTime, func(ctx context.Context) (err error) {
		outcomes, err = r.Sink.Transfer(ctx, r.p.Collection, r.p.Old, r.p.New, ids(copies))
		return err
	})
	if err != nil {
		return nil, "", err
	}
	var gone []sink.Versioned
	for i, o := range outcomes {
		switch o.Kind {
		case sink.Applied, sink.Newer:
			again = append(again, copies[i].ID)
		case sink.Rejected, sink.Refused:
			// An older version that the new index may have taken must not be what readers find.
			gone = append(gone, copies[i])
			if err := r.leave(copies[i].ID, o.Reason); err != nil {
				return nil, "", err
			}
		default:
			again, why = append(again, copies[i].ID), o.Kind.String()+": "+o.Reason
		}
	}
	for i, o := range r.Sink.Erase(ctx, r.p.Collection, r.p.New, gone) {
		if o.Kind != sink.Applied && o.Kind != sink.Newer {
			return nil, "", fmt.Errorf("delete the older version of %s from the new index: %s: %s", gone[i].ID, o.Kind,
				o.Reason)
		}
	}
	return again, why, nil
}

// leave counts a document that is not in the new index, and names the first ones.
func (r *run) leave(id, why string) error {
	r.p.Left++
	if len(r.p.Refused) < maxNamed {
		if len(id) > 100 {
			id = id[:100] + "..."
		}
		r.p.Refused = append(r.p.Refused, Refusal{ID: id, Reason: why})
		key := shard.DocID(string(r.p.Collection) + "#" + id)
		r.audit("leaves %s out: %s", key, why)
	}
	if r.p.Left > max(maxLeft, r.p.Allow) {
		return r.refused("at least")
	}
	return nil
}
