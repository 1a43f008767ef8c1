// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullhq/lull/internal/operator/bridge"
	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/queue"
)

// If a session has lasted for a minute, the bridge connects again at once, even if there was a long
// outage before the session.
func TestAConnectionThatLastedIsTriedAgainAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGround(t)
		for range 8 {
			g.refuse = append(g.refuse, errors.New("connection refused"))
		}
		b := bridge.New(g.options())
		stop := run(t, b)
		time.Sleep(5 * time.Minute)
		for range 5 {
			time.Sleep(time.Minute)
			synctest.Wait()
			g.session.end(errors.New("connection reset"))
			time.Sleep(2 * time.Second)
			if h := b.Health(); !h.Healthy {
				t.Errorf("two seconds later: %+v", h)
			}
		}
		stop()
	})
}

// The broker delivers the held message again to the next session.
func TestAHeldMessageIsCountedOnceAfterTheConnectionBroke(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGround(t, "poison")
		g.parks = false
		g.answer = func(out []queue.Outgoing) []error {
			return queue.FailAll(len(out), backoff.Permanent(queue.ErrContent))
		}
		b := bridge.New(g.options())
		stop := run(t, b)
		for range 3 {
			time.Sleep(time.Minute)
			if h := b.Health(); h.Held != 1 || h.Unconfirmed != 1 {
				t.Errorf("got %+v, want one message held", h)
			}
			synctest.Wait()
			g.session.end(errors.New("connection reset"))
		}
		stop()
	})
}
