// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/operator/operate/operatetest"
	"github.com/lullhq/lull/internal/shard"
)

// window is a stack that answers with the settings of a collection, and in which nothing is
// committed.
type window struct{ says operate.Explanation }

func (w window) Explain(context.Context, shard.DocID) (operate.Explanation, error) {
	return w.says, nil
}

// Without a timeout, a wait takes longer than the quiet window or the pace of the document's
// collection.
func TestAWaitOutlastsTheWindow(t *testing.T) {
	for name, c := range map[string]struct {
		quiet, pace, timeout, want time.Duration
	}{
		"the defaults":   {5 * time.Second, time.Second, 0, 65 * time.Second},
		"a long window":  {5 * time.Minute, time.Second, 0, 6 * time.Minute},
		"a long pace":    {5 * time.Second, time.Hour, 0, 61 * time.Minute},
		"with --timeout": {5 * time.Minute, time.Second, 10 * time.Second, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				stack := operatetest.API(operate.API{}, window{operate.Explanation{Quiet: c.quiet, Pace: c.pace}})
				_, err := waitUntil(t.Context(), stack, "content#a", "version 1", c.timeout,
					func(operate.Explanation) (bool, error) { return false, nil })
				took := time.Since(began)
				if err == nil || !strings.Contains(err.Error(), "within "+c.want.String()) || took != c.want {
					t.Errorf("%v after %s, want it after %s", err, took, c.want)
				}
			})
		})
	}
}
