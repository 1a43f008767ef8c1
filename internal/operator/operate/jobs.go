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
	By string `json:"by"` // who asks, for the audit
}

// final reports whether an error of a step means that repeating the step cannot help.
func final(err error) bool {
	var wrong *feed.InputError
	return errors.Is(err, ErrInput) || errors.Is(err, ErrNotFound) || errors.As(err, &wrong)
}

func (o *Operator) jobs() job.Ledger {
	return job.Ledger{Shards: o.Shards, Clock: o.Clock, NewToken: rows.NewToken}
}

// TakeJob takes the lease of a job.
func (o *Operator) TakeJob(ctx context.Context, c job.Claim) (job.Lease, error) {
	if err := named(c.By); err != nil {
		return job.Lease{}, err
	}
	l, err := o.jobs().TakeJob(ctx, c)
	return l, kind(err)
}

// SaveJob stores how far a job is.
func (o *Operator) SaveJob(ctx context.Context, l job.Lease) error {
	return kind(o.jobs().SaveJob(ctx, l))
}

// EndJob stores how a job ended.
func (o *Operator) EndJob(ctx context.Context, l job.Lease) error {
	return kind(o.jobs().EndJob(ctx, l))
}

// Jobs lists the jobs that run, and the last ones that ran.
func (o *Operator) Jobs(ctx context.Context) ([]job.State, error) { return o.jobs().Jobs(ctx) }

// StopJob stops a job that runs.
func (o *Operator) StopJob(ctx context.Context, r JobOrder) error {
	if err := named(r.By); err != nil {
		return err
	}
	return kind(o.jobs().StopJob(ctx, r.ID, r.By))
}

// DropJob forgets how far a job is.
func (o *Operator) DropJob(ctx context.Context, r JobOrder) error {
	if err := named(r.By); err != nil {
		return err
	}
	return kind(o.jobs().DropJob(ctx, r.ID))
}

// done adapts an order without an answer.
func done[Q any](f func(context.Context, Q) error) func(context.Context, Q) (struct{}, error) {
	return func(ctx context.Context, q Q) (struct{}, error) { return struct{}{}, f(ctx, q) }
}

// order asks a question that has no answer.
func order[Q any](ctx context.Context, c *Client, name string, q Q) error {
	_, err := ask[Q, struct{}](ctx, c, name, q)
	return err
}

// TakeJob takes the lease of a job.
func (c *Client) TakeJob(ctx context.Context, q job.Claim) (job.Lease, error) {
	return ask[job.Claim, job.Lease](ctx, c, "take-job", q)
}

// SaveJob stores how far a job is.
func (c *Client) SaveJob(ctx context.Context, l job.Lease) error { return order(ctx, c, "save-job", l) }

// EndJob stores how a job ended.
func (c *Client) EndJob(ctx context.Context, l job.Lease) error { return order(ctx, c, "end-job", l) }

// Jobs lists the jobs.
func (c *Client) Jobs(ctx context.Context) ([]job.State, error) {
	return ask[struct{}, []job.State](ctx, c, "jobs", struct{}{})
}

// StopJob stops a job that runs.
func (c *Client) StopJob(ctx context.Context, o JobOrder) error { return order(ctx, c, "stop-job", o) }

// DropJob forgets how far a job is.
func (c *Client) DropJob(ctx context.Context, o JobOrder) error { return order(ctx, c, "drop-job", o) }
