// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullhq/lull/internal/operator/bridge"
	"github.com/lullhq/lull/internal/seam/queue"
)

// Each call contains messages of one part. A part whose queue is down does not hold up the others,
// and gets its messages later. What belongs to no single part is parked.
func TestEachMessageGoesToTheQueueOfItsPart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const parts = 3
		var all []string
		for i := range 60 {
			all = append(all, fmt.Sprintf(`{"id":%d,"part":%d}`, i, 1+i%parts))
		}
		const split = `{"id":99,"parts":"1 and 2"}`
		g := newGround(t, append(slices.Clone(all), split)...)
		got, down := map[int][]string{}, true
		o := g.options()
		o.Parts = parts
		o.PartOf = func(out queue.Outgoing) (int, error) {
			var part int
			if _, err := fmt.Sscanf(out.Body[strings.LastIndex(out.Body, ":")+1:], "%d", &part); err != nil {
				return 1, errors.New("its documents are of parts 1 and 2")
			}
			return part, nil
		}
		o.Send = func(ctx context.Context, part int, out []queue.Outgoing) []error {
			g.mu.Lock()
			refuse := part == 2 && down
			g.mu.Unlock()
			if refuse {
				return queue.FailAll(len(out), errors.New("part 2: the queue is down"))
			}
			errs := g.send(ctx, out)
			g.set(func() {
				for _, m := range out {
					got[part] = append(got[part], m.Body)
				}
			})
			return errs
		}
		b := bridge.New(o)
		stop := run(t, b)
		time.Sleep(5 * time.Second)
		h := b.Health()
		if h.Parts[1] != 20 || h.Parts[2] != 0 || h.Parts[3] != 20 || h.Counts.Parked != 1 || h.Unconfirmed != 20 {
			t.Errorf("while part 2 is down: got %+v", h)
		}
		g.set(func() { down = false })
		time.Sleep(time.Minute)
		stop()
		if h = b.Health(); h.Parts[2] != 20 || h.Counts.Confirmed != 60 || g.left() != 0 {
			t.Errorf("after its return: got %+v, %d messages are left", h, g.left())
		}
		for part, bodies := range got {
			for _, body := range bodies {
				if !strings.HasSuffix(body, fmt.Sprintf(`"part":%d}`, part)) {
					t.Errorf("part %d got %s", part, body)
				}
			}
		}
		if said := g.log.String(); !strings.Contains(said, "part 2: the queue is down") ||
			!strings.Contains(said, "its documents are of parts 1 and 2") {
			t.Errorf("the log does not name the parts:\n%s", said)
		}
	})
}

// A request to SQS costs the same with one message as with ten. So the bridge gathers more messages
// if they go to several queues.
func TestCallsStayFullWithSeveralParts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGround(t, bodies(200)...)
		o, n := g.options(), atomic.Int64{}
		o.Parts, o.PartOf = 4, func(queue.Outgoing) (int, error) { return 1 + int(n.Add(1)%4), nil }
		stop := run(t, bridge.New(o))
		time.Sleep(2 * time.Second)
		stop()
		if len(g.calls) > 24 || len(g.accepted) != 200 {
			t.Errorf("%d messages in %d calls, want 200 in about 20", len(g.accepted), len(g.calls))
		}
	})
}
