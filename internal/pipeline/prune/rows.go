package prune

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/shard"
)

// RowsReport counts rows of this run.
type RowsReport struct {
	Read      int
	Collected int // deleted, Stuck ones too
	Stuck     int // waited longer than rows are kept for a version that nobody has any more
	Changed   int // changed between the read and the write: left alone
	Left      int // to be deleted, and no time was left: read again by the next run
	Foreign   int // of a newer schema: left alone
	PassEnded bool
}

const (
	passEvery = 24 * time.Hour
	// passAim is how much of a day a pass should take: the rest is for runs that fail.
	passAim = passEvery * 3 / 4
	// scanSegments are scanned independently: one that fails does not keep the others from ending.
	scanSegments = 4
	rowPage      = 1000
	minRows      = 2000 // of a run, however small the table is
	maxVictims   = 5000 // deletions of a run and scan segment: more are not even looked for
	maxBoost     = 1 << 10
	maxFailed    = 12 // runs, an hour by default, before a scan segment begins anew
)

// pass is one full pass over the table, kept in the run row. It belongs to the table, not to a
// sink.
type pass struct {
	Began   int64                   `json:"began"` // seconds; 0 before the first
	Cursors [scanSegments]scanPoint `json:"at"`
	Rows    int                     `json:"rows"`           // read in this pass
	Last    int                     `json:"last,omitempty"` // read in the last one: about the size of the table
	Days    int                     `json:"days,omitempty"` // that this pass has taken
	Boost   int                     `json:"boost,omitempty"`
}

type scanPoint struct {
	Cursor string `json:"c,omitempty"`
	Done   bool   `json:"done,omitempty"`
	Failed int    `json:"f,omitempty"` // runs in a row that could not go on from here
}

// open are the scan segments that have not come to their end.
func (p *pass) open() (segments []int) {
	for i, c := range p.Cursors {
		if !c.Done {
			segments = append(segments, i)
		}
	}
	return segments
}

func (p *pass) ended() bool { return len(p.open()) == 0 }

// begin starts the next pass where its day has come. A pass that took more than a day makes the
// next ones read more at a time.
func (p *pass) begin(now time.Time) (mine bool) {
	switch {
	case p.Began == 0:
	case !p.ended():
		if days := int(now.Sub(time.Unix(p.Began, 0)) / passEvery); days > p.Days {
			// The budget doubles with each further day that the pass takes, up to 1,024 times.
			p.Days, p.Boost = days, min(max(p.Boost, 1)*2, maxBoost)
		}
		return true
	case now.Sub(time.Unix(p.Began, 0)) < passEvery:
		return false
	}
	*p = pass{Began: now.Unix(), Last: p.Rows, Boost: p.Boost}
	return true
}

// quota is how many rows this run reads, so that the pass ends within its day: what is probably
// left, spread over the runs that are.
func (p *pass) quota(now time.Time, every time.Duration, budget int) int {
	limit := budget * max(p.Boost, 1)
	runs := int((passAim - now.Sub(time.Unix(p.Began, 0))) / every)
	if p.Last == 0 || runs < 1 {
		return limit
	}
	// A quarter more than the last pass read, because the table may have grown.
	left := p.Last + p.Last/4 - p.Rows
	return min(max(left/runs, minRows), limit)
}

// rows is this run's part of the daily pass. Among the pruners of several sinks one takes it.
func (r *run) rows(ctx context.Context) error {
	var p pass
	// The pass has a run row of its own, because all sinks share the table.
	return inTurn(ctx, r, "rows", &p, func() (err error) {
		if p.begin(r.Clock.Now()) {
			if err = r.scan(ctx, &p); errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil {
				err = nil // out of time: the next run goes on from here
			}
			r.report.Rows.PassEnded = p.ended()
		}
		return err
	})
}

// scan goes on with every scan segment. One that fails keeps its place.
func (r *run) scan(ctx context.Context, p *pass) error {
	quota := p.quota(r.Clock.Now(), r.Config.Lifecycle.PruneEvery, r.budget.Rows)
	var failures []error
	open := p.open()
	for n, i := range open {
		at := &p.Cursors[i]
		// Equal shares among the scan segments that have not ended.
		share := quota / (len(open) - n)
		quota -= share
		from := *at
		victims, read, err := r.look(ctx, i, at, share)
		if err == nil {
			err = r.collect(ctx, victims)
		}
		if err != nil {
			*at = from // phase two is not through: read it again
			if ctx.Err() != nil {
				return ctx.Err()
			}
			// Twelve runs are an hour by default: an outage that is shorter keeps its place.
			if at.Failed++; at.Failed >= maxFailed {
				*at = scanPoint{} // the cursor itself may be what the table does not take
			}
			failures = append(failures, fmt.Errorf("scan segment %d: %w", i, err))
			continue
		}
		p.Rows += read
		at.Failed = 0
	}
	return errors.Join(failures...)
}

// victim is a row that phase one saw and phase two deletes if it is as it was seen.
type victim struct {
	row   shard.Row
	stuck bool
}

// look is phase one: it only reads.
func (r *run) look(ctx context.Context, segment int, at *scanPoint, share int) (victims []victim, read int, err error) {
	lc := r.Config.Lifecycle
	for read < share && len(victims) < maxVictims {
		rows, next, err := page(ctx, r.Pruner, func() ([]shard.Row, string, error) {
			return r.Scanner.Scan(ctx, segment, scanSegments, at.Cursor, min(rowPage, share-read))
		})
		if err != nil {
			return nil, 0, fmt.Errorf("read: %w", err)
		}
		read += len(rows)
		r.report.Rows.Read += len(rows)
		now := shard.MicrosOf(r.Clock.Now())
		for _, row := range rows {
			// Code leaves a row of a newer schema alone (design section 5).
			if row.Foreign() {
				r.report.Rows.Foreign++
			}
			if collect, stuck := shard.Collectable(row, now, lc.RowRetention, lc.TTLExtra); collect {
				victims = append(victims, victim{row, stuck})
			}
		}
		if at.Cursor = next; next == "" {
			at.Done = true
			break
		}
	}
	return victims, read, nil
}

// collect is phase two: COLLECT, which is refused for a row that changed.
func (r *run) collect(ctx context.Context, victims []victim) error {
	var mu sync.Mutex
	rep := &r.report.Rows
	done := 0
	err := r.Parallel.Try(maxParallel, len(victims), func(i int) error {
		v := victims[i]
		if err := ctx.Err(); err != nil {
			return err
		}
		_, err := r.table().Write(ctx, shard.Collect(v.row, shard.MicrosOf(r.Clock.Now())))
		// A refusal is a good end: somebody used the row after it was read.
		_, refused := shard.AsRefused(err)
		if err != nil && !refused {
			return fmt.Errorf("collect %s: %w", v.row.Doc, err)
		}
		// The goroutines share the report and the count. The write above needs no lock.
		mu.Lock()
		defer mu.Unlock()
		done++
		if refused {
			rep.Changed++
			r.note(journal.Note{Step: journal.RowRefused, Doc: v.row.Doc, Detail: "COLLECT"})
			return nil
		}
		rep.Collected++
		r.told(v, rep)
		return nil
	})
	rep.Left += len(victims) - done
	return err
}

// told notes a deletion.
func (r *run) told(v victim, rep *RowsReport) {
	if v.stuck {
		rep.Stuck++
		r.note(journal.Note{
			Step: journal.Stuck, Doc: v.row.Doc, Key: v.row.Pending, Flight: v.row.Flight, Old: v.row,
			Detail: "row: pending since " + v.row.BurstStart.Time().Format(time.RFC3339) +
				", longer than rows are kept",
		})
	}
	r.note(journal.Note{
		Step: journal.Collected, Doc: v.row.Doc, Key: v.row.Committed, Op: v.row.CommittedOp,
		Old: v.row,
	})
}
