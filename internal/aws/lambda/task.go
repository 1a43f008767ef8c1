package lambda

import (
	"context"
	"time"
)

// Task is a function that a rule invokes: the event says nothing.
type Task struct {
	Run     func(ctx context.Context) error
	Limit   time.Duration // the function's time-out
	Journal *Journal
}

var _ Handler = (*Task)(nil)

// Invoke runs the task. An error makes the invocation one that failed, which the platform counts
// and tries again.
func (t *Task) Invoke(ctx context.Context, _ []byte) (out []byte, err error) {
	defer t.Journal.finish(ctx)
	call, cancel := within(ctx, t.Limit, answerMargin)
	defer cancel()
	out, err = guard(t.Journal, func() ([]byte, error) { return []byte("{}"), t.Run(call) })
	if err != nil {
		t.Journal.Log.Error("run failed", "error", err.Error())
		return nil, err
	}
	return out, nil
}
