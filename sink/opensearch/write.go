package opensearch

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// entry is one op as it stands in a bulk request.
type entry struct {
	op    int // its position
	kind  shard.Operation
	id    string
	lines []byte // action and document
}

// action is the first line of an entry.
type action struct {
	Index       string       `json:"_index"`
	ID          string       `json:"_id"`
	Version     *shard.Fence `json:"version,omitempty"`
	VersionType string       `json:"version_type,omitempty"`
}

// Names of actions, in requests and answers.
const (
	actionIndex  = "index"
	actionDelete = "delete"
)

func actionName(kind shard.Operation) string {
	if kind == shard.Delete {
		return actionDelete
	}
	return actionIndex
}

// Write sends the ops in as few requests as the bounds allow, one after another; see sink.Sink.
// After a request that was refused for no document's sake the rest is not sent.
func (s *Sink) Write(ctx context.Context, ops []sink.Op) []sink.Outcome {
	outcomes := make([]sink.Outcome, len(ops))
	entries := make([]entry, 0, len(ops))
	for i, op := range ops {
		outcomes[i] = sink.Outcome{Kind: sink.Unknown, Reason: classInterrupted}
		if ctx.Err() != nil {
			continue
		}
		e, refused := s.encode(i, op)
		if refused != nil {
			outcomes[i] = *refused
			continue
		}
		entries = append(entries, e)
	}
	for len(entries) > 0 && ctx.Err() == nil {
		n := s.fit(entries)
		stop := s.send(ctx, entries[:n], outcomes)
		entries = entries[n:]
		if stop != nil {
			notSent(entries, outcomes, *stop)
			break
		}
	}
	return outcomes
}

// encode makes an op's lines, or says why it can have none.
func (s *Sink) encode(i int, op sink.Op) (entry, *sink.Outcome) {
	index, ok := s.names.index(op.Doc.Collection())
	if !ok {
		return entry{}, &sink.Outcome{Kind: sink.Rejected, Reason: ClassConfig + ": the index holds another collection"}
	}
	e := entry{op: i, kind: op.Kind, id: op.Doc.ID()}
	a := action{Index: index, ID: e.id}
	if s.Options.Versions {
		a.Version, a.VersionType = &op.Fence, "external_gte"
	}
	line, err := json.Marshal(map[string]action{actionName(op.Kind): a})
	if err != nil {
		return entry{}, &sink.Outcome{Kind: sink.Rejected, Reason: sink.NotUTF8}
	}
	e.lines = append(line, '\n')
	if op.Kind == shard.Put {
		plain, fault := sink.Plain(op.Document)
		if fault != nil {
			o := fault.Outcome()
			return entry{}, &o
		}
		e.lines = append(sink.Seal(e.lines, plain, op.Meta()), '\n')
	}
	return e, nil
}

// fit is how many of the entries, one at least, make a request within the bounds.
func (s *Sink) fit(entries []entry) int {
	var bytes int64
	for n, e := range entries {
		if bytes += int64(len(e.lines)); n > 0 && (n == s.BulkDocuments || bytes > s.BulkBytes) {
			return n
		}
	}
	return len(entries)
}

// send makes one request, or several where a definite refusal of the first allows it. It returns
// the outcome that forbids sending more.
func (s *Sink) send(ctx context.Context, entries []entry, outcomes []sink.Outcome) (stop *sink.Outcome) {
	a := s.do(ctx, http.MethodPost, bulkPath(ctx, s.Serverless), typeNDJSON, body(entries))
	switch {
	case a.err != nil && !a.sent && ctx.Err() == nil:
		o := notConnected(a.err)
		all(entries, outcomes, o)
		return &o
	case a.err != nil:
		all(entries, outcomes, sink.Outcome{Kind: sink.Unknown, Status: a.status, Reason: classInterrupted})
		return nil
	case a.ok():
		s.read(a, entries, outcomes)
		return nil
	}
	o, split := wholeOutcome(a)
	switch {
	case split && len(entries) > 1:
		half := len(entries) / 2
		for _, part := range [][]entry{entries[:half], entries[half:]} {
			if stop == nil && ctx.Err() != nil {
				stop = &sink.Outcome{Kind: sink.Throttled, Reason: classNotSent}
			}
			if stop != nil {
				notSent(part, outcomes, *stop)
				continue
			}
			stop = s.send(ctx, part, outcomes)
		}
		return stop
	case o.Kind == sink.Throttled:
		stop = &o
	}
	all(entries, outcomes, o)
	return stop
}

// bulkPath tells OpenSearch for how long to wait for a shard: not longer than we wait for the
// answer, so that little can be applied after we hung up.
func bulkPath(ctx context.Context, serverless bool) string {
	const path = "/_bulk"
	deadline, ok := ctx.Deadline()
	if !ok || serverless {
		return path
	}
	return fmt.Sprintf("%s?timeout=%dms", path, max(1, time.Until(deadline).Milliseconds()))
}

func body(entries []entry) []byte {
	n := 0
	for _, e := range entries {
		n += len(e.lines)
	}
	b := make([]byte, 0, n)
	for _, e := range entries {
		b = append(b, e.lines...)
	}
	return b
}

func all(entries []entry, outcomes []sink.Outcome, o sink.Outcome) {
	for _, e := range entries {
		outcomes[e.op] = o
	}
}

// notSent gives entries their outcome that were held back because of stop: nothing of them was
// applied.
func notSent(entries []entry, outcomes []sink.Outcome, stop sink.Outcome) {
	all(entries, outcomes, sink.Outcome{
		Kind: sink.Throttled, RetryAfter: stop.RetryAfter, Status: stop.Status,
		Reason: classNotSent,
	})
}

// item is one element of a bulk answer.
type item struct {
	ID     string          `json:"_id"`
	Status int             `json:"status"`
	Error  json.RawMessage `json:"error"`
}

// read takes the outcomes from a bulk answer. One that does not fit the request, item by item, says
// nothing of any of them.
func (s *Sink) read(a answer, entries []entry, outcomes []sink.Outcome) {
	var bulk struct {
		Items []map[string]item `json:"items"`
	}
	mismatch := sink.Outcome{Kind: sink.Unknown, Status: a.status, Reason: classMismatch}
	if err := json.Unmarshal(a.body, &bulk); err != nil || len(bulk.Items) != len(entries) {
		all(entries, outcomes, mismatch)
		return
	}
	for i, e := range entries {
		if it, ok := bulk.Items[i][actionName(e.kind)]; !ok || it.ID != e.id {
			all(entries, outcomes, mismatch)
			return
		}
	}
	after := retryAfter(a.header, time.Now())
	for i, e := range entries {
		it := bulk.Items[i][actionName(e.kind)]
		var f fault
		if len(it.Error) > 0 && json.Unmarshal(it.Error, &f) != nil {
			f = fault{}
		}
		outcomes[e.op] = s.itemOutcome(e.kind, it.Status, f, after)
	}
}
