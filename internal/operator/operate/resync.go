// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"cmp"
	"context"
	"regexp"

	"github.com/lullhq/lull/internal/operator/feed"
	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/seam/flight"
)

// ResyncOrder says what to publish again, and where. A job continues only with the same order.
type ResyncOrder struct {
	Input      string `json:"input"`                // the name of the export
	Run        string `json:"run,omitempty"`        // a ULID that the operator has chosen
	Source     string `json:"source,omitempty"`     // the source that decodes the messages
	Collection string `json:"collection,omitempty"` // the collection to write to; empty for the events' own collections
	Sink       string `json:"sink,omitempty"`       // the one sink to resync; empty for all sinks of the collection
	Group      string `json:"group,omitempty"`      // the message group of messages that name none
	Parts      int    `json:"parts.of,omitempty"`   // of the API
}

// ResyncCursor is where the next step of a resync begins.
type ResyncCursor struct {
	Run string `json:"run"`
	feed.Spot
}

// The counts of a resync.
const (
	ResyncSent    = "sent"    // messages that were sent
	ResyncEvents  = "events"  // events of these messages
	ResyncRefused = "refused" // messages that were refused
)

// PublishBatch is how many messages are published with one request.
const PublishBatch = 100

// notOfID matches the characters that the id of a job cannot have.
var notOfID = regexp.MustCompile(`[^A-Za-z0-9_.-]`)

// ResyncJob returns a job that publishes an export again. run is the ULID of the resync run, if the
// job begins. rate is as in [job.Runner].
func ResyncJob(api API, o ResyncOrder, in *feed.Reader, run string, rate float64) job.Job[ResyncCursor, Refusal] {
	limit := PublishBatch
	if rate > 0 {
		limit = max(1, min(limit, int(rate)))
	}
	o.Parts = api.Spread()
	id := "resync-" + notOfID.ReplaceAllString(o.Input[max(0, len(o.Input)-100):], "_")
	if o.Sink != "" {
		id += "@" + o.Sink
	}
	return job.Job[ResyncCursor, Refusal]{
		ID: id, Verb: "resync", Args: o, Final: final, First: ResyncCursor{Run: cmp.Or(o.Run, run)},
		Step: func(ctx context.Context, at ResyncCursor, s *job.Step[Refusal]) (ResyncCursor, bool, error) {
			export, err := in.At(at.Spot)
			if err != nil {
				return at, false, err
			}
			batch, err := export.Batch(limit)
			if err != nil || len(batch) == 0 {
				return at, true, err
			}
			for i := range batch {
				feed.Mark(&batch[i], o.Source, o.Group)
			}
			done, err := api.Publish(ctx, Publication{
				Messages: batch, Lane: flight.Bulk, Run: at.Run, Collection: o.Collection, Sink: o.Sink,
			})
			s.Count(ResyncSent, done.Messages)
			s.Count(ResyncEvents, done.Events)
			s.Count(ResyncRefused, len(done.Refused))
			countParts(s, done.Parts)
			for _, r := range done.Refused {
				s.Say(Refusal{Message: at.Messages + r.Message + 1, Why: r.Why}) // counted from 1
			}
			s.Did(len(batch))
			s.Expect(export.Expected())
			at.Spot = export.Spot()
			return at, export.Ended(), err
		},
	}
}
