// SPDX-License-Identifier: Apache-2.0

package vertex

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/internal/exchange"
)

// maxWriteAnswer is how many bytes are read of the answer to a write. The answer to a patch
// contains the document.
const maxWriteAnswer = 16 << 20

// Write sends one request for each op, several at the same time; see sink.Sink. If an answer says
// that the engine accepts nothing, Write does not send the remaining ops.
func (s *Sink) Write(ctx context.Context, ops []sink.Op) []sink.Outcome {
	var b exchange.Batch
	entries := b.Prepare(ctx, ops, s.names, nil)
	b.Each(ctx, s.Parallel, entries, func(e exchange.Entry) sink.Outcome { return s.write(ctx, e) })
	return b.Outcomes
}

func (s *Sink) write(ctx context.Context, e exchange.Entry) (o sink.Outcome) {
	path := documents(e.Index) + "/" + documentID(e.Doc.ID())
	if e.Kind == event.Put {
		text, fault := s.encode(e)
		if fault != nil {
			return fault.Outcome()
		}
		a := s.client.Do(ctx, http.MethodPatch, path+"?allowMissing=true", exchange.TypeJSON, text, maxWriteAnswer)
		o = putOutcome(ctx, a, path)
	} else {
		a := s.client.Do(ctx, http.MethodDelete, path, "", nil, maxWriteAnswer)
		o = s.deleteOutcome(ctx, a, e)
	}
	if o.Kind == sink.Applied {
		s.there.Store(e.Index, true)
	}
	return o
}

// putOutcome returns the outcome for the answer to a patch. The answer must contain the name of the
// document.
func putOutcome(ctx context.Context, a exchange.Answer, path string) sink.Outcome {
	if !a.OK() {
		return judge(ctx, a)
	}
	var written body
	_, id, _ := strings.Cut(path, "/documents/")
	if json.Unmarshal(a.Body, &written) != nil || !strings.HasSuffix(written.Name, "/documents/"+id) {
		return sink.Outcome{Kind: sink.Unknown, Status: a.Status, Reason: classMismatch}
	}
	return sink.Outcome{Kind: sink.Applied, Status: a.Status}
}

// deleteOutcome returns the outcome for the answer to a delete. If the document should exist but is
// missing, the whole data store may be missing. Then the outcome is Configuration.
func (s *Sink) deleteOutcome(ctx context.Context, a exchange.Answer, e exchange.Entry) sink.Outcome {
	var empty map[string]json.RawMessage
	switch {
	case a.OK() && (json.Unmarshal(a.Body, &empty) != nil || len(empty) > 0):
		return sink.Outcome{Kind: sink.Unknown, Status: a.Status, Reason: classMismatch}
	case a.OK():
		return sink.Outcome{Kind: sink.Applied, Status: a.Status}
	case faultOf(a).Status != statusNotFound || a.Status != http.StatusNotFound:
		return judge(ctx, a)
	}
	if _, known := s.there.Load(e.Index); e.Present && !known {
		if a := s.list(ctx, e.Index, 1, ""); a.Status == http.StatusNotFound {
			return sink.Outcome{Kind: sink.Configuration, Status: a.Status, Apart: true, Reason: classNoStore}
		}
	}
	return sink.Outcome{Kind: sink.Applied, Status: a.Status}
}
