package console

import (
	"context"
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
func (c *console) breakitRoutes(mux *http.ServeMux) {
	if c.Breaker == nil {
		return
	}
	c.can["breakit"] = true
	mux.HandleFunc("GET "+prefix+"breakit", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, c.Breaker.Recovery())
	})
	change := func(w http.ResponseWriter, err error) {
		if err != nil {
			failed(w, &problem{http.StatusBadRequest, err.Error()})
			return
		}
		answer(w, c.Breaker.Recovery())
	}
	mux.HandleFunc("POST "+prefix+"breakit", func(w http.ResponseWriter, r *http.Request) {
		b, err := read[fault.Broken](w, r)
		if err != nil {
			failed(w, err)
			return
		}
		change(w, c.Breaker.Panel().Break(b))
	})
	mux.HandleFunc("POST "+prefix+"breakit/kill", func(w http.ResponseWriter, r *http.Request) {
		k, err := read[struct {
			Function string `json:"function"`
		}](w, r)
		if err != nil {
			failed(w, err)
			return
		}
		change(w, c.Breaker.Panel().Kill(k.Function))
	})
	mux.HandleFunc("POST "+prefix+"breakit/send", func(w http.ResponseWriter, r *http.Request) {
		d, err := read[struct {
			ID string `json:"id"`
		}](w, r)
		if err == nil {
			err = c.burst(r.Context(), d.ID)
		}
		if err != nil {
			failed(w, err)
			return
		}
		answer(w, struct{}{})
	})
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
			return &problem{http.StatusConflict, "the settings decode only messages that refer to an object elsewhere"}
		}
		p.Messages = append(p.Messages, m.Message)
	}
	sent, err := c.API.Publish(ctx, p)
	if err == nil && len(sent.Refused) > 0 {
		err = &problem{http.StatusConflict, terminal.Line(sent.Refused[0].Why)}
	}
	return err
}
