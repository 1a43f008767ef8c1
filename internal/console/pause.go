// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"net/http"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/terminal"
)

// pauseRoutes returns the requests that stop and restart the writes to a sink.
//
//	POST /console/sink/pause    {"sink", "why"}: nothing is claimed for the sink from then on
//	POST /console/sink/resume   {"sink"}: ends the pause
func (c *console) pauseRoutes() routes {
	return routes{
		"POST /console/sink/pause":  c.pause(c.API.Pause, true),
		"POST /console/sink/resume": c.pause(c.API.Resume, false),
	}
}

// pause answers an order about one sink. A pause needs a reason, for those who find the sink
// paused.
func (c *console) pause(do func(context.Context, operate.PauseOrder) (operate.PauseResult, error), reason bool,
) http.HandlerFunc {
	return answered(operator, func(r *http.Request) (any, error) {
		q, err := read[struct {
			Sink string `json:"sink"`
			Why  string `json:"why"`
		}](r)
		switch {
		case err != nil:
			return nil, err
		case q.Sink == "":
			return nil, badf("sink is missing: name one")
		case reason && q.Why == "":
			return nil, badf("why is missing: give a reason for those who find the sink paused")
		}
		return do(r.Context(), operate.PauseOrder{Sink: q.Sink, Why: terminal.Line(q.Why), By: c.By})
	})
}
