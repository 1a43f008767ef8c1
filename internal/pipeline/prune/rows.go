// SPDX-License-Identifier: Apache-2.0

package prune

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
)

// RowsReport counts the rows of this run.
type RowsReport struct {
	Read      int
	Collected int // rows that were deleted, including Stuck
	Stuck     int // rows that were deleted although pending: no version came for longer than rows are kept
	Changed   int // rows that changed between the read and the write, so they were not deleted
	Left      int // rows that must be deleted, but the time was over: the next run reads them again
	Foreign   int // rows of a newer schema, which were not deleted
	PassEnded bool
}

const (
	passEvery = 24 * time.Hour
	// passAim is how much of a day a pass should take. The remaining time is a reserve for runs
	// that fail.
	passAim = passEvery * 3 / 4
	// scanSegments is the number of parts of the table. They are scanned independently, so that a
	// part that fails does not stop the others.
	scanSegments = 4
	rowPage      = 1000
	minRows      = 2000 // lowest number of rows that a run reads, also of a small table
	maxVictims   = 5000 // largest number of deletions in a run and scan segment; after them the segment stops reading
	maxBoost     = 1 << 10
	maxFailed    = 12 // after this many failed runs, an hour by default, a scan segment starts again
)

// pass is one full pass over the table. A run row stores the pass. All sinks share one pass,
// because they share the table.
type pass struct {
	Began   int64                   `json:"began"` // start in seconds; 0 before the first pass
	Cursors [scanSegments]scanPoint `json:"at"`
	Rows    int                     `json:"rows"` // rows read in this pass
	// rows read in the last pass, as an estimate of the table's size
	Last  int `json:"last,omitempty"`
	Days  int `json:"days,omitempty"` // full days since the pass began
	Boost int `json:"boost,omitempty"`
}

type scanPoint struct {
	Cursor string `json:"c,omitempty"`
	Done   bool   `json:"done,omitempty"`
	Failed int    `json:"f,omitempty"` // consecutive runs that could not continue from this cursor
}

// open lists the scan segments that have not reached their end.
func (p *pass) open() (segments []int) {
	for i, c := range p.Cursors {
		if !c.Done {
			segments = append(segments, i)
		}
	}
	return segments
}

func (p *pass) ended() bool { return len(p.open()) == 0 }

// begin reports whether this run must scan. It starts the next pass if a day has passed since the
// last one began. If a pass takes more than a day, its runs read more rows.
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

// quota returns how many rows this run reads, so that the pass ends within its day. It divides the
// estimated remaining rows by the number of remaining runs.
func (p *pass) quota(now time.Time, every time.Duration, budget int) int {
	limit := budget * max(p.Boost, 1)
	runs := int((passAim - now.Sub(time.Unix(p.Began, 0))) / every)
	if p.Last == 0 || runs < 1 {
		return limit
	}
	// Estimate a quarter more rows than in the last pass, because the table may have grown.
	left := p.Last + p.Last/4 - p.Rows
	return min(max(left/runs, minRows), limit)
}

// rows does this run's part of the daily pass. If several sinks have pruners, only one of them does
// this part.
func (r *run) rows(ctx context.Context) error {
	var p pass
	// The pass has its own run row, because all sinks share the table.
	return inTurn(ctx, r, "rows", &p, func() (err error) {
		if p.begin(r.Clock.Now()) {
			if err = r.scan(ctx, &p); errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil {
				err = nil // the time is over: the next run continues from here
			}
			r.report.Rows.PassEnded = p.ended()
		}
		return err
	})
}

// scan continues every scan segment. A segment that fails keeps its cursor.
func (r *run) scan(ctx context.Context, p *pass) error {
	quota := p.quota(r.Clock.Now(), r.Config.Lifecycle.PruneEvery, r.budget.Rows)
	var failures []error
	open := p.open()
	for n, i := range open {
		at := &p.Cursors[i]
		// Divide the quota equally among the scan segments that have not ended.
		share := quota / (len(open) - n)
		quota -= share
		from := *at
		victims, read, err := r.look(ctx, i, at, share)
		if err == nil {
			err = r.collect(ctx, victims)
		}
		if err != nil {
			*at = from // not all rows were deleted, so the next run reads these rows again
			if ctx.Err() != nil {
				return ctx.Err()
			}
			// Twelve runs are an hour by default. If an outage is shorter, the segment keeps its
			// cursor.
			if at.Failed++; at.Failed >= maxFailed {
				*at = scanPoint{} // the table may refuse the cursor itself
			}
			failures = append(failures, fmt.Errorf("scan segment %d: %w", i, err))
			continue
		}
		p.Rows += read
		at.Failed = 0
	}
	return errors.Join(failures...)
}

// victim is a row that look found. collect deletes the row if it did not change.
type victim struct {
	row   shard.Row
	stuck bool
}

// look only reads. It returns the rows to delete.
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
			// Code does not change a row of a newer schema (design section 5).
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

// collect deletes rows with COLLECT. The table refuses COLLECT for a row that changed.
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
		// A refusal is not a failure: the row was used after look read it.
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
		r.noteCollected(v, rep)
		return nil
	})
	rep.Left += len(victims) - done
	return err
}

// noteCollected counts a deletion and writes a note about it.
func (r *run) noteCollected(v victim, rep *RowsReport) {
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
