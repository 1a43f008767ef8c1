// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"fmt"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/pipeline/enrich"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/shard"
)

// Status is the state of a stack.
type Status struct {
	Queues    []QueueStatus    `json:"queues"`
	Sinks     []SinkStatus     `json:"sinks"`
	Enrichers []EnricherStatus `json:"enrichers,omitempty"` // one for each collection that has an enricher
	Letters   int              `json:"dead_letters"`        // number of parked dead letters
	Flights   int              `json:"flights"`             // number of manifests
	// Scheduled counts the events that wait for their time. In its last quarter of an hour an event
	// waits in a queue, and then counts as a delayed message instead.
	Scheduled int  `json:"scheduled"`
	Capped    bool `json:"capped,omitempty"` // the counts are at least this many
	// Rebuilds are the rebuilds under way.
	Rebuilds []RebuildProgress `json:"rebuilds,omitempty"`
	Pruned   time.Time         `json:"pruned_at,omitzero"` // the last start of prune
	// Flow says how the stack keeps up. It is nil if nothing measures the stack.
	Flow *Flow `json:"flow,omitempty"`
	// Wrong lists where queues and tables differ from the settings, and other problems, with the
	// fix for each.
	Wrong []string `json:"wrong,omitempty"`
}

// QueueStatus counts the messages of a queue, approximately on AWS.
type QueueStatus struct {
	Queue    string `json:"queue"`
	Sink     string `json:"sink"` // the sink that the queue belongs to
	Visible  int    `json:"visible"`
	InFlight int    `json:"in_flight"`
	Delayed  int    `json:"delayed"`
	// Wrong lists how the queue differs from the settings, with the fix for each. Status.Wrong also
	// has these texts.
	Wrong []string `json:"-"`
}

// SinkStatus is the state of a sink by its health row.
type SinkStatus struct {
	Sink      string    `json:"sink"`
	Open      bool      `json:"open"` // nothing is claimed
	OpenUntil time.Time `json:"open_until,omitzero"`
	Since     time.Time `json:"since,omitzero"`  // about when the circuit breaker first opened; zero if it is closed
	Level     int64     `json:"level,omitempty"` // how often the circuit breaker opened in a row
	Rate      float64   `json:"rate,omitempty"`  // how many documents a second lull writes to the sink; 0 for no limit
	// Growing says that Rate limits the sink after a pause or an outage, and doubles every few
	// seconds. Otherwise Rate exists because the sink throttles.
	Growing bool `json:"growing,omitempty"`
	// Ceiling is the setting maxDocumentsPerSecond, 0 if not set. AtCeiling says that documents
	// wait because of it.
	Ceiling   float64 `json:"ceiling,omitempty"`
	AtCeiling bool    `json:"at_ceiling,omitempty"`
	Pause     *Pause  `json:"pause,omitempty"` // nil if not paused
	// Cause is the last reason why the sink did not accept every document. It contains an error class
	// and names, never content. It is empty if the sink is healthy and its rate is not limited.
	Cause string `json:"cause,omitempty"`
	// PutOff is the largest number of messages that may be invisible in the sink's queues, outside any
	// flight, because the sink is or was away. It is 0 for a healthy sink.
	PutOff int `json:"put_off,omitempty"`
	// PutOffUntil is the time by which the last of these messages is received again. It is zero until
	// the sink accepts documents again.
	PutOffUntil time.Time `json:"put_off_until,omitzero"`
}

// EnricherStatus is the state of the service that enriches a collection, by its health row.
type EnricherStatus struct {
	Collection shard.Collection `json:"collection"`
	Away       bool             `json:"away"` // lull sends it only probes
	AwayUntil  time.Time        `json:"away_until,omitzero"`
	Rate       float64          `json:"rate,omitempty"` // documents a second that lull asks it about; 0 for no limit
}

// reporter reports the state of a stack.
type reporter struct {
	layout
	records
	manifests
	plans
	underway

	Counts func(ctx context.Context) ([]QueueStatus, error)
	Dead   deadletter.Store
	Table  func(ctx context.Context) []string      // nil if there is nothing to compare
	Flow   func(ctx context.Context) (Flow, error) // nil if nothing measures the stack
}

// Status counts at most maxCount dead letters, flights and scheduled events, and reads at most
// maxPages pages of scheduled events.
const (
	maxCount = 10_000
	maxPages = 10
)

// Status warns of a paused sink from pauseWarning before its messages become dead letters.
const pauseWarning = 12 * time.Hour

// Status returns the queues, the health of the sinks, and the counts of waiting work.
func (o *reporter) Status(ctx context.Context) (Status, error) {
	var s Status
	var err error
	if s.Queues, err = o.Counts(ctx); err != nil {
		return s, fmt.Errorf("count messages: %w", err)
	}
	s.Flow = o.flow(ctx)
	if o.Table != nil {
		s.Wrong = o.Table(ctx)
	}
	for _, q := range s.Queues {
		s.Wrong = append(s.Wrong, q.Wrong...)
	}
	if err := o.health(ctx, &s); err != nil {
		return s, fmt.Errorf("read health: %w", err)
	}
	if s.Rebuilds, err = o.Rebuilds(ctx); err != nil {
		return s, fmt.Errorf("read rebuilds: %w", err)
	}
	forgotten := o.Clock.Now().Add(-o.Config.Queues.DeadLetterRetention)
	if s.Letters, s.Capped, err = o.Dead.Parked(ctx, forgotten, maxCount); err != nil {
		return s, err
	}
	planned, capped, err := o.scheduled(ctx, "")
	if err != nil {
		return s, err
	}
	s.Scheduled, s.Capped = len(planned), s.Capped || capped
	var flights []flight.Stored
	for cursor := ""; ; {
		list, next, err := o.Flights.List(ctx, cursor, 1000)
		if err != nil {
			return s, fmt.Errorf("count flights: %w", err)
		}
		flights = append(flights, list...)
		if s.Flights = len(flights); next == "" || s.Flights >= maxCount {
			s.Capped = s.Capped || next != ""
			break
		}
		cursor = next
	}
	for i, k := range s.Sinks {
		if !k.Open && k.Pause == nil && k.PutOffUntil.IsZero() {
			continue
		}
		s.Sinks[i].PutOff = o.putOff(ctx, k.Sink, s.Queues, flights)
	}
	return s, nil
}

// health adds the state of the sinks and enrichers from their health rows.
func (o *reporter) health(ctx context.Context, s *Status) error {
	var ids []shard.DocID
	for _, name := range o.sinks() {
		ids = append(ids, shard.HealthRow(name), shard.RunRow("prune-"+name))
		for _, c := range o.Config.Enriched(name) {
			ids = append(ids, shard.HealthRow(enrich.HealthName(c)))
		}
	}
	read, err := o.Shards.Read(ctx, ids, shard.Consistent)
	if err != nil {
		return err
	}
	next := func() (row shard.Row) { // in the order of the ids
		row, read = read[0], read[1:]
		return row
	}
	now := shard.MicrosOf(o.Clock.Now())
	for _, name := range o.sinks() {
		h, run, ceiling := next(), next(), config.Ceiling(o.Config.Sinks[name])
		p, until, cause := pauseOf(o.Config.Retry, h), putOffUntil(o.Config.Retry, h, now), h.LastError
		if h.OpenUntil == 0 && until.IsZero() && shard.Pace(h, now) == 0 {
			cause = "" // the sink is healthy again
		}
		s.Sinks = append(s.Sinks, SinkStatus{
			Cause: cause, PutOffUntil: until,
			Sink: name, Open: h.OpenUntil != 0, OpenUntil: h.OpenUntil.Time(), Since: unhealthySince(o.Config.Retry, h),
			Level: h.Level, Rate: float64(shard.Pace(h, now)) / 1000, Growing: shard.SlowStart(h, now),
			Ceiling: float64(ceiling) / 1000, AtCeiling: ceiling > 0 && shard.Ahead(h, now) > 0, Pause: p,
		})
		if p != nil && o.Clock.Now().After(p.DeadFrom.Add(-pauseWarning)) {
			s.Wrong = append(s.Wrong, fmt.Sprintf("sink %s is paused since %s, and its messages become dead letters from %s "+
				"on: `lull resume %s`, and redrive those that are dead", name, p.Since.Format(time.RFC3339),
				p.DeadFrom.Format(time.RFC3339), name))
		}
		if at := run.RanAt.Time(); at.After(s.Pruned) {
			s.Pruned = at
		}
		for _, c := range o.Config.Enriched(name) {
			h := next()
			s.Enrichers = append(s.Enrichers, EnricherStatus{
				Collection: c, Away: h.OpenUntil != 0, AwayUntil: h.OpenUntil.Time(),
				Rate: float64(shard.Pace(h, now)) / 1000,
			})
		}
	}
	return nil
}
