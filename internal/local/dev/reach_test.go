// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/sink"
)

// pinged is a sink that answers each ping with the next of answers. nil means success.
type pinged struct {
	sink.Sink
	answers []error
}

func (p *pinged) Ping(context.Context) error {
	err := p.answers[0]
	p.answers = p.answers[1:]
	return err
}

func TestReachWaitsWhileASinkIsAwayForNow(t *testing.T) {
	t.Parallel()
	starting, busy := fmt.Errorf("starting: %w", sink.ErrAway), fmt.Errorf("busy: %w", sink.ErrAway)
	for name, tt := range map[string]struct {
		answers []error
		told    int
		fails   bool
		took    time.Duration
	}{
		"at once":         {answers: []error{nil}},
		"after a restart": {answers: []error{starting, starting, busy, nil}, told: 2, took: 700 * time.Millisecond},
		"denied":          {answers: []error{sink.ErrDenied}, fails: true},
		"no such place":   {answers: []error{starting, errors.New("404")}, told: 1, fails: true, took: 100 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			began, told := time.Now(), 0
			p := &pinged{answers: tt.answers}
			err := Reach(t.Context(), clock.System{}, p, time.Second, func(error) { told++ })
			if (err != nil) != tt.fails || told != tt.told || len(p.answers) > 0 || time.Since(began) != tt.took {
				t.Errorf("%s: %v, told %d times, after %s, %v left", name, err, told, time.Since(began), p.answers)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		all := slices.Repeat([]error{sink.ErrAway}, 1000)
		err := Reach(ctx, clock.System{}, &pinged{answers: all}, time.Second, func(error) {})
		if !errors.Is(err, sink.ErrAway) {
			t.Errorf("interrupted: %v, want what the sink said last", err)
		}
	})
}
