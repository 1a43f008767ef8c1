// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/operator/rebuild"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/rows"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// RebuildOrder asks for the cursor with which a rebuild begins or continues. With From, it asks for
// the next step. The action start uses Collection, Mapping, Settings, Source, Keep, Drop, Rate and
// DryRun.
type RebuildOrder struct {
	Action     rebuild.Action   `json:"action"`
	Sink       string           `json:"sink,omitempty"` // needed for a step, and if several sinks are being rebuilt
	Collection shard.Collection `json:"collection,omitempty"`
	Mapping    json.RawMessage  `json:"mapping,omitempty"`  // empty for the mapping of the index in use
	Settings   json.RawMessage  `json:"settings,omitempty"` // empty for the settings of the index in use
	// Source says that a resync fills the new index. After the resync the operator resumes the
	// rebuild.
	Source bool    `json:"source,omitempty"`
	Keep   int     `json:"keep,omitempty"`    // how many earlier indices stay
	Drop   bool    `json:"drop,omitempty"`    // delete the index that was in use
	Allow  *int    `json:"allow,omitempty"`   // how many documents may be left out
	Rate   float64 `json:"rate,omitempty"`    // documents a second of the engine's copy, 0 for no limit
	DryRun bool    `json:"dry_run,omitempty"` // only try the mapping and the settings
	By     string  `json:"by"`                // the operator, for the audit

	From  *rebuild.Cursor `json:"from,omitempty"`  // where the step begins; nil asks for this cursor
	First bool            `json:"first,omitempty"` // the first step of a program
	Again bool            `json:"again,omitempty"` // the step failed before
}

// RebuildStep is where the next step of a rebuild begins.
type RebuildStep struct {
	Sink string         `json:"sink"`
	Next rebuild.Cursor `json:"next"`
	Done bool           `json:"done,omitempty"`
}

// RebuildProgress says how far a rebuild is.
type RebuildProgress struct {
	Sink string `json:"sink"`
	rebuild.Progress
}

// eventual is how old an eventually consistent read of the table may be. AWS says that it is
// usually less than a second.
const eventual = 15 * time.Second

// rebuilder rebuilds the indices of sinks.
type rebuilder struct {
	engines
	depths

	running underway
}

// service returns the service that rebuilds a sink, or why the sink cannot be rebuilt.
func (o *rebuilder) service(name string) (*rebuild.Service, error) {
	if o.Sinks[name] == nil {
		if err := o.Unread[name]; err != nil {
			return nil, inputf("sink %s cannot be reached from here: %w", name, err)
		}
		return nil, inputf("sink %s cannot be reached from here", name)
	}
	r, ok := o.Sinks[name].(sink.Rebuilder)
	if !ok {
		return nil, inputf("sink %s: a sink of kind %s cannot be rebuilt during live traffic: resync into a new sink",
			name, o.Config.Sinks[name].Kind)
	}
	s := &rebuild.Service{
		Shards: o.Shards, Sink: r, SinkName: name, Config: o.Config, Clock: o.Clock, Journal: o.Journal,
		NewToken: rows.NewToken,
		Idle: func(ctx context.Context) (bool, error) {
			n, err := o.waiting(ctx, name, flight.Bulk)
			return n == 0 && err == nil, err
		},
	}
	if o.Off > 0 { // the stack is deployed, so its table is DynamoDB's
		s.Stale = eventual
	}
	return s, nil
}

// Rebuild does a step of a rebuild, or returns the cursor of the first step.
func (o *rebuilder) Rebuild(ctx context.Context, r RebuildOrder) (RebuildStep, error) {
	err := cmp.Or(named(r.By), rated(r.Rate, "documents"),
		want(r.Keep >= 0 && (r.Allow == nil || *r.Allow >= 0), "keep and allow: want 0 or more"),
		// Only this stack would write to both indices, and the new one would lose what the others write.
		want(!o.Config.Parts.Spread() || r.Action == rebuild.Abort,
			"parts.of %d: the other parts write to the same index and would miss the new one: fill another index "+
				"from the source instead (docs/scale.md)", o.Config.Parts.Of))
	if err != nil {
		return RebuildStep{}, err
	}
	name, err := o.sinkToRebuild(ctx, r)
	if err != nil {
		return RebuildStep{}, err
	}
	s, err := o.service(name)
	if err != nil {
		return RebuildStep{}, err
	}
	step := RebuildStep{Sink: name}
	switch {
	case r.From != nil:
		step.Next, step.Done, err = s.Step(ctx, rebuild.StepOrder{
			Action: r.Action, From: *r.From, First: r.First, Again: r.Again, By: r.By, Allow: r.Allow,
			Mapping:  r.Mapping,
			Settings: r.Settings,
		})
	case r.Action == rebuild.Start:
		order := rebuild.Order{
			Collection: r.Collection, Mapping: r.Mapping, Settings: r.Settings, Source: r.Source, Keep: r.Keep,
			Drop: r.Drop, Rate: r.Rate, DryRun: r.DryRun, By: r.By,
		}
		if r.Allow != nil {
			order.Allow = *r.Allow
		}
		step.Next, err = s.Plan(ctx, order)
	default:
		step.Next, err = s.Continue(ctx, r.Action)
	}
	return step, kind(err)
}

// RebuildJob returns the job that carries out an order. RebuildResult reads its result.
func RebuildJob(ctx context.Context, api API, o RebuildOrder) (j job.Job[rebuild.Cursor, rebuild.Progress], sink string,
	err error,
) {
	first, err := api.Rebuild(ctx, o)
	if err != nil {
		return j, "", err
	}
	order := rebuild.StepOrder{
		Action: o.Action, From: first.Next, By: o.By, Allow: o.Allow, Mapping: o.Mapping, Settings: o.Settings,
	}
	j = rebuild.Job(first.Sink, order, func(ctx context.Context, s rebuild.StepOrder) (rebuild.Cursor, bool, error) {
		step, err := api.Rebuild(ctx, RebuildOrder{
			Action: s.Action, Sink: first.Sink, From: &s.From, First: s.First, Again: s.Again, By: s.By, Allow: s.Allow,
			Mapping: s.Mapping, Settings: s.Settings, Collection: s.From.Collection,
		})
		return step.Next, step.Done, err
	})
	halted := j.Final
	j.Final = func(err error) bool { return halted(err) || final(err) }
	return j, first.Sink, nil
}

// RebuildResult returns the progress of a rebuild after the job of RebuildJob has ended, and the
// error of the rebuild.
func RebuildResult(sink string, s job.State, err error) (RebuildProgress, error) {
	p, err := rebuild.ResultOf(s, err)
	return RebuildProgress{sink, p}, kind(err)
}

// sinkToRebuild returns the sink of an order.
func (o *rebuilder) sinkToRebuild(ctx context.Context, r RebuildOrder) (string, error) {
	if r.From != nil {
		return r.Sink, o.has(r.Sink)
	}
	switch r.Action {
	case rebuild.Start:
		name, err := o.sinkOf(r.Collection, r.Sink)
		return name, cmp.Or(belongs(r.Collection), err)
	case rebuild.Resume, rebuild.Abort:
	default:
		return "", inputf("action %q: want %s, %s or %s", r.Action, rebuild.Start, rebuild.Resume, rebuild.Abort)
	}
	if r.Sink != "" {
		return r.Sink, o.has(r.Sink)
	}
	all, err := o.running.Rebuilds(ctx)
	switch {
	case err != nil:
		return "", err
	case len(all) == 0:
		return "", kind(rebuild.ErrNone)
	case len(all) > 1:
		return "", inputf("%d sinks are rebuilt: name one, such as %s", len(all), all[0].Sink)
	}
	return all[0].Sink, nil
}

// underway finds the rebuilds that are under way.
type underway struct {
	layout
	records
}

// Rebuilds lists the rebuilds that are under way, by sink. It reads only the table.
func (o *underway) Rebuilds(ctx context.Context) ([]RebuildProgress, error) {
	out := []RebuildProgress{}
	for _, name := range o.sinks() {
		s := rebuild.Service{Shards: o.Shards, SinkName: name, Config: o.Config, Clock: o.Clock}
		p, err := s.Status(ctx)
		switch {
		case errors.Is(err, rebuild.ErrNone):
		case err != nil:
			return out, fmt.Errorf("sink %s: %w", name, err)
		default:
			out = append(out, RebuildProgress{name, p})
		}
	}
	return out, nil
}
