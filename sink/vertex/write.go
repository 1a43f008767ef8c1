package vertex

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/exchange"
	"github.com/lullhq/lull/internal/fanout"
	"github.com/lullhq/lull/sink"
)

// maxWriteAnswer bounds what is read of the answer to a write: a patch answers with the document.
const maxWriteAnswer = 16 << 20

// Write sends one request for each op, several at the same time; see sink.Sink. After an answer
// that says that the engine takes nothing, the rest is not sent.
func (s *Sink) Write(ctx context.Context, ops []sink.Op) []sink.Outcome {
	outcomes := make([]sink.Outcome, len(ops))
	var brake exchange.Brake
	if len(ops) > 0 {
		fanout.Runner(nil).Each(s.Parallel, len(ops), func(i int) {
			outcomes[i] = s.write(ctx, ops[i], &brake)
		})
	}
	return outcomes
}

func (s *Sink) write(ctx context.Context, op sink.Op, brake *exchange.Brake) sink.Outcome {
	if held, ok := brake.Held(ctx); ok {
		return held
	}
	name, ok := s.names.Index(op.Doc.Collection())
	if !ok {
		return sink.Outcome{Kind: sink.Rejected, Reason: classOtherCollection}
	}
	path := documents(name) + "/" + documentID(op.Doc.ID())
	var a exchange.Answer
	var o sink.Outcome
	if op.Kind == event.Put {
		text, fault := s.encode(op)
		if fault != nil {
			return fault.Outcome()
		}
		a = s.client.Do(ctx, http.MethodPatch, path+"?allowMissing=true", typeJSON, text, maxWriteAnswer)
		o = putOutcome(a, path)
	} else {
		a = s.client.Do(ctx, http.MethodDelete, path, "", nil, maxWriteAnswer)
		o = s.deleteOutcome(ctx, a, name, op.Present)
	}
	if late, ok := exchange.Late(ctx, a); ok {
		return late
	}
	if o.Kind == sink.Applied {
		s.there.Store(name, true)
	}
	brake.Saw(o)
	return o
}

// putOutcome judges the answer to a patch, which has the document's name.
func putOutcome(a exchange.Answer, path string) sink.Outcome {
	if !a.OK() {
		return judge(a)
	}
	var written body
	_, id, _ := strings.Cut(path, "/documents/")
	if json.Unmarshal(a.Body, &written) != nil || !strings.HasSuffix(written.Name, "/documents/"+id) {
		return sink.Outcome{Kind: sink.Unknown, Status: a.Status, Reason: classMismatch}
	}
	return sink.Outcome{Kind: sink.Applied, Status: a.Status}
}

// deleteOutcome judges the answer to a delete. Where the document should have been there and is
// not, the data store may be missing. Then nothing was deleted.
func (s *Sink) deleteOutcome(ctx context.Context, a exchange.Answer, name string, present bool) sink.Outcome {
	var empty map[string]json.RawMessage
	switch {
	case a.OK() && (json.Unmarshal(a.Body, &empty) != nil || len(empty) > 0):
		return sink.Outcome{Kind: sink.Unknown, Status: a.Status, Reason: classMismatch}
	case a.OK():
		return sink.Outcome{Kind: sink.Applied, Status: a.Status}
	case faultOf(a).Status != statusNotFound || a.Status != http.StatusNotFound:
		return judge(a)
	}
	if _, known := s.there.Load(name); present && !known {
		if a := s.list(ctx, name, 1, ""); a.Status == http.StatusNotFound {
			return sink.Outcome{Kind: sink.Configuration, Status: a.Status, Apart: true, Reason: classNoStore}
		}
	}
	return sink.Outcome{Kind: sink.Applied, Status: a.Status}
}
