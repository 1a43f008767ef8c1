// SPDX-License-Identifier: Apache-2.0

package lambda

import (
	"context"
	"fmt"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/internal/aws/metrics"
	"github.com/lullhq/lull/internal/config"
)

// Works is the handler of the function job. Each of its EventBridge rules sends the name of the
// work to do, as {"work": "canary"}.
type Works struct {
	// Do has the works, by name. A work stops before its context ends.
	Do      map[config.Work]func(ctx context.Context) error
	Limit   time.Duration // the function's time-out
	Journal *Journal
}

var _ Handler = (*Works)(nil)

// workMargin is the time that is left to a work to store its progress.
const workMargin = 10 * time.Second

// Invoke does one work. If the work returns an error, the invocation fails.
func (w *Works) Invoke(ctx context.Context, event []byte) (out []byte, err error) {
	defer w.Journal.finish(ctx)
	name := gjson.GetBytes(event, "work").String()
	do := w.Do[config.Work(name)]
	if do == nil {
		w.Journal.Count(metrics.InvalidEvents, 1)
		w.Journal.Log.Error("the event names no work of this function", "work", cut(name))
		return nil, fmt.Errorf("the event names no work of this function: %q", cut(name))
	}
	call, cancel := within(ctx, w.Limit, workMargin)
	defer cancel()
	out, err = guard(w.Journal, func() ([]byte, error) { return []byte("{}"), do(call) })
	if err != nil {
		w.Journal.Log.Error("run failed", "work", name, "error", err.Error())
		return nil, err
	}
	return out, nil
}

// cut bounds a text of the event in the log.
func cut(text string) string { return text[:min(len(text), 40)] }
