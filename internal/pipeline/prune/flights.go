package prune

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/lullhq/lull/internal/backoff"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/deadletter"
	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/shard"
)

// FlightsReport counts flights whose objects are older than any flight needs.
type FlightsReport struct {
	Seen    int
	Old     int
	Deleted int // everything in them is done
	// not done: sink or table have not been well for long enough, or their rows show that somebody
	// works on them
	Waiting int
	Stuck   []flight.ID // not done, and nothing explains it: alarm
	Foreign int         // manifests of a newer schema
	Failed  int
}

// flightPage is how many flights are listed at a time.
const flightPage = 100

// flights looks for manifests that nobody finishes any more.
func (r *run) flights(ctx context.Context) error {
	return errors.Join(r.orphans(ctx), r.judgeSuspects(ctx))
}

// orphans looks into the flights that are older than any execution lasts.
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
				break // ids sort by time: so are all that follow
			}
			// A younger checkpoint shows that an execution went on with the flight.
			if r.Clock.Now().Sub(s.Newest) <= r.orphanAge() {
				continue
			}
			rep.Old++
			if err := r.flight(ctx, s); err != nil {
				failed.add(fmt.Errorf("flight %s: %w", s.ID, err))
			}
			// One that takes all the time there is must not be the first of every run. Suspects take time,
			// too.
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
	return failed.of(rep.Old)
}

// young says that the flight itself is younger than any orphan. An id that is not a ULID says
// nothing.
func (r *run) young(id flight.ID) bool {
	u, err := ulid.Parse(string(id))
	return err == nil && r.Clock.Now().Sub(ulid.Time(u.Time())) <= r.orphanAge()
}

// orphanAge is how old the newest object of a flight is at least when nobody works on it any more:
// an execution writes a checkpoint before its five minutes are over, or sleeps to a cap or the pace
// of a document. After that there may be a cap to wait for, a lease to outlive and a visibility to
// lapse.
func (p *Pruner) orphanAge() time.Duration {
	return executionLimit + p.Config.LongestHold(p.Sink) + p.Config.Lease(p.Sink) + p.Config.Queues.Visibility
}

// executionLimit is how long one execution of a flight lasts at most.
const executionLimit = 5 * time.Minute

// flight deletes an old flight that is done, and says what became of any other.
func (r *run) flight(ctx context.Context, s flight.Stored) error {
	rep := &r.report.Flights
	m, err := r.manifest(ctx, s.ID)
	switch {
	case errors.Is(err, flight.ErrSchema):
		// Code leaves alone what has a newer schema than it knows.
		rep.Foreign++
		return nil
	case errors.Is(err, flight.ErrNotFound): // checkpoints that a deletion left over
		return r.deleteFlight(ctx, s.ID)
	case err != nil:
		return fmt.Errorf("get the manifest: %w", err)
	}
	// A flight of a sink that is not configured any more is anybody's.
	if m.Sink != r.Sink {
		if _, known := r.Config.Sinks[m.Sink]; known {
			return nil // another pruner's
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
				Detail: "its open flight was lost, and the row knows a newer version",
			})
		}
		return r.deleteFlight(ctx, s.ID)
	case len(u.idle) == 0, !r.healthySince(r.orphanAge()):
		// Stuck needs an event whose row shows no sign of life, and a sink that was healthy for as
		// long (design section 9).
		rep.Waiting++
		return nil
	}
	r.suspects = append(r.suspects, &suspect{id: s.ID, lane: m.Lane, left: u.left, idle: u.idle})
	return nil
}

// worked reports whether a row explains why a version waits: a newer one was claimed and may be in
// the sink, or there was a recent sign of life. Recent is less than these three take together: a
// flight, an outage of the table that prune's own runs need not notice, and a message that receive
// keeps away in its last moment. That the flight received its messages is one, too: a row whose
// newest version became a dead letter shows no other.
func (p *Pruner) worked(r shard.Row, e flight.Entry, received time.Time) bool {
	if r.Foreign() {
		return true // what newer code wrote is for newer code to judge
	}
	// The version itself may count as admitted earlier, behind a newer one.
	admitted := max(e.Admitted, shard.MicrosOf(received))
	sign := max(r.BurstStart, r.LeaseUntil, r.LastWrite, admitted)
	if e.Open() {
		sign = max(sign, e.Due) // when receive found the table away
	}
	if now := shard.MicrosOf(p.Clock.Now()); r.Ahead(now) > 0 {
		sign = max(r.BurstStart, admitted, e.Due) // what a wrong clock wrote is not a sign
	}
	return r.Claimed > e.Key || sign.Add(p.orphanAge()+2*config.TableHold) > shard.MicrosOf(p.Clock.Now())
}

// healthySince reports whether the sink, and the table, have been there for at least d: before,
// flights had no chance to end. Messages that waited for either come back some minutes later.
func (r *run) healthySince(d time.Duration) bool {
	now := shard.MicrosOf(r.Clock.Now())
	return shard.HealthySince(r.health, now, d+config.AwayMost) &&
		(r.state.Since == 0 || r.state.Since.Add(config.TableHold+d) <= now)
}

// manifest reads a manifest with retries. The caller tells flight.ErrNotFound and flight.ErrSchema
// apart.
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

// deleteFlight removes the manifest and its checkpoints. It deletes no message.
func (r *run) deleteFlight(ctx context.Context, id flight.ID) error {
	if err := r.try(ctx, func() error { return r.Flights.Delete(ctx, id) }); err != nil {
		return fmt.Errorf("delete it: %w", err)
	}
	r.report.Flights.Deleted++
	return nil
}

// undone is what the rows say of a manifest that nobody finishes.
type undone struct {
	left []flight.Entry // neither committed nor dead letters
	idle []flight.Entry // those of them of which the row shows no sign of life
	// written without their row, which knows a newer version: the sink may hold the older one, and
	// the flight that would have compared them is lost
	overwritten []flight.Entry
}

func (p *Pruner) undone(ctx context.Context, m *flight.Manifest) (u undone, err error) {
	var docs []shard.DocID
	for _, e := range m.Entries() {
		docs = append(docs, e.Doc)
	}
	rows, err := p.table().Of(ctx, docs, shard.Consistent) // dead = k is believed from no other read
	if err != nil {
		return u, fmt.Errorf("read the rows: %w", err)
	}
	var open []undecided
	for _, e := range m.Entries() {
		switch row := rows[e.Doc]; {
		case row.Committed < e.Key && row.Dead != e.Key:
			open = append(open, undecided{*e, row, deadletter.ID(e.Doc, e.Key, "")})
		case row.Committed > e.Key && e.Open():
			u.overwritten = append(u.overwritten, *e)
		}
	}
	// A redrive takes `dead` off the row, but the parked item stays (design section 10). So the row
	// alone does not say that there is no dead letter.
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

// undecided is an event that its row does not call done: there may be a dead letter of it all the
// same.
type undecided struct {
	flight.Entry
	row    shard.Row
	letter string // its id
}
