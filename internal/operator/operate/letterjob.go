// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"

	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/pipeline/redrive"
)

// LetterJob redrives or drops the selected dead letters, step by step.
type LetterJob = job.Job[redrive.Place, LetterLine]

// letterStep is how many dead letters a step has. It is small, so that an operator sees progress.
const letterStep = 25

// RedriveJob returns a job that sends the selected dead letters again. A stack runs one such job at
// a time. The job ignores the From and the Limit of the order.
func RedriveJob(api API, o LetterOrder) LetterJob { return letterJob("redrive", api.Redrive, o) }

// DropJob returns a job that deletes the selected dead letters for good. A stack runs one such job
// at a time. The job ignores the From and the Limit of the order.
func DropJob(api API, o LetterOrder) LetterJob { return letterJob("drop", api.Drop, o) }

// RunnerOf returns a runner with the rate of an order. The runner stores nothing for a dry run, and
// nothing for a single dead letter, because that is only one step.
func (o LetterOrder) RunnerOf() job.Runner {
	return job.Runner{Rate: o.Rate, Dry: o.DryRun || o.ID != ""}
}

// letterJob returns a job that begins again if its arguments change. The dead letters that the
// stopped job left are still parked, so a later selection can find them.
func letterJob(verb string, do func(context.Context, LetterOrder) (LetterResult, error), o LetterOrder) LetterJob {
	o.From, o.Limit = redrive.Place{}, letterStep
	args := o
	args.By, args.Rate, args.Limit = "", 0, 0
	switch {
	case o.DryRun:
		o.Limit = redrive.MaxStep
	case o.Rate > 0:
		o.Limit = max(1, min(letterStep, int(o.Rate)))
	}
	return LetterJob{
		ID: verb, Verb: verb, Args: args, Anew: true, Final: final,
		Step: func(ctx context.Context, from redrive.Place, s *job.Step[LetterLine]) (redrive.Place, bool, error) {
			o.From = from
			res, err := do(ctx, o)
			if err != nil {
				return from, false, err
			}
			for outcome, n := range res.Outcomes {
				s.Count(outcome, n)
			}
			for _, l := range res.Lines {
				s.Say(l.stored())
			}
			s.Did(res.Outcomes[string(redrive.Sent)] + res.Outcomes[string(redrive.Dropped)])
			if res.Next == nil {
				return from, true, nil
			}
			return *res.Next, false, nil
		},
	}
}

// stored returns the line without the errors of the sink. These may quote a document, and the table
// stores the lines of a job.
func (l LetterLine) stored() LetterLine {
	l.Letter.Detail, l.Letter.FirstError, l.Letter.LastError = "", "", ""
	return l
}

// Refused counts the dead letters of a job that stay parked because their rows or queues refuse
// them now. It does not count the outcome Failed.
func Refused(counts map[string]int) (n int) {
	for _, outcome := range []redrive.Outcome{
		redrive.Busy, redrive.TooOld, redrive.TooLarge, redrive.Empty, redrive.Foreign,
	} {
		n += counts[string(outcome)]
	}
	return n
}
