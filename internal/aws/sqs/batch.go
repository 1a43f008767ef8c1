package sqs

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"golang.org/x/sync/errgroup"

	"github.com/lullhq/lull/internal/backoff"
	"github.com/lullhq/lull/internal/queue"
)

// failed is an entry of a batch that failed: its number within the batch and why.
type failed struct {
	entry int
	err   error
}

// call sends one batch, named by indexes into the caller's entries, and returns the entries that
// failed, or an error for all.
type call func(ctx context.Context, batch []int) ([]failed, error)

// each sends the batches, in parallel and bounded, and writes each entry's outcome to errs.
func (q *Queue) each(ctx context.Context, batches [][]int, f call, errs []error) {
	var g errgroup.Group
	g.SetLimit(maxParallel)
	for _, batch := range batches {
		g.Go(func() error {
			q.perform(ctx, batch, f, errs)
			return nil
		})
	}
	_ = g.Wait() // outcomes are kept per entry
}

// perform sends one batch, and sends the entries again that may succeed on another try.
func (q *Queue) perform(ctx context.Context, batch []int, f call, errs []error) {
	policy := backoff.Row()
	_ = policy.Do(ctx, q.clk, func() error {
		fs, err := f(ctx, batch)
		if err != nil {
			err = q.failure(err)
			for _, i := range batch {
				errs[i] = err
			}
			return err
		}
		for _, i := range batch {
			errs[i] = nil
		}
		var again []int
		for _, x := range fs {
			i := batch[x.entry]
			errs[i] = x.err
			if !backoff.Final(x.err) && !errors.Is(x.err, queue.ErrGone) {
				again = append(again, i)
				err = x.err
			}
		}
		batch = again
		return err
	})
}

// answers reads the two lists of a successful answer, whose entries id names. An entry in neither
// list got no answer.
func answers[T any](doing string, n int, ok []T, id func(T) *string, bad []types.BatchResultErrorEntry) []failed {
	outcome := make([]error, n)
	for i := range outcome {
		outcome[i] = fmt.Errorf("%s: the queue's answer leaves the entry out", doing)
	}
	set := func(id *string, to error) {
		if i, err := strconv.Atoi(aws.ToString(id)); err == nil && i >= 0 && i < n {
			outcome[i] = to
		}
	}
	for _, e := range ok {
		set(id(e), nil)
	}
	for _, b := range bad {
		set(b.Id, entryFailure(doing, b))
	}
	var fs []failed
	for i, err := range outcome {
		if err != nil {
			fs = append(fs, failed{i, err})
		}
	}
	return fs
}
