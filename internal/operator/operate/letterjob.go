package operate

import (
	"context"

	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/pipeline/redrive"
)

// LetterJob redrives or drops the selected dead letters, step by step.
type LetterJob = job.Job[redrive.Place, LetterLine]

// letterStep is how many dead letters a step has, so that an operator sees progress.
const letterStep = 25

// RedriveJob sends the selected dead letters again. One such job runs at a time in a stack. An
// order's From and Limit do not matter.
func RedriveJob(api API, o LetterOrder) LetterJob { return letterJob("redrive", api.Redrive, o) }

// DropJob deletes the selected dead letters for good. One such job runs at a time in a stack. An
// order's From and Limit do not matter.
func DropJob(api API, o LetterOrder) LetterJob { return letterJob("drop", api.Drop, o) }

// RunnerOf returns a runner with the rate of an order. It stores nothing of a dry run, and nothing
// of a single dead letter, which is one step.
func (o LetterOrder) RunnerOf() job.Runner {
	return job.Runner{Rate: o.Rate, Dry: o.DryRun || o.ID != ""}
}

// letterJob begins anew with other arguments: what a stopped job left is still parked, and the new
// selection has it.
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

// stored returns the line without the errors of the sink, which may quote a document: the table
// keeps the lines of a job.
func (l LetterLine) stored() LetterLine {
	l.Letter.Detail, l.Letter.FirstError, l.Letter.LastError = "", "", ""
	return l
}

// Refused counts the dead letters of a job that stay parked, because their rows or queues do not
// take them now. Failed is another outcome.
func Refused(counts map[string]int) (n int) {
	for _, outcome := range []redrive.Outcome{
		redrive.Busy, redrive.TooOld, redrive.TooLarge, redrive.Empty, redrive.Foreign,
	} {
		n += counts[string(outcome)]
	}
	return n
}
