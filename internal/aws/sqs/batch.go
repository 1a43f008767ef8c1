// SPDX-License-Identifier: Apache-2.0

package sqs

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"golang.org/x/sync/errgroup"

	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/queue"
)

// call sends one batch. The batch lists indexes of the caller's entries. call returns the outcome
// of each entry, or one error for all entries.
type call func(ctx context.Context, batch []int) ([]error, error)

// each sends the batches, several at the same time, and stores the outcome of each entry in errs.
func (q *Queue) each(ctx context.Context, batches [][]int, f call, errs []error) {
	var g errgroup.Group
	g.SetLimit(maxParallel)
	for _, batch := range batches {
		g.Go(func() error {
			q.perform(ctx, batch, f, errs)
			return nil
		})
	}
	_ = g.Wait() // there is no error here: errs has the outcomes
}

// perform sends one batch. The method sends entries again if a retry may succeed.
func (q *Queue) perform(ctx context.Context, batch []int, f call, errs []error) {
	_ = backoff.Do(ctx, q.clk, func() error {
		outcome, err := f(ctx, batch)
		if err != nil {
			outcome = queue.FailAll(len(batch), q.failure(err))
		}
		var again []int
		for n, i := range batch {
			errs[i] = outcome[n]
			if err := outcome[n]; err != nil && !backoff.Final(err) && !errors.Is(err, queue.ErrGone) {
				again = append(again, i)
			}
		}
		if batch = again; len(again) > 0 {
			return errs[again[0]]
		}
		return nil
	})
}

// answers returns the outcome of each entry from the two lists of a successful answer. id returns
// the id of an entry. An entry that is in neither list got no answer.
func answers[T any](doing string, n int, ok []T, id func(T) *string, bad []types.BatchResultErrorEntry) []error {
	outcome := queue.FailAll(n, fmt.Errorf("%s: the answer of SQS does not contain the entry", doing))
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
	return outcome
}
