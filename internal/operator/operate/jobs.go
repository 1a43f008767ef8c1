// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"errors"

	"github.com/lullhq/lull/internal/operator/feed"
	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/seam/rows"
)

// JobOrder says which job to stop or to drop.
type JobOrder struct {
	ID string `json:"id"`
	By string `json:"by"` // the operator, for the audit
}

// final reports whether repeating a step after this error cannot help.
func final(err error) bool {
	var wrong *feed.InputError
	return errors.Is(err, ErrInput) || errors.Is(err, ErrNotFound) || errors.As(err, &wrong)
}

// ledger keeps the states of jobs.
type ledger struct{ records }

func (o *ledger) jobs() job.Ledger {
	return job.Ledger{Shards: o.Shards, Clock: o.Clock, NewToken: rows.NewToken}
}

// TakeJob takes the lease of a job.
func (o *ledger) TakeJob(ctx context.Context, c job.Claim) (job.Lease, error) {
	if err := named(c.By); err != nil {
		return job.Lease{}, err
	}
	l, err := o.jobs().TakeJob(ctx, c)
	return l, kind(err)
}

// SaveJob stores the progress of a job.
func (o *ledger) SaveJob(ctx context.Context, l job.Lease) error {
	return kind(o.jobs().SaveJob(ctx, l))
}

// EndJob stores how a job ended.
func (o *ledger) EndJob(ctx context.Context, l job.Lease) error {
	return kind(o.jobs().EndJob(ctx, l))
}

// Jobs lists the jobs that run, and the last jobs that ran.
func (o *ledger) Jobs(ctx context.Context) ([]job.State, error) { return o.jobs().Jobs(ctx) }

// StopJob stops a job that runs.
func (o *ledger) StopJob(ctx context.Context, r JobOrder) error {
	if err := named(r.By); err != nil {
		return err
	}
	return kind(o.jobs().StopJob(ctx, r.ID, r.By))
}

// DropJob deletes the progress of a job.
func (o *ledger) DropJob(ctx context.Context, r JobOrder) error {
	if err := named(r.By); err != nil {
		return err
	}
	return kind(o.jobs().DropJob(ctx, r.ID))
}
