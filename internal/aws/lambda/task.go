// SPDX-License-Identifier: Apache-2.0

package lambda

import (
	"context"
	"time"

	"github.com/tidwall/gjson"
)

// Task is the handler of a function that an EventBridge rule invokes. A Task reads only the time of
// the event: when the rule fired, by EventBridge's clock.
type Task struct {
	// Run runs the task. fired is the zero time if the event has no time.
	Run     func(ctx context.Context, fired time.Time) error
	Limit   time.Duration // the function's time-out
	Journal *Journal
}

var _ Handler = (*Task)(nil)

// Invoke runs the task. If the task returns an error, the invocation fails. Lambda counts and
// retries a failed invocation.
func (t *Task) Invoke(ctx context.Context, event []byte) (out []byte, err error) {
	defer t.Journal.finish(ctx)
	call, cancel := within(ctx, t.Limit, answerMargin)
	defer cancel()
	out, err = guard(t.Journal, func() ([]byte, error) {
		return []byte("{}"), t.Run(call, gjson.GetBytes(event, "time").Time())
	})
	if err != nil {
		t.Journal.Log.Error("run failed", "error", err.Error())
		return nil, err
	}
	return out, nil
}
