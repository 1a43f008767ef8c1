package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/lullhq/lull/internal/local/fault"
	"github.com/lullhq/lull/internal/operate"
	"github.com/lullhq/lull/internal/terminal"
)

// Breaker is a stack that can be broken on purpose: `lull dev`.
type Breaker interface {
	Panel() *fault.Panel
	Recovery() fault.Recovery
}

// breakitRoutes serves, below /console/breakit:
//   - GET: what is broken, since when, and how far the stack has recovered
//   - POST {"sink_down", "sink_slow_ms", "sink_rejects", "table_away"}: from now on
//   - POST kill {"function": "receive" or "index"}: its next invocation
//   - POST send {"id"}: three versions of a document, as a burst
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
			return c.broken(err)
		}),
		"POST /console/breakit/kill": answered(reader, func(r *http.Request) (any, error) {
			k, err := read[struct {
				Function string `json:"function"`
			}](r)
			if err == nil {
				err = c.Breaker.Panel().Kill(k.Function)
			}
			return c.broken(err)
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

// broken is how the stack is after a change, or what is wrong with the request.
func (c *console) broken(err error) (any, error) {
	if err != nil && !errors.As(err, new(*problem)) {
		return nil, badf("%v", err)
	}
	return c.Breaker.Recovery(), err
}

// burst sends versions of one document, in whichever form the settings decode.
func (c *console) burst(ctx context.Context, id string) error {
	const versions = 3
	var p operate.Publication
	began := c.Clock.Now() // the versions are times: within one millisecond they would be the same
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
