// SPDX-License-Identifier: Apache-2.0

package prune_test

import (
	"testing"
	"time"

	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/journal"
)

// If a call fails, the class of the error is in the error of the run, and the next runs do the
// remaining work.
func TestNoErrorOfARunIsLost(t *testing.T) {
	t.Parallel()
	usecasetest.NoErrorIsLost(t, func(t *testing.T, f *usecasetest.FailingCall) ([]journal.Note, error) {
		b := setup(t)
		b.world()
		p, v := b.faulty(f)
		v.Failure = usecasetest.Denied
		_, err := p.Run(t.Context())
		for range 3 {
			time.Sleep(b.Config.Lifecycle.PruneEvery)
			b.run()
		}
		if got := b.end(); got != wantEnd {
			t.Errorf("got  %s\nwant %s", got, wantEnd)
		}
		return nil, err
	})
}

func TestNoErrorOfARescueIsLost(t *testing.T) {
	t.Parallel()
	usecasetest.NoErrorIsLost(t, func(t *testing.T, f *usecasetest.FailingCall) ([]journal.Note, error) {
		b := setup(t)
		id := b.flight(entry{doc("a"), 1})
		p, v := b.faulty(f)
		v.Failure = usecasetest.Denied
		machine := memory.NewMachine(p.Clock, memory.MachineSettings{}, nil)
		machine.Close()
		p.Launcher = v.Launcher(machine) // the machine is closed, so the new manifest is deleted again
		_, err := p.Rescue(t.Context(), id)
		if n := len(b.stored()); n == 0 {
			t.Error("the old flight was deleted, want it kept")
		}
		return nil, err
	})
}
