// SPDX-License-Identifier: Apache-2.0

package roundtrip

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/fanout"
	"github.com/lullhq/lull/source"
)

// Document is the id of the canary's document. It differs from doctor's, so that both can run at
// the same time.
const Document = "lull-canary"

// Canary sends a document through each sink that [config.Config.Canaries] names, once in each run.
// All fields are required. It is safe for concurrent use.
type Canary struct {
	Stack  operate.API // Forms, the operations of [Trip], and those that keep the state of a job
	Config *config.Config
	Clock  clock.Clock
	// Budget is how long a run may take. A round trip that takes longer continues in the next run.
	Budget time.Duration
}

// Outcome is how a round trip ended in a run.
type Outcome string

// The outcomes.
const (
	Passed Outcome = "passed"
	Failed Outcome = "failed" // also if the round trip goes on, but the one before it failed
	// Unfinished means that the round trip continues in the next run.
	Unfinished Outcome = "unfinished"
	// Away means that nothing was sent, because the sink is paused or its circuit breaker is open.
	Away Outcome = "away"
	Busy Outcome = "busy" // another run is still at work
)

// Result is the outcome for one sink.
type Result struct {
	Sink    string
	Outcome Outcome
	// Took is how long the document took until it was committed. It is 0 unless the round trip passed
	// and wrote a document.
	Took time.Duration
	Why  string // what failed, or why nothing was sent
}

// Budget is how long a run of the canary may take on AWS. A round trip takes twenty seconds with
// the defaults, and a longer one continues in the next run.
const Budget = 45 * time.Second

// What a round trip of one sink needs at most with the defaults, for its price.
const (
	Saves      = 16      // writes of its progress
	StateBytes = 2 << 10 // bytes of the row with its progress
	Reads      = 60      // reads of rows
)

// excused is the additional time after a pause or an outage: promise 4 says when all is normal
// again.
const excused = 15 * time.Minute

// poll is how long the canary waits between two looks at the rows.
const poll = time.Second

// Run continues or begins the round trip of each sink, and returns the results in the order of the
// sinks' names.
func (c Canary) Run(ctx context.Context) []Result {
	ctx, cancel := c.Clock.Deadline(ctx, c.Budget)
	defer cancel()
	forms, err := c.Stack.Forms(ctx)
	sinks := c.Config.Canaries()
	return fanout.Map(nil, len(sinks), sinks, func(sink string) Result {
		if err != nil {
			return Result{Sink: sink, Outcome: Failed, Why: err.Error()}
		}
		form, why := formFor(c.Config, forms, sink)
		if why != "" {
			return Result{Sink: sink, Outcome: Failed, Why: why}
		}
		return c.trip(ctx, sink, form)
	})
}

// formFor returns the first form of a document whose collection goes to the sink, or why there is
// none.
func formFor(c *config.Config, all operate.Forms, sink string) (form operate.Form, why string) {
	for _, f := range all.Forms {
		only := c.Canary.Collections
		if f.Deletes && slices.Contains(c.SinksFor(f.Collection), sink) &&
			(len(only) == 0 || slices.Contains(only, f.Collection)) {
			return f, ""
		}
	}
	why = "no source can write and delete a document of a collection of the sink"
	if len(all.Forms) == 0 && all.Why != "" {
		why += ": " + all.Why
	}
	return form, why
}

// Unfit says, for each sink that the canary cannot send a document through, why it cannot. It reads
// only the settings.
func Unfit(c *config.Config) (map[string]string, error) {
	sources, err := source.New(c)
	if err != nil {
		return nil, err
	}
	o := &operate.Operator{Sources: sources, Config: c, Clock: clock.System{}}
	forms, err := o.API().Forms(context.Background())
	unfit := map[string]string{}
	for _, sink := range c.Canaries() {
		if _, why := formFor(c, forms, sink); why != "" {
			unfit[sink] = why
		}
	}
	return unfit, err
}

func (c Canary) trip(ctx context.Context, sink string, form operate.Form) Result {
	t := Trip{
		Stack: c.Stack, Clock: c.Clock, Job: "canary-" + sink, Document: Document, Source: form.Source,
		Collection: form.Collection, Sink: sink, Allowed: Allowed(c.Config, sink), Poll: poll, Excused: excused,
	}
	r := job.Runner{Store: c.Stack.JobStore(), Clock: c.Clock, By: "canary"}
	state, err := job.Run(ctx, r, t.Begin(), func(Check) {})
	at, broken := job.CursorOf[Cursor](state)
	result := Result{Sink: sink, Outcome: Failed}
	switch {
	case err == nil && broken == nil:
		result.Outcome, result.Took = Passed, at.Took
	case errors.Is(err, job.ErrBusy):
		result.Outcome, result.Why = Busy, err.Error()
	case errors.Is(err, job.ErrWaits):
		result.Outcome, result.Why = Away, err.Error()
	case ctx.Err() != nil && broken == nil && at.Failing == "":
		result.Outcome = Unfinished
	case ctx.Err() != nil && broken == nil:
		result.Why = at.Failing
	default:
		result.Why = cmp.Or(err, broken).Error()
	}
	return result
}

// Allowed returns how long each write of the canary may take: twice the time that promise 4 allows
// after one lost invocation.
func Allowed(c *config.Config, sink string) time.Duration { return 2 * c.Recovered(sink) }
