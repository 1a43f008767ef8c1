// SPDX-License-Identifier: Apache-2.0

package prune_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/pipeline/prune"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/shard"
)

// After a claim without an answer, older versions wait, so their flights are not stuck. But an old
// claim does not explain why the claimed version itself waits.
func TestAnOldClaimExplainsOnlyOlderVersions(t *testing.T) {
	t.Parallel()
	type row struct {
		claimed int
		stuck   bool
	}
	usecasetest.Table(t, play, map[string]row{
		"a newer version was claimed":    {3, false},
		"the version itself was claimed": {2, true},
	}, func(b *bench, tt row) {
		b.flight(entry{doc(1), 2})
		if tt.claimed > 2 {
			b.admit(doc(1), tt.claimed)
		}
		b.claim(doc(1), tt.claimed)
		time.Sleep(silent + time.Minute) // longer than the lease
		rep := b.run().Flights
		if got := len(rep.Stuck) == 1; got != tt.stuck || rep.Waiting == 1 == tt.stuck {
			b.Errorf("report %+v, want stuck %t", rep, tt.stuck)
		}
	})
}

// A rescued flight keeps its lane, because the bulk lane has other windows and another queue.
func TestARescuedFlightStaysInItsLane(t *testing.T) {
	for _, lane := range []flight.Lane{flight.Live, flight.Bulk} {
		t.Run(string(lane), func(t *testing.T) {
			play(t, func(b *bench) {
				m := b.manifest(b.flight(entry{doc(1), 1}))
				m.Lane = lane
				usecasetest.OK(b, b.flights.Put(b.Context(), m))
				time.Sleep(silent)
				p, v := b.faulty(usecasetest.Healthy)
				p.Launcher = v.Launcher(nobody{})
				to, err := p.Rescue(b.Context(), m.Flight)
				if err != nil {
					b.Fatal(err)
				}
				if got := b.manifest(to).Lane; got != lane {
					b.Errorf("the new flight is in lane %s, want %s", got, lane)
				}
			})
		})
	}
}

// nobody is a launcher that starts no execution.
type nobody struct{}

func (nobody) Start(context.Context, flight.State) error { return nil }

// After twelve failed runs in a row, a scan segment drops its cursor and starts from the beginning.
// One run that succeeds resets the count.
func TestAScanBeginsAgainAfterTwelveFailedRuns(t *testing.T) {
	for name, tt := range map[string]struct {
		failing []int // numbers of consecutive failed runs, with one successful run between them
		begins  bool
	}{"eleven": {[]int{11}, false}, "twelve": {[]int{12}, true}, "eleven twice": {[]int{11, 11}, false}} {
		t.Run(name, func(t *testing.T) {
			play(t, func(b *bench) {
				for i := range 400 {
					b.commit(doc(i), 1, shard.Put)
				}
				var seen []string
				fails := false
				run := func() {
					p, _ := b.faulty(usecasetest.Where(fault.FailBefore, func(op fault.Op) bool {
						return fails && op.Call == "Scan"
					}))
					p.Scanner = cursors{p.Scanner, &seen}
					p.Budget = prune.Budget{Rows: 40}
					_, _ = p.Run(b.Context())
					time.Sleep(b.Config.Lifecycle.PruneEvery)
				}
				run()
				for _, n := range tt.failing {
					fails = true
					for range n {
						run()
					}
					fails, seen = false, nil
					run()
				}
				if len(seen) == 0 || (seen[0] == "") != tt.begins {
					b.Errorf("the scan read from %q, want a read from the beginning: %t", seen, tt.begins)
				}
			})
		})
	}
}

// cursors records from which cursors scan segment 0 is read.
type cursors struct {
	shard.Scanner
	seen *[]string
}

func (c cursors) Scan(ctx context.Context, segment, segments int, cursor string, limit int) ([]shard.Row, string,
	error,
) {
	if segment == 0 {
		*c.seen = append(*c.seen, cursor)
	}
	return c.Scanner.Scan(ctx, segment, segments, cursor, limit)
}

// If there are more younger flights than prune reads, prune cannot know whether one of them holds
// the event of the old flight.
func TestAFlightIsStuckBesideAsManyYoungerOnesAsAreRead(t *testing.T) {
	for younger, stuck := range map[int]bool{2000: true, 2001: false} {
		t.Run(fmt.Sprint(younger), func(t *testing.T) {
			play(t, func(b *bench) {
				b.flight(entry{doc(1), 1})
				time.Sleep(silent + time.Second)
				for range younger {
					b.flight(entry{doc(2), 1})
				}
				if rep := b.run().Flights; len(rep.Stuck) == 1 != stuck || rep.Waiting == 0 != stuck {
					b.Errorf("report %+v, want stuck %t", rep, stuck)
				}
			})
		})
	}
}
