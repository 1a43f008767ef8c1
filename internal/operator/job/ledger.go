// SPDX-License-Identifier: Apache-2.0

package job

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/rows"
	"github.com/lullhq/lull/internal/shard"
)

// Store stores jobs. Implementations are safe for concurrent use.
type Store interface {
	// TakeJob takes the lease of a job, and returns the state from which it continues. It returns
	// ErrBusy, ErrOther or ErrID.
	TakeJob(ctx context.Context, c Claim) (Lease, error)
	// SaveJob stores a state and extends the lease. A caller may repeat it. It returns ErrLost or
	// ErrLarge.
	SaveJob(ctx context.Context, l Lease) error
	// EndJob stores a state and releases the lease. It returns ErrLost or ErrLarge.
	EndJob(ctx context.Context, l Lease) error
}

// Claim asks for a job.
type Claim struct {
	ID    string          `json:"id"`
	Verb  string          `json:"verb"`
	Args  json.RawMessage `json:"args"`
	First json.RawMessage `json:"first"` // the cursor of a job that begins
	// Anew begins the job again if the stopped job had other arguments. Without Anew, TakeJob returns
	// ErrOther.
	Anew bool `json:"anew,omitempty"`
	// Seen is the time of the job's last save, as the caller read it before it chose First. It is zero
	// if there was no job, and nil if First does not depend on an earlier job. If the job was saved
	// since, TakeJob returns ErrLost.
	Seen *time.Time `json:"seen,omitempty"`
	// Keep is how long after the job began the list keeps it, although it is done.
	Keep time.Duration `json:"keep,omitempty"`
	By   string        `json:"by"`
}

// Lease is a job that a program runs.
type Lease struct {
	Token shard.Token `json:"token"`
	State State       `json:"state"`
}

// Ledger stores jobs in the table. Each job has a row, and another row lists the jobs. All fields
// are required. A Ledger is safe for concurrent use.
type Ledger struct {
	Shards   shard.Store
	Clock    clock.Clock
	NewToken func() shard.Token // random, fresh at each call
}

var _ Store = Ledger{}

// HoldFor is how long the lease of a job lasts after each save.
const HoldFor = 2 * time.Minute

// maxListed is how many jobs the list should have. If it has more, the oldest jobs that are done
// are removed, except those that a schedule keeps.
const maxListed = 50

// directory is the name of the row that lists the jobs.
const directory = "jobs"

// rowOf returns the name of a job's row.
func rowOf(id string) string { return "job-" + id }

func (l Ledger) table() rows.Table { return rows.Table{Store: l.Shards, Clock: l.Clock} }

// TakeJob is [Store.TakeJob].
func (l Ledger) TakeJob(ctx context.Context, c Claim) (Lease, error) {
	if err := checkID(c.ID); err != nil {
		return Lease{}, err
	}
	if err := l.list(ctx, c.ID); err != nil {
		return Lease{}, err
	}
	token, old, err := l.take(ctx, rowOf(c.ID), HoldFor)
	if refused, ok := shard.AsRefused(err); ok {
		if refused.Row.Owner == "" {
			return Lease{}, fmt.Errorf("%w: %s, while it began", ErrLost, c.ID)
		}
		return Lease{}, fmt.Errorf("%w, until %s at least: `lull jobs stop %s` ends it", ErrBusy,
			refused.Row.LeaseUntil.Time().UTC().Format(time.RFC3339), c.ID)
	}
	if err != nil {
		return Lease{}, fmt.Errorf("take job %s: %w", c.ID, err)
	}
	s, err := parse(old)
	if err == nil && c.Seen != nil && !c.Seen.Equal(s.Saved) {
		err = fmt.Errorf("%w: %s has changed since it was read: repeat the command", ErrLost, c.ID)
	}
	// A stopped job may get other arguments before its first step, or if its kind allows that.
	begun := s.Active() && (same(s.Args, c.Args) || s.Steps > 0 && !c.Anew)
	if err == nil && begun && !same(s.Args, c.Args) {
		err = fmt.Errorf("%w: it began with %s: give the same, or `lull jobs drop %s`", ErrOther, s.Args, c.ID)
	}
	if err != nil { // release the lease, and keep the stored state
		_, _ = l.table().Write(ctx, shard.EndRun(rowOf(c.ID), token, old.Cursor))
		return Lease{}, err
	}
	now := l.Clock.Now().UTC()
	if !begun {
		s = State{ID: c.ID, Verb: c.Verb, Args: c.Args, At: c.First, Counts: map[string]int{}, Begun: now}
	}
	s.Phase, s.By, s.Saved, s.Error = Running, c.By, now, ""
	if c.Keep > 0 {
		s.Keep = s.Begun.Add(c.Keep)
	}
	lease := Lease{token, s}
	// Store the job before its first step. Otherwise a second start would begin a second job.
	if err = l.SaveJob(ctx, lease); err == nil {
		err = l.list(ctx, c.ID) // again, because the job may have been removed from the list while it was done
	}
	if err != nil { // release the lease: no step was done
		_, _ = l.table().Write(ctx, shard.EndRun(rowOf(c.ID), token, old.Cursor))
	}
	return lease, err
}

// same reports whether two texts are the same JSON, apart from white space.
func same(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

// take takes the lease of a row, and returns the row before that. Each lease begins later than the
// previous lease, even if the clocks of two programs differ. So a START RUN that arrives late,
// after its own retry, is refused. Otherwise it would give the lease to a program that has ended or
// was stopped.
func (l Ledger) take(ctx context.Context, name string, hold time.Duration) (shard.Token, shard.Row, error) {
	row, err := l.table().One(ctx, shard.RunRow(name), shard.Consistent)
	if err != nil {
		return "", row, err
	}
	now, token := shard.MicrosOf(l.Clock.Now()), l.NewToken()
	if !shard.Absurd(row.RanAt, now) {
		now = max(now, row.RanAt.Add(time.Microsecond))
	}
	w := shard.StartRun(name, token, now, now.Add(hold), time.Microsecond)
	old, err := l.table().Ensure(ctx, w, func(row shard.Row) bool { return row.Owner == token })
	return token, old, err
}

// SaveJob is [Store.SaveJob].
func (l Ledger) SaveJob(ctx context.Context, s Lease) error {
	text, err := s.State.text()
	if err != nil {
		return err
	}
	until := shard.MicrosOf(l.Clock.Now().Add(HoldFor))
	return l.written(ctx, s, shard.SaveRun(rowOf(s.State.ID), s.Token, until, text))
}

// EndJob is [Store.EndJob].
func (l Ledger) EndJob(ctx context.Context, s Lease) error {
	text, err := s.State.text()
	if err != nil {
		return err
	}
	return l.written(ctx, s, shard.EndRun(rowOf(s.State.ID), s.Token, text))
}

func (l Ledger) written(ctx context.Context, s Lease, w shard.Write) error {
	_, err := l.table().Write(ctx, w)
	if refused, ok := shard.AsRefused(err); ok {
		now, err := parse(refused.Row)
		if w.Transition == shard.ENDRUN && err == nil && refused.Row.Owner == "" && now.Saved.Equal(s.State.Saved) &&
			now.Phase == s.State.Phase {
			return nil // an earlier try ended the job, and its answer was lost
		}
		return fmt.Errorf("%w: %s is %s, by %s: see `lull jobs`", ErrLost, s.State.ID, now.Phase, now.By)
	}
	if err != nil {
		return fmt.Errorf("save job %s: %w", s.State.ID, err)
	}
	return nil
}

// Jobs returns the jobs of the list, ordered by the time when they began.
func (l Ledger) Jobs(ctx context.Context) ([]State, error) {
	ids, _, err := l.listed(ctx)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	docs := make([]shard.DocID, len(ids))
	for i, id := range ids {
		docs[i] = shard.RunRow(rowOf(id))
	}
	found, err := l.table().Read(ctx, docs, shard.Consistent)
	if err != nil {
		return nil, fmt.Errorf("read the rows of jobs: %w", err)
	}
	var all []State
	for i, row := range found {
		s, err := parse(row)
		if err != nil {
			s = State{ID: ids[i], Phase: Failed, Error: err.Error()}
		}
		if s.ID != "" { // a row has no state if its job was dropped, or if the first save failed
			all = append(all, s)
		}
	}
	slices.SortStableFunc(all, func(a, b State) int { return a.Begun.Compare(b.Begun) })
	return all, nil
}

// Job returns one job, or ErrNone.
func (l Ledger) Job(ctx context.Context, id string) (State, error) {
	row, err := l.one(ctx, id)
	if err != nil {
		return State{}, err
	}
	return parse(row)
}

// StopJob takes the lease away from the program that runs a job. That program stops at its next
// save. StopJob returns ErrNone if there is no such job.
func (l Ledger) StopJob(ctx context.Context, id, by string) error {
	for {
		row, err := l.one(ctx, id)
		if err != nil || row.Owner == "" {
			return err
		}
		s, err := parse(row)
		if err != nil {
			return err
		}
		text := row.Cursor // a job that is done stays done, even if a program is about to begin it again
		if s.Active() {
			s.Phase, s.By, s.Saved = Stopped, by, l.Clock.Now().UTC()
			if text, err = s.text(); err != nil {
				return err
			}
		}
		_, err = l.table().Write(ctx, shard.EndRun(rowOf(id), row.Owner, text))
		if _, refused := shard.AsRefused(err); refused {
			continue // the job has ended, another operator stopped it, or another program continued it
		}
		if err != nil {
			return fmt.Errorf("stop job %s: %w", id, err)
		}
		return nil
	}
}

// DropJob deletes the progress of a job, so that the same command begins again. It returns ErrNone
// if there is no such job, and ErrBusy if the job runs.
func (l Ledger) DropJob(ctx context.Context, id string) error {
	if _, err := l.one(ctx, id); err != nil {
		return err
	}
	return l.clear(ctx, id)
}

// clear empties the row of a job that does not run.
func (l Ledger) clear(ctx context.Context, id string) error {
	token, _, err := l.take(ctx, rowOf(id), HoldFor)
	if _, refused := shard.AsRefused(err); refused {
		return fmt.Errorf("%w: `lull jobs stop %s` first", ErrBusy, id)
	}
	if err == nil {
		_, err = l.table().Write(ctx, shard.EndRun(rowOf(id), token, ""))
	}
	if refused, ok := shard.AsRefused(err); ok {
		if refused.Row.Owner == "" {
			return nil // an earlier try emptied the row
		}
		return fmt.Errorf("%w: another program has begun %s", ErrBusy, id)
	}
	if err != nil {
		return fmt.Errorf("drop job %s: %w", id, err)
	}
	return nil
}

// one reads the row of a job. It returns ErrNone if the row has no job.
func (l Ledger) one(ctx context.Context, id string) (shard.Row, error) {
	if err := checkID(id); err != nil {
		return shard.Row{}, err
	}
	row, err := l.table().One(ctx, shard.RunRow(rowOf(id)), shard.Consistent)
	switch {
	case err != nil:
		return row, fmt.Errorf("read job %s: %w", id, err)
	case row.Cursor == "":
		return row, fmt.Errorf("%w: %s", ErrNone, id)
	}
	return row, nil
}

// listed returns the ids in the list. still says that no program is changing the list.
func (l Ledger) listed(ctx context.Context) (ids []string, still bool, err error) {
	row, err := l.table().One(ctx, shard.RunRow(directory), shard.Consistent)
	if err != nil {
		return nil, false, fmt.Errorf("read the list of jobs: %w", err)
	}
	ids, err = idsOf(row)
	return ids, row.Owner == "", err
}

func idsOf(row shard.Row) (ids []string, err error) {
	if row.Cursor == "" {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(row.Cursor), &ids); err != nil {
		return nil, fmt.Errorf("read the list of jobs: %w", err)
	}
	return ids, nil
}

// listFor is how long a program has the lease of the list.
const listFor = 10 * time.Second

// list adds a job to the list, unless the list has the job already.
func (l Ledger) list(ctx context.Context, id string) error {
	for {
		ids, still, err := l.listed(ctx)
		if err != nil || still && slices.Contains(ids, id) {
			return err
		}
		token, row, err := l.take(ctx, directory, listFor)
		if refused, ok := shard.AsRefused(err); ok {
			wait := max(refused.Row.LeaseUntil.Time().Sub(l.Clock.Now()), 100*time.Millisecond)
			if err := l.Clock.Sleep(ctx, min(wait, time.Second)); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return fmt.Errorf("list job %s: %w", id, err)
		}
		if ids, err = idsOf(row); err != nil {
			return err
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
		if len(ids) > maxListed {
			if ids, err = l.shorter(ctx, ids, id); err != nil {
				return err
			}
		}
		text, err := json.Marshal(ids)
		if err != nil {
			return fmt.Errorf("list job %s: %w", id, err)
		}
		if _, err = l.table().Write(ctx, shard.EndRun(directory, token, string(text))); err == nil {
			return nil
		}
		if _, refused := shard.AsRefused(err); !refused {
			return fmt.Errorf("list job %s: %w", id, err)
		}
		// The lease ran out, or an earlier try of this write succeeded: read the list again.
	}
}

// shorter removes jobs that are done or were dropped from the list, the oldest first, until the
// list has maxListed jobs. It keeps the job that is being added, and jobs that can continue. It
// also keeps jobs whose time [Claim.Keep] is not over, and jobs whose rows cannot be read.
func (l Ledger) shorter(ctx context.Context, ids []string, adding string) ([]string, error) {
	var kept []string
	over := len(ids) - maxListed
	for _, id := range ids {
		if over <= 0 || id == adding {
			kept = append(kept, id)
			continue
		}
		row, err := l.one(ctx, id)
		if err != nil && !errors.Is(err, ErrNone) {
			return nil, err
		}
		if s, broken := parse(row); broken != nil || s.Active() || s.Keep.After(l.Clock.Now()) {
			kept = append(kept, id)
			continue
		}
		if err == nil {
			err = l.clear(ctx, id)
		}
		switch {
		case errors.Is(err, ErrBusy): // another program has just begun this job again
			kept = append(kept, id)
			continue
		case err != nil && !errors.Is(err, ErrNone):
			return nil, err
		}
		over--
	}
	return kept, nil
}
