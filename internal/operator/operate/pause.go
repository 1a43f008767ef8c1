// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
)

// PauseOrder says which sinks to pause or to resume.
type PauseOrder struct {
	Sink string `json:"sink,omitempty"` // empty with All
	All  bool   `json:"all,omitempty"`
	Why  string `json:"why,omitempty"` // the reason of a pause; at most 200 bytes are kept
	By   string `json:"by"`            // the operator, for the audit
}

// Pause describes the pause of a sink: an operator has stopped all writes to it.
type Pause struct {
	Since time.Time `json:"since"`
	By    string    `json:"by"`
	Why   string    `json:"why,omitempty"`
	// DeadFrom is when the messages that were sent at the beginning of the pause become dead letters.
	// That is retry.deadDeadline after the beginning. Messages that were already waiting become dead
	// letters earlier.
	DeadFrom time.Time `json:"dead_from"`
}

// PauseResult lists the sinks of an order and what changed.
type PauseResult struct {
	Sinks []PauseChange `json:"sinks"`
}

// PauseChange is the state of a sink after an order.
type PauseChange struct {
	Sink    string `json:"sink"`
	Changed bool   `json:"changed"`         // false if the sink already was in that state
	Pause   *Pause `json:"pause,omitempty"` // the pause, or after a resume the pause that ended; nil if there was none
}

// pauseOf returns the pause of a health row, or nil.
func pauseOf(retry config.Retry, h shard.Row) *Pause {
	if h.PausedAt == 0 {
		return nil
	}
	since := h.PausedAt.Time()
	return &Pause{Since: since, By: h.PausedBy, Why: h.PausedWhy, DeadFrom: since.Add(retry.DeadDeadline)}
}

// pauser pauses and resumes sinks.
type pauser struct {
	layout
	records

	Journal journal.Journal
}

// Pause stops all claims for sinks until Resume. Turns that have already claimed still write, for
// some seconds. If Pause fails, the result has the sinks that were paused.
func (o *pauser) Pause(ctx context.Context, p PauseOrder) (PauseResult, error) {
	return o.each(ctx, p, "pause", func(name string, h shard.Row) (PauseChange, error) {
		now := shard.MicrosOf(o.Clock.Now())
		w := shard.Pause(name, now, p.By, p.Why)
		old, err := o.table().Write(ctx, w)
		refused, is := shard.AsRefused(err)
		switch {
		case err == nil:
			h = w.Apply(old)
		case is && refused.Row.PausedAt != 0:
			h = refused.Row
		case is:
			return PauseChange{}, errors.New("its row has a newer schema: update lull")
		default:
			return PauseChange{}, fmt.Errorf("it may be paused or not: see `lull status`: %w", err)
		}
		// A try without an answer may have been applied, so compare the time of the pause with the time
		// of this order.
		c := PauseChange{Sink: name, Changed: h.PausedAt == now, Pause: pauseOf(o.Config.Retry, h)}
		if c.Changed {
			o.audit(journal.Paused, name, p)
		}
		return c, nil
	})
}

// Resume ends pauses. The waiting documents are written slowly at first, and soon faster. If Resume
// fails, the result has the sinks that were resumed.
func (o *pauser) Resume(ctx context.Context, p PauseOrder) (PauseResult, error) {
	return o.each(ctx, p, "resume", func(name string, h shard.Row) (PauseChange, error) {
		if h.PausedAt == 0 {
			return PauseChange{Sink: name}, nil
		}
		now := shard.MicrosOf(o.Clock.Now())
		_, err := o.table().Ensure(ctx, shard.Resume(name, h, now, o.Config.Retry.OpenFor),
			func(row shard.Row) bool { return row.PausedAt == 0 })
		switch refused, is := shard.AsRefused(err); {
		case is:
			return PauseChange{}, fmt.Errorf("%s has paused it again in the meantime, or its row has a newer schema: see "+
				"`lull status`", refused.Row.PausedBy)
		case err != nil:
			return PauseChange{}, fmt.Errorf("it may be paused or not: see `lull status`: %w", err)
		}
		o.audit(journal.Resumed, name, p)
		return PauseChange{Sink: name, Changed: true, Pause: pauseOf(o.Config.Retry, h)}, nil
	})
}

// each calls do with the health row of every sink of an order. doing names the change in errors.
func (o *pauser) each(ctx context.Context, p PauseOrder, doing string,
	do func(name string, h shard.Row) (PauseChange, error),
) (PauseResult, error) {
	result := PauseResult{Sinks: []PauseChange{}}
	names := o.sinks()
	err := cmp.Or(named(p.By), want(p.All == (p.Sink == ""), "name one sink, or all: this stack has %s",
		strings.Join(names, ", ")), o.has(p.Sink))
	if err != nil {
		return result, err
	}
	if !p.All {
		names = []string{p.Sink}
	}
	var failed []error
	for _, name := range names {
		h, err := o.table().One(ctx, shard.HealthRow(name), shard.Consistent)
		var c PauseChange
		if err == nil {
			c, err = do(name, h)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s sink %s: %w", doing, name, err))
			continue
		}
		result.Sinks = append(result.Sinks, c)
	}
	return result, errors.Join(failed...)
}

func (o *pauser) audit(step journal.Step, name string, p PauseOrder) {
	detail := "by " + p.By
	if p.Why != "" {
		detail += ": " + p.Why
	}
	o.Journal.Note(journal.Note{Step: step, At: o.Clock.Now(), Sink: name, Detail: detail})
}
