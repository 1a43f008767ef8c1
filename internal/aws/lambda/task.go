package lambda

import (
	"context"
	"time"

	"github.com/lullhq/lull/internal/aws/metrics"
)

// Task is a function that a rule invokes: the event says nothing.
type Task struct {
	Run     func(ctx context.Context) error
	Limit   time.Duration // the function's time-out
	Journal *metrics.Journal
	Done    func() // called at the end of each invocation, before the metrics leave; nil for nothing
}

var _ Handler = (*Task)(nil)

// Invoke runs the task. An error makes the invocation one that failed, which the platform counts
// and tries again.
func (t *Task) Invoke(ctx context.Context, _ []byte) (out []byte, err error) {
	defer finish(ctx, t.Journal, t.Done)
	call, cancel := within(ctx, t.Limit, answerMargin)
	defer cancel()
	if err := t.run(call); err != nil {
		t.Journal.Log().Error("run failed", "error", err.Error())
		return nil, err
	}
	return []byte("{}"), nil
}

func (t *Task) run(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicked(t.Journal, p)
		}
	}()
	return t.Run(ctx)
}
