// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/shard"
)

// The state of a job must fit into a row, or the job fails.
func TestTheLargestCursorFitsIntoTheRowOfAJob(t *testing.T) {
	t.Parallel()
	const most = 300 << 10 // the largest state, in bytes
	fill := func(_ context.Context, c Cursor, out *job.Step[Line]) (Cursor, bool, error) {
		s := step{&Verification{}, &c, out}
		for i := range 2 * maxTold {
			doc := shard.DocID(fmt.Sprintf("content#%s%06d", strings.Repeat("k", 400), i))
			if i < 500 {
				s.look(doc)
				s.lookOrphan(operate.ReconcileCopy{Key: doc, OrderKey: strings.Repeat("o", 60), Fence: 1 << 60})
			}
			s.tell(Line{Key: doc, Difference: "missing", Version: "1", Outcome: Found})
		}
		for i := range someMessages {
			c.Sent = append(c.Sent, 100_000_000+i)
		}
		return c, true, nil
	}
	r := job.Runner{Clock: clock.System{}, By: "me", Dry: true}
	state, err := job.Run(t.Context(), r, job.Job[Cursor, Line]{ID: "verify-content", Step: fill}, func(Line) {})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(state)
	if err != nil || len(text) > most {
		t.Errorf("the state has %d bytes and %v, want at most %d", len(text), err, most)
	}
	if len(text) < most*3/4 {
		t.Errorf("the state has only %d bytes, so it is not the largest one", len(text))
	}
}
