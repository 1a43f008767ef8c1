// SPDX-License-Identifier: Apache-2.0

package prune_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
)

// Row 47 of docs/faults.md: prune deletes neither a leased row nor a pending one.
func TestPruneLeavesLeasedAndPendingRows(t *testing.T) {
	t.Parallel()
	const retention = 30 * day
	type row struct {
		row   func(b *bench, d shard.DocID)
		then  time.Duration // how long nothing happens
		last  func(b *bench, d shard.DocID)
		gone  bool
		stuck bool
	}
	usecasetest.Table(t, play, map[string]row{
		"committed, younger than rows are kept": {
			func(b *bench, d shard.DocID) { b.commit(d, 1, shard.Put) },
			retention - time.Minute, nil, false, false,
		},
		"settled": {func(b *bench, d shard.DocID) { b.commit(d, 1, shard.Put) }, retention, nil, true, false},
		"tombstone, younger than rows are kept": {
			func(b *bench, d shard.DocID) { b.commit(d, 1, shard.Delete) },
			retention - time.Minute, nil, false, false,
		},
		"tombstone": {func(b *bench, d shard.DocID) { b.commit(d, 1, shard.Delete) }, retention, nil, true, false},
		"dead, nothing pending": {
			func(b *bench, d shard.DocID) { b.admit(d, 1); b.park(d, 1) }, retention, nil, true,
			false,
		},
		"marked dead, never admitted": {func(b *bench, d shard.DocID) { b.park(d, 1) }, retention, nil, true, false},
		"committed long ago, and a new version waits": {
			func(b *bench, d shard.DocID) { b.commit(d, 1, shard.Put) },
			retention, func(b *bench, d shard.DocID) { b.admit(d, 2) }, false, false,
		},
		"committed long ago, and a new version is being written": {
			func(b *bench, d shard.DocID) { b.commit(d, 1, shard.Put) }, retention,
			func(b *bench, d shard.DocID) {
				b.admit(d, 2)
				b.claim(d, 2)
			}, false, false,
		},
		"pending": {func(b *bench, d shard.DocID) { b.admit(d, 1) }, retention - time.Minute, nil, false, false},
		"pending for longer than rows are kept": {
			func(b *bench, d shard.DocID) { b.admit(d, 1) }, retention, nil, true,
			true,
		},
		"pending for longer than rows are kept, and leased": {
			func(b *bench, d shard.DocID) { b.admit(d, 1) },
			retention, func(b *bench, d shard.DocID) { b.claim(d, 1) }, false, false,
		},
		"claimed without an answer, long ago": {
			func(b *bench, d shard.DocID) { b.admit(d, 1); b.claim(d, 1) },
			retention, nil, true, true,
		},
		"newer schema": {func(b *bench, d shard.DocID) {
			b.commit(d, 1, shard.Put)
			b.Write(shard.Write{Doc: d, Update: []shard.Action{
				{
					Verb: shard.Set, Attr: shard.AttrSchema,
					Val: shard.Value{Kind: shard.KindNumber, Num: shard.SchemaVersion + 1},
				},
			}})
		}, retention, nil, false, false},
	}, func(b *bench, tt row) {
		d := doc(1)
		tt.row(b, d)
		time.Sleep(tt.then)
		if tt.last != nil {
			tt.last(b, d)
		}
		before := b.Row(d)
		rep := b.run()
		if got := b.Row(d); tt.gone == got.Exists() || !tt.gone && got != before {
			b.Errorf("row %+v, want it deleted: %t", got, tt.gone)
		}
		if got := rep.Rows.Stuck == 1; got != tt.stuck {
			b.Errorf("the row counts as stuck: %t, want %t", got, tt.stuck)
		}
		if got := len(b.Notes.Of(journal.Stuck)) == 1; got != tt.stuck {
			b.Errorf("alarm: %t, want %t", got, tt.stuck)
		}
		if got := rep.Rows.Collected == 1; got != tt.gone {
			b.Errorf("the row counts as collected: %t, want %t", got, tt.gone)
		}
	})
}

// Row 48 of docs/faults.md: prune skips a row that changed after it was read.
func TestRowChangedSinceReadIsSkippedByPrune(t *testing.T) {
	play(t, func(b *bench) {
		changes := map[shard.DocID]func(d shard.DocID){
			doc("admitted"):  func(d shard.DocID) { b.admit(d, 2) },
			doc("claimed"):   func(d shard.DocID) { b.admit(d, 2); b.claim(d, 2) },
			doc("committed"): func(d shard.DocID) { b.commit(d, 2, shard.Put) },
			doc("dead"):      func(d shard.DocID) { b.park(d, 2) },
			doc("untouched"): func(shard.DocID) {},
		}
		for d := range changes {
			b.commit(d, 1, shard.Put)
		}
		time.Sleep(30 * day)
		p, _ := b.faulty(decide(func(op fault.Op) fault.Verdict {
			if op.Call == "COLLECT" { // the row changes between look and collect
				changes[op.Doc](op.Doc)
			}
			return fault.OK
		}))
		rep, err := p.Run(b.Context())
		if err != nil {
			b.Fatalf("a refusal is not a failure: %v", err)
		}
		if rep.Rows.Changed != 4 || rep.Rows.Collected != 1 {
			b.Errorf("report %+v, want 4 changed and 1 collected", rep.Rows)
		}
		for d := range changes {
			if got, want := b.Row(d).Exists(), d != doc("untouched"); got != want {
				b.Errorf("the row of %s exists: %t, want %t", d, got, want)
			}
		}
	})
}

func TestOneFullPassADayAtAnySize(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		rows, budget int // number of rows of the table; first budget of a run
	}{{0, 100}, {10, 100}, {3_000, 100_000}, {4_000, 20}, {4_000, 5}} {
		t.Run(fmt.Sprintf("%d rows, %d at a time", tt.rows, tt.budget), func(t *testing.T) {
			play(t, func(b *bench) {
				for i := range tt.rows {
					b.admit(doc(i), 1)
					b.park(doc(i), 1)
				}
				ended, most, read := 0, 0, 0
				runs := func(days int) {
					ended, most, read = 0, 0, 0
					for range days * 288 {
						p := b.pruner()
						p.Budget.Rows = tt.budget
						rep, err := p.Run(b.Context())
						if err != nil || !rep.Ran {
							b.Fatalf("run: %+v, error %v", rep, err)
						}
						if rep.Rows.PassEnded {
							ended++
						}
						most, read = max(most, rep.Rows.Read), read+rep.Rows.Read
						time.Sleep(b.Config.Lifecycle.PruneEvery)
					}
				}
				runs(9) // after this, prune knows how large the table is
				runs(10)
				if ended < 9 || ended > 11 {
					b.Errorf("%d passes in ten days, want one a day", ended)
				}
				if read < 9*tt.rows || read > 11*(tt.rows+2) {
					b.Errorf("%d rows read in ten days, want about %d", read, 10*tt.rows)
				}
				if fair := tt.rows/200 + 2000; most > fair {
					b.Errorf("one run read %d rows, want at most %d, because the reads are spread over the day", most, fair)
				}
				// The rows are collected within a day after their retention.
				runs(12)
				if got := b.Shards.Len(); got > 3 {
					b.Errorf("%d rows are left, want only the run rows", got)
				}
			})
		})
	}
}

func TestFailingScanSegmentDoesNotKeepTheOthersFromEnding(t *testing.T) {
	play(t, func(b *bench) {
		for i := range 400 {
			b.commit(doc(i), 1, shard.Put)
		}
		time.Sleep(30 * day)
		p := b.pruner()
		broken := &brokenScan{Scanner: b.Shards, segment: 2, broken: true}
		p.Scanner = broken
		rep, err := p.Run(b.Context())
		if !errors.Is(err, errScan) || !rep.Ran {
			b.Errorf("error %v, want the error of the segment", err)
		}
		if rep.Rows.Collected < 200 || rep.Rows.Collected == 400 || rep.Rows.PassEnded {
			b.Errorf("report %+v, want three quarters of the rows collected", rep.Rows)
		}
		broken.broken = false
		time.Sleep(b.Config.Lifecycle.PruneEvery)
		if _, err = p.Run(b.Context()); err != nil {
			b.Error(err)
		}
		if got := b.Shards.Len(); got != 2 { // the run rows of prune
			b.Errorf("%d rows are left, want 2", got)
		}
	})
}

func TestRowWhoseDeletionFailedIsTriedByTheNextRun(t *testing.T) {
	play(t, func(b *bench) {
		for i := range 40 {
			b.commit(doc(i), 1, shard.Put)
		}
		time.Sleep(30 * day)
		p, _ := b.faulty(usecasetest.Where(fault.Throttle, func(op fault.Op) bool {
			return op.Call == "COLLECT" && op.Doc == doc(7)
		}))
		rep, err := p.Run(b.Context())
		if !errors.Is(err, shard.ErrThrottled) || rep.Rows.Left == 0 {
			b.Errorf("report %+v, error %v; want the remaining rows counted, and the reason", rep.Rows, err)
		}
		b.next()
		if b.Row(doc(7)).Exists() {
			b.Error("the row still exists: it would wait a day for the next pass")
		}
	})
}

func TestCursorThatTheTableDoesNotTakeIsGivenUp(t *testing.T) {
	play(t, func(b *bench) {
		b.commit(doc(1), 1, shard.Put)
		time.Sleep(30 * day)
		broken := fmt.Sprintf(
			`{"began":%d,"at":[{"c":"nonsense"},{"c":"nonsense"},{"c":"nonsense"},{"c":"nonsense"}],"rows":1}`,
			time.Now().Unix())
		b.Write(shard.StartRun("rows", "t", now(), now()+1, 0))
		b.Write(shard.EndRun("rows", "t", broken))
		failed := 0
		for range 20 {
			time.Sleep(b.Config.Lifecycle.PruneEvery)
			if _, err := b.pruner().Run(b.Context()); err != nil {
				failed++
			}
		}
		if failed == 0 || b.Row(doc(1)).Exists() {
			b.Errorf("%d runs failed, row exists: %t; want some failures, and then the row deleted", failed,
				b.Row(doc(1)).Exists())
		}
	})
	synctest.Test(t, func(t *testing.T) { // another version of lull saved the cursor
		b := setup(t)
		for _, name := range []string{"rows", "prune-search"} {
			b.Write(shard.StartRun(name, "t", now(), now()+1, 0))
			b.Write(shard.EndRun(name, "t", "2:whatever"))
		}
		time.Sleep(time.Hour)
		b.run()
	})
}

var errScan = errors.New("cannot read this row")

type brokenScan struct {
	shard.Scanner
	segment int
	broken  bool
}

func (s *brokenScan) Scan(ctx context.Context, segment, segments int, cursor string, limit int) ([]shard.Row, string,
	error,
) {
	if s.broken && segment == s.segment {
		return nil, "", errScan
	}
	return s.Scanner.Scan(ctx, segment, segments, cursor, limit)
}

// By a clock that is two months ahead, every tombstone would be past its retention.
func TestAPruneWhoseClockIsOffCollectsNothing(t *testing.T) {
	type row struct {
		by  time.Duration
		off bool
	}
	usecasetest.Table(t, play, map[string]row{
		"ahead by two months":  {60 * 24 * time.Hour, true},
		"behind by two months": {-60 * 24 * time.Hour, true},
		"ahead by a minute":    {time.Minute, false},
	}, func(b *bench, c row) {
		b.commit(doc(1), 2, shard.Delete)
		p := b.pruner()
		p.Fired, p.Clock = time.Now(), clock.Skewed{Clock: clock.System{}, By: c.by}
		if rep, err := p.Run(b.Context()); (err != nil) != c.off || rep.Ran == c.off {
			b.Errorf("report %+v, %v: want an error: %t", rep, err, c.off)
		}
		want := 0
		if c.off {
			want = 1
		}
		b.Noted(journal.ClockOff, want)
		if !b.Row(doc(1)).Exists() {
			b.Error("the tombstone was deleted")
		}
	})
}
