// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/pipeline/enrich"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// echoField is the field that the enricher of a simulated run adds. The value of echo is the
// document in the request, so that the oracle sees which document's fields are in the sink.
const echoField = "echo"

// enrichers returns the enrichers of a sink's collections as one invocation calls them.
func (w *World) enrichers(v *invocation, p *pipe) map[shard.Collection]enrich.Caller {
	all := map[shard.Collection]enrich.Caller{}
	for _, c := range w.cfg.Enriched(p.name) {
		all[c] = enrichClient{v}
	}
	return all
}

type enrichClient struct{ v *invocation }

// Call answers as docs/enrich.md says, or fails as a service may. The enricher does not answer
// during an outage of S3, because both share a network in the simulation.
func (c enrichClient) Call(ctx context.Context, body []byte) (answer []byte, err error) {
	w := c.v.w
	if w.away(fault.Bucket) {
		return nil, &enrich.Failure{Reason: "it cannot be connected to"}
	}
	failed := c.v.request(ctx, fault.Bucket, 0, func() { answer, err = w.enrich(body) })
	if failed != nil {
		return nil, failed
	}
	return answer, err
}

// away reports whether a service is in an outage now.
func (w *World) away(s fault.Service) bool {
	return slices.ContainsFunc(w.outages, func(o outage) bool {
		return o.service == s && o.from <= w.now && w.now < o.to
	})
}

type echoed struct {
	ID     string          `json:"id"`
	Fields json.RawMessage `json:"fields,omitempty"`
	Error  any             `json:"error,omitempty"`
}

func (w *World) enrich(body []byte) ([]byte, error) {
	var asked struct{ Documents []enrich.Document }
	if err := json.Unmarshal(body, &asked); err != nil {
		return nil, err
	}
	rate := w.rates.Enricher
	switch {
	case w.strikes("enricher throttles", rate/2):
		return nil, &enrich.Failure{Throttled: true, Reason: "it answered 429"}
	case w.strikes("enricher fails", rate/2):
		return nil, &enrich.Failure{Smaller: true, Reason: "it answered 500"}
	case w.strikes("enricher answers something else", rate/4):
		return []byte(`{"message":"hello"}`), nil
	}
	out := make([]echoed, 0, len(asked.Documents)+1)
	for _, d := range asked.Documents {
		e := echoed{ID: d.ID, Fields: fmt.Appendf(nil, `{"`+echoField+`":%s}`, d.Inputs)}
		switch {
		case w.strikes("enricher leaves a document out", rate/8):
			continue
		case w.strikes("enricher throttles a document", rate/2):
			e.Fields, e.Error = nil, map[string]string{"kind": "throttled"}
		case w.strikes("enricher answers twice", rate/8):
			out = append(out, e)
		case w.strikes("enricher answers for another document", rate/4):
			out = append(out, echoed{ID: d.ID + "-other", Fields: e.Fields})
		}
		out = append(out, e)
	}
	for i := range out { // in a random order
		j := i + w.dice.IntN(len(out)-i)
		out[i], out[j] = out[j], out[i]
	}
	return json.Marshal(map[string]any{"documents": out})
}

// enriched checks the fields that an applied write put into the sink. The fields must belong to the
// same document.
func (o *oracle) enriched(op sink.Op) {
	set := o.w.cfg.Collections[string(op.Doc.Collection())].Enrich
	if set == nil || op.Kind == shard.Delete {
		return
	}
	rest, _ := enrich.Merge(op.Document, json.RawMessage(`{"`+echoField+`":null}`))
	in, _ := enrich.ParseInputs(set.Inputs)
	want := in.Of(rest)
	if got := gjson.GetBytes(op.Document, echoField).Raw; got != string(want) {
		o.violate("every document has its own fields", fmt.Sprintf("%s: %s in the sink, want %s", op.Doc, got, want))
	}
}
