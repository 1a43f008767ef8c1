package operate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/lullhq/lull/internal/operator/rebuild"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/rows"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// The actions of a RebuildOrder.
const (
	RebuildStart  = "start"
	RebuildResume = "resume"
	RebuildAbort  = "abort"
)

// RebuildOrder starts, resumes or aborts a rebuild.
type RebuildOrder struct {
	Action     string           `json:"action"`               // start, resume or abort
	Sink       string           `json:"sink,omitempty"`       // of resume and abort; needed if several sinks are rebuilt
	Collection shard.Collection `json:"collection,omitempty"` // of start
	Mapping    json.RawMessage  `json:"mapping,omitempty"`    // of start; empty keeps that of the index in use
	Settings   json.RawMessage  `json:"settings,omitempty"`   // of start; empty keeps that of the index in use
	// of start: a resync fills the new index, and then the operator resumes
	Source bool    `json:"source,omitempty"`
	Keep   int     `json:"keep,omitempty"`    // of start: how many earlier indices stay
	Drop   bool    `json:"drop,omitempty"`    // of start: delete the index that was in use
	Allow  *int    `json:"allow,omitempty"`   // how many documents may be left out
	Rate   float64 `json:"rate,omitempty"`    // of start: documents a second, 0 for no limit
	DryRun bool    `json:"dry_run,omitempty"` // of start
	By     string  `json:"by"`                // who asks, for the audit

	Report func(RebuildProgress) `json:"-"` // called now and then, from one goroutine; may be nil
}

// RebuildProgress says how far a rebuild is.
type RebuildProgress struct {
	Sink string `json:"sink"`
	rebuild.Progress
}

// eventual is how old an eventually consistent read of the table may be: AWS says a second,
// usually.
const eventual = 15 * time.Second

// rebuilder returns the service that rebuilds a sink, or why the sink cannot be rebuilt.
func (o *Operator) rebuilder(name string) (*rebuild.Service, error) {
	if o.Sinks[name] == nil {
		if err := o.Unread[name]; err != nil {
			return nil, inputf("sink %s cannot be reached from here: %w", name, err)
		}
		return nil, inputf("sink %s cannot be reached from here", name)
	}
	r, ok := o.Sinks[name].(sink.Rebuilder)
	if !ok {
		return nil, inputf("sink %s: a sink of kind %s cannot be rebuilt beside live traffic: resync it into a new one",
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
	if o.Off > 0 { // a stack elsewhere, whose table is DynamoDB's
		s.Stale = eventual
	}
	return s, nil
}

// Rebuild starts, resumes or aborts a rebuild, and returns when that has ended.
func (o *Operator) Rebuild(ctx context.Context, r RebuildOrder) (RebuildProgress, error) {
	var none RebuildProgress
	err := cmp.Or(named(r.By), rated(r.Rate, "documents"),
		want(r.Keep >= 0 && (r.Allow == nil || *r.Allow >= 0), "keep and allow: want 0 or more"))
	if err != nil {
		return none, err
	}
	name, err := o.rebuilt(ctx, r)
	if err != nil {
		return none, err
	}
	s, err := o.rebuilder(name)
	if err != nil {
		return none, err
	}
	report := func(p rebuild.Progress) {
		if r.Report != nil {
			r.Report(RebuildProgress{name, p})
		}
	}
	var p rebuild.Progress
	switch r.Action {
	case RebuildStart:
		order := rebuild.Order{
			Collection: r.Collection, Mapping: r.Mapping, Settings: r.Settings, Source: r.Source, Keep: r.Keep,
			Drop: r.Drop, Rate: r.Rate, DryRun: r.DryRun, By: r.By, Report: report,
		}
		if r.Allow != nil {
			order.Allow = *r.Allow
		}
		p, err = s.Start(ctx, order)
	case RebuildResume:
		p, err = s.Resume(ctx, r.By, r.Allow, report)
	default:
		p, err = s.Abort(ctx, r.By, report)
	}
	return RebuildProgress{name, p}, kind(err)
}

// rebuilt returns the sink of an order.
func (o *Operator) rebuilt(ctx context.Context, r RebuildOrder) (string, error) {
	switch r.Action {
	case RebuildStart:
		name, err := o.sinkOf(r.Collection, r.Sink)
		return name, cmp.Or(belongs(r.Collection), err)
	case RebuildResume, RebuildAbort:
	default:
		return "", inputf("action %q: want %s, %s or %s", r.Action, RebuildStart, RebuildResume, RebuildAbort)
	}
	if r.Sink != "" {
		return r.Sink, o.has(r.Sink)
	}
	all, err := o.Rebuilds(ctx)
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

// Rebuilds lists the rebuilds that are under way, by sink. It reads only the table.
func (o *Operator) Rebuilds(ctx context.Context) ([]RebuildProgress, error) {
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

// rebuildUpdate is one line of the answer, which may take hours. The last one has the result.
type rebuildUpdate struct {
	Progress *RebuildProgress `json:"progress,omitempty"`
	Result   *RebuildProgress `json:"result,omitempty"`
	Error    *wireError       `json:"error,omitempty"`
}

func rebuilding(f func(context.Context, RebuildOrder) (RebuildProgress, error)) http.HandlerFunc {
	return lines(func(ctx context.Context, o RebuildOrder, tell func(rebuildUpdate)) rebuildUpdate {
		o.Report = func(p RebuildProgress) { tell(rebuildUpdate{Progress: &p}) }
		p, err := f(ctx, o)
		return rebuildUpdate{Result: &p, Error: wired(err)}
	})
}

// Rebuild starts, resumes or aborts a rebuild.
func (c *Client) Rebuild(ctx context.Context, o RebuildOrder) (p RebuildProgress, err error) {
	err = follow(ctx, c, "rebuild", o, "`lull rebuild resume` goes on", func(u rebuildUpdate) (bool, *wireError) {
		switch {
		case u.Result != nil:
			p = *u.Result
		case u.Progress != nil:
			if p = *u.Progress; o.Report != nil {
				o.Report(p)
			}
		}
		return u.Result != nil, u.Error
	})
	return p, err
}

// Rebuilds lists the rebuilds that are under way.
func (c *Client) Rebuilds(ctx context.Context) ([]RebuildProgress, error) {
	return ask[struct{}, []RebuildProgress](ctx, c, "rebuilds", struct{}{})
}
