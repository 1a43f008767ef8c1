// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
)

func TestRecentKeepsTheLatestSteps(t *testing.T) {
	t.Parallel()
	began := time.Unix(1_800_000_000, 0)
	for name, tt := range map[string]struct {
		step  time.Duration
		hours int
	}{
		"a second":                      {time.Second, 1},
		"a step of a run that is fast":  {time.Minute, 24},
		"a step of less than a quarter": {100 * time.Millisecond, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := New(tt.step)
			at, end := began, began.Add(time.Duration(tt.hours)*time.Hour)
			for ; at.Before(end); at = at.Add(tt.step) {
				l.Sent(at, 10, 3)
			}
			at = at.Add(-tt.step)
			for i := range 200 { // more writes than the ledger samples in a step
				l.Note(journal.Note{
					Step: journal.Committed, At: at, Sent: at.Add(-time.Duration(i%100+1) * time.Millisecond),
					Message: fmt.Sprint(i), Doc: shard.DocID(fmt.Sprintf("content#%d", i)), Key: "k", Op: shard.Put,
				})
			}
			points := l.Recent()
			if len(points) != steps || !points[steps-1].At.Equal(end.Add(-tt.step).UTC()) {
				t.Fatalf("%d points, the last at %s, want %d to %s", len(points), points[len(points)-1].At, steps, end)
			}
			for i, p := range points {
				if p.Events != 3 || i > 0 && p.At.Sub(points[i-1].At) != tt.step {
					t.Fatalf("point %d: %+v after %s", i, p, points[max(i-1, 0)].At)
				}
			}
			last := points[steps-1]
			if last.Written != 200 || last.P50 < 30*time.Millisecond || last.P50 > 70*time.Millisecond ||
				last.P99 < 95*time.Millisecond || last.P99 > 100*time.Millisecond {
				t.Errorf("the last step: %+v", last)
			}
		})
	}
}

func TestAClockThatGoesBackAddsNothingToOtherSteps(t *testing.T) {
	t.Parallel()
	l, now := New(time.Second), time.Unix(1_800_000_000, 0)
	l.Sent(now, 10, 1)
	l.Sent(now.Add(-steps*time.Second), 10, 1)
	if points := l.Recent(); len(points) != 1 || points[0].Events != 1 {
		t.Errorf("got %+v", points)
	}
}

// A day of minutes is kept beside the steps, and the counts of a minute are those of its steps.
func TestADayOfMinutesIsKept(t *testing.T) {
	t.Parallel()
	l, began := New(time.Second), time.Unix(1_800_000_000, 0).Truncate(time.Minute)
	end := began.Add(30 * time.Hour)
	for at := began; at.Before(end); at = at.Add(20 * time.Second) {
		l.Sent(at, 10, 1)
		l.Note(journal.Note{
			Step: journal.Committed, At: at, Sent: at.Add(-time.Second), Message: at.String(),
			Doc: shard.DocID("content#" + at.String()), Key: "k", Op: shard.Put,
		})
	}
	points := l.Long()
	if len(points) != longSteps || !points[longSteps-1].At.Equal(end.Add(-time.Minute).UTC()) {
		t.Fatalf("%d points, the last at %s, want %d to %s", len(points), points[len(points)-1].At, longSteps, end)
	}
	for i, p := range points {
		if p.Events != 3 || p.Written != 3 || p.P50 != time.Second || i > 0 && p.At.Sub(points[i-1].At) != time.Minute {
			t.Fatalf("point %d: %+v", i, p)
		}
	}
}
