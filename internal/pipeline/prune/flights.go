// SPDX-License-Identifier: Apache-2.0

package prune

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
)

// FlightsReport counts flights that are older than orphanAge.
type FlightsReport struct {
	Seen    int
	Old     int
	Deleted int // flights that were deleted, because all their events are done
	// flights that are not done, because the sink or the table was not healthy for long enough, or
	// because the rows show recent work
	Waiting int
	Stuck   []flight.ID // flights that are not done for no known reason: each raises an alarm
	Foreign int         // manifests of a newer schema
	Failed  int
}

// flightPage is how many flights are listed at a time.
const flightPage = 100

// flights looks for manifests that no execution will finish.
func (r *run) flights(ctx context.Context) error {
	return errors.Join(r.orphans(ctx), r.judgeSuspects(ctx))
}

// orphans examines the flights that are older than the longest execution.
func (r *run) orphans(ctx context.Context) error {
	rep := &r.report.Flights
	failed := failures{count: &rep.Failed}
	end, _ := ctx.Deadline()
	half := end.Add(-end.Sub(r.Clock.Now()) / 2)
	for rep.Seen < r.budget.Flights {
		list, next, err := page(ctx, r.Pruner, func() ([]flight.Stored, string, error) {
			return r.Flights.List(ctx, r.state.Flights, flightPage)
		})
		if err != nil {
			// The cursor itself may be the reason. The next run starts from the beginning.
			r.state.Flights = ""
			return err
		}
		rep.Seen += len(list)
		young := false
		for _, s := range list {
			if young = r.young(s.ID); young {
				break // ids sort by time, so all further flights are younger
			}
			// A younger checkpoint shows that another execution continued the flight.
			if r.Clock.Now().Sub(s.Newest) <= r.orphanAge() {
				continue
			}
			rep.Old++
			if err := r.flight(ctx, s); err != nil {
				failed.add(fmt.Errorf("flight %s: %w", s.ID, err))
			}
			// The next run continues after this flight. Otherwise a flight that uses up the time
			// would be the first flight of every run. Half of the time is for judging the suspects.
			if err := ctx.Err(); err != nil || len(r.suspects) > 0 && r.Clock.Now().After(half) {
				r.state.Flights = string(s.ID)
				return err
			}
		}
		if r.state.Flights = next; next == "" || young {
			r.state.Flights = ""
			break
		}
	}
	return failed.segmentError(rep.Old)
}

// young reports whether the flight itself is younger than orphanAge. It is false for an id that is
// not a ULID, because only a ULID contains a time.
func (r *run) young(id flight.ID) bool {
	u, err := ulid.Parse(string(id))
	return err == nil && r.Clock.Now().Sub(ulid.Time(u.Time())) <= r.orphanAge()
}

// orphanAge is how long the newest object of a flight must be unchanged before the flight counts as
// orphaned. An execution writes a checkpoint within its five minutes, or sleeps until a cap or for
// the pace of a document. After that, a cap, a lease and a visibility may still have to pass.
func (p *Pruner) orphanAge() time.Duration {
	return executionLimit + p.Config.LongestHold(p.Sink) + p.Config.Lease(p.Sink) + p.Config.Queues.Visibility
}

// executionLimit is the longest time that one execution of a flight lasts.
const executionLimit = 5 * time.Minute

// flight deletes an old flight that is done, and only counts any other flight.
func (r *run) flight(ctx context.Context, s flight.Stored) error {
	rep := &r.report.Flights
	m, err := r.manifest(ctx, s.ID)
	switch {
	case errors.Is(err, flight.ErrSchema):
		// Code does not change an object of a newer schema.
		rep.Foreign++
		return nil
	case errors.Is(err, flight.ErrNotFound): // an interrupted deletion left only checkpoints
		return r.deleteFlight(ctx, s.ID)
	case err != nil:
		return fmt.Errorf("get the manifest: %w", err)
	}
	// If the flight's sink is not in the settings any more, every pruner may handle the flight.
	if m.Sink != r.Sink {
		if _, known := r.Config.Sinks[m.Sink]; known {
			return nil // the pruner of that sink handles the flight
		}
	}
	u, err := r.undone(ctx, m)
	switch {
	case err != nil:
		return err
	case len(u.left) == 0:
		for _, e := range u.overwritten {
			r.note(journal.Note{
				Step: journal.OutageResync, Doc: e.Doc, Key: e.Key, Op: e.Op,
				Lane: string(m.Lane), Flight: string(s.ID),
				Detail: "the flight of an outage write was lost, and the row has a newer version",
			})
		}
		return r.deleteFlight(ctx, s.ID)
	case len(u.idle) == 0, !r.healthySince(r.orphanAge()):
		// Stuck means that the row of an event shows no sign of life while the sink was healthy
		// (design section 9).
		rep.Waiting++
		return nil
	}
	r.suspects = append(r.suspects, &suspect{id: s.ID, lane: m.Lane, left: u.left, idle: u.idle})
	return nil
}

// worked reports whether a row explains why a version waits. One explanation is that a newer
// version was claimed, and so may be in the sink. Another explanation is a recent sign of life.
//
// Recent means less than the sum of three times. They are the longest flight, an outage of the
// table between two runs of prune, and one more time. For that time, receive may hold back a
// message that it received at the end of the outage.
//
// The time at which the flight received its messages is a sign of life, too. If the newest version
// of a row became a dead letter, the row has no other sign.
func (p *Pruner) worked(r shard.Row, e flight.Entry, received time.Time) bool {
	if r.Foreign() {
		return true // only newer code can judge a row of a newer schema
	}
	// The version of this flight may have been admitted earlier, before a newer version.
	admitted := max(e.Admitted, shard.MicrosOf(received))
	sign := max(r.BurstStart, r.LeaseUntil, r.LastWrite, admitted)
	if e.Open() {
		sign = max(sign, e.Due) // an open flight is due when receive finds the table unreachable
	}
	if now := shard.MicrosOf(p.Clock.Now()); r.Ahead(now) > 0 {
		sign = max(r.BurstStart, admitted, e.Due) // ignore times from a clock that was ahead
	}
	return r.Claimed > e.Key || sign.Add(p.orphanAge()+2*config.TableHold) > shard.MicrosOf(p.Clock.Now())
}

// healthySince reports whether the sink and the table have been healthy for at least d. Flights
// cannot end while the sink or the table is unhealthy, and their messages return some minutes
// later.
func (r *run) healthySince(d time.Duration) bool {
	now := shard.MicrosOf(r.Clock.Now())
	return shard.HealthySince(r.health, now, d+config.AwayMost) &&
		(r.state.Since == 0 || r.state.Since.Add(config.TableHold+d) <= now)
}

// manifest reads a manifest with retries. The caller handles flight.ErrNotFound and
// flight.ErrSchema.
func (p *Pruner) manifest(ctx context.Context, id flight.ID) (*flight.Manifest, error) {
	return backoff.Get(ctx, p.Clock, func() (*flight.Manifest, error) { return p.Flights.Get(ctx, id) })
}

// parked reports whether a dead letter is stored.
func (p *Pruner) parked(ctx context.Context, id string) (stored bool, err error) {
	err = p.try(ctx, func() (err error) {
		_, stored, err = p.Letters.Get(ctx, id)
		return err
	})
	return stored, err
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// deleteFlight deletes the manifest and its checkpoints. It deletes no message.
func (r *run) deleteFlight(ctx context.Context, id flight.ID) error {
	if err := r.try(ctx, func() error { return r.Flights.Delete(ctx, id) }); err != nil {
		return fmt.Errorf("delete the flight: %w", err)
	}
	r.report.Flights.Deleted++
	return nil
}

// undone says which events of a manifest are not done, according to their rows.
type undone struct {
	left []flight.Entry // events that are neither committed nor dead letters
	idle []flight.Entry // entries of left whose row shows no sign of life
	// overwritten has events that were written without asking the row, although the row has a newer
	// version. The sink may hold the older version, because the flight that would have compared the
	// two is lost.
	overwritten []flight.Entry
}

func (p *Pruner) undone(ctx context.Context, m *flight.Manifest) (u undone, err error) {
	var docs []shard.DocID
	for _, e := range m.Entries() {
		docs = append(docs, e.Doc)
	}
	rows, err := p.table().Of(ctx, docs, shard.Consistent) // other reads may miss dead = k
	if err != nil {
		return u, fmt.Errorf("read the rows: %w", err)
	}
	var open []undecided
	for _, e := range m.Entries() {
		switch row := rows[e.Doc]; {
		case row.Took(e.Key): // the event is done, but an outage write may have put it into the sink
			if e.Open() {
				u.overwritten = append(u.overwritten, *e)
			}
		case row.Committed < e.Key && row.Dead != e.Key:
			open = append(open, undecided{*e, row, deadletter.ID(e.Doc, e.Key, "")})
		case row.Committed > e.Key && e.Open():
			u.overwritten = append(u.overwritten, *e)
		}
	}
	// A redrive removes `dead` from the row, but the parked dead letter stays (design section 10).
	// So the row alone does not prove that there is no dead letter.
	stored := make([]bool, len(open))
	err = p.Parallel.Try(maxParallel, len(open), func(i int) (err error) {
		stored[i], err = p.parked(ctx, open[i].letter)
		return err
	})
	if err != nil {
		return u, fmt.Errorf("look for a dead letter: %w", err)
	}
	for i, o := range open {
		if stored[i] {
			continue
		}
		if u.left = append(u.left, o.Entry); !p.worked(o.row, o.Entry, m.Received) {
			u.idle = append(u.idle, o.Entry)
		}
	}
	return u, nil
}

// undecided is an event that is not done according to its row. A dead letter of the event may still
// exist.
type undecided struct {
	flight.Entry
	row    shard.Row
	letter string // id of the event's dead letter, if one exists
}
