// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/terminal"
)

// Breaker is a stack in which a user can cause failures on purpose, as in `lull dev`.
type Breaker interface {
	Panel() *fault.Panel
	Recovery() fault.Recovery
}

// breakitRoutes serves these requests below /console/breakit:
//   - GET: which failures are active, since when, and how far the stack has recovered
//   - POST {"sink_down", "sink_slow_ms", "sink_rejects", "table_away"}: sets the failures
//   - POST kill {"function": "receive" or "index"}: kills the next invocation of the function
//   - POST send {"id"}: sends three versions of a document, as a burst
func (c *console) breakitRoutes() routes {
	if c.Breaker == nil {
		return nil
	}
	c.can["breakit"] = true
	return routes{
		"GET /console/breakit": answered(reader, func(*http.Request) (any, error) { return c.Breaker.Recovery(), nil }),
		"POST /console/breakit": answered(reader, func(r *http.Request) (any, error) {
			b, err := read[fault.Broken](r)
			if err == nil {
				err = c.Breaker.Panel().Break(b)
			}
			return c.stateOrError(err)
		}),
		"POST /console/breakit/kill": answered(reader, func(r *http.Request) (any, error) {
			k, err := read[struct {
				Function string `json:"function"`
			}](r)
			if err == nil {
				err = c.Breaker.Panel().Kill(k.Function)
			}
			return c.stateOrError(err)
		}),
		"POST /console/breakit/send": answered(reader, func(r *http.Request) (any, error) {
			d, err := read[struct {
				ID string `json:"id"`
			}](r)
			if err == nil {
				err = c.burst(r.Context(), d.ID)
			}
			return struct{}{}, err
		}),
	}
}

// stateOrError returns the state of the stack after a change of failures, or the error in the
// request.
func (c *console) stateOrError(err error) (any, error) {
	if err != nil && !errors.As(err, new(*problem)) {
		return nil, badf("%v", err)
	}
	return c.Breaker.Recovery(), err
}

// burst sends three versions of one document, in a form that the settings decode.
func (c *console) burst(ctx context.Context, id string) error {
	const versions = 3
	var p operate.Publication
	began := c.Clock.Now() // versions are times in milliseconds, and must differ
	for n := range versions {
		m, err := c.API.Compose(ctx, operate.Composition{
			ID: id, At: began.Add(time.Duration(n) * time.Millisecond),
			Data: fmt.Appendf(nil, `{"title":"Break it: version %d of its burst"}`, n+1),
		})
		if err != nil {
			return err
		}
		if m.Ref != "" {
			return Problemf(http.StatusConflict, "the settings decode only messages that refer to an object elsewhere")
		}
		p.Messages = append(p.Messages, m.Message)
	}
	sent, err := c.API.Publish(ctx, p)
	if err == nil && len(sent.Refused) > 0 {
		err = Problemf(http.StatusConflict, "%s", terminal.Line(sent.Refused[0].Why))
	}
	return err
}
