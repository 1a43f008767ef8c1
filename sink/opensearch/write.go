package opensearch

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/backoff"
	"github.com/lullhq/lull/internal/exchange"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// entry is one op as it stands in a bulk request.
type entry struct {
	op      int // its position
	kind    shard.Operation
	index   string
	id      string
	lines   []byte // action and document
	present bool
	lands   string // the index that the name stands for, "" where that is not known
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

// maxRefusals is how many answers that refuse a request for what is in it one Write goes on after.
// Finding one document to blame among 500 takes about 17.
const maxRefusals = 32

// Write sends the ops in as few requests as the bounds allow, one after another; see sink.Sink.
// After a request that was refused for no document's sake the rest is not sent.
func (s *Sink) Write(ctx context.Context, ops []sink.Op) []sink.Outcome {
	outcomes := make([]sink.Outcome, len(ops))
	entries := make([]entry, 0, len(ops))
	for i, op := range ops {
		outcomes[i] = sink.Outcome{Kind: sink.Throttled, Apart: true, Reason: classNotSent}
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
	s.push(ctx, s.place(ctx, entries, outcomes), outcomes)
	return outcomes
}

// push sends entries in as few requests as the bounds allow.
func (s *Sink) push(ctx context.Context, entries []entry, outcomes []sink.Outcome) {
	// A request that was refused for what is in it is sent again in smaller parts, until the document
	// to blame is alone: half as many documents after each refusal, twice as many after each success.
	// What one request may hold of bytes stays small.
	documents, size := s.BulkDocuments, s.BulkBytes
	for refusals := 0; len(entries) > 0 && ctx.Err() == nil; {
		n, bytes := fit(entries, documents, size)
		stop, split := s.send(ctx, entries[:n], outcomes)
		switch {
		case stop != nil:
			notSent(entries[n:], outcomes, *stop)
			return
		case split == nil:
			documents = min(2*documents, s.BulkDocuments)
		case refusals == maxRefusals:
			held := sink.Outcome{Kind: sink.Throttled, Apart: true, Status: split.Status, Reason: classNotNarrowed}
			all(entries, outcomes, held)
			return
		case n > 1 && split.Reason == sink.TooLarge:
			size = bytes / 2
		case n > 1:
			documents = n / 2
		}
		if split != nil {
			if refusals++; n > 1 {
				continue
			}
			all(entries[:n], outcomes, *split)
		}
		entries = entries[n:]
	}
}

// encode makes an op's lines, or says why it can have none.
func (s *Sink) encode(i int, op sink.Op) (entry, *sink.Outcome) {
	index, ok := s.names.Index(op.Doc.Collection())
	if !ok {
		return entry{}, &sink.Outcome{Kind: sink.Rejected, Reason: classOtherCollection}
	}
	e := entry{op: i, kind: op.Kind, index: index, id: op.Doc.ID(), present: op.Present}
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

// fit is how many of the entries, one at least, make a request within the bounds, and its bytes.
func fit(entries []entry, documents int, size int64) (n int, bytes int64) {
	for n, e := range entries {
		next := bytes + int64(len(e.lines))
		if n > 0 && (n >= documents || next > size) {
			return n, bytes
		}
		bytes = next
	}
	return len(entries), bytes
}

// send makes one request. stop is the outcome that forbids sending more. split is the outcome of a
// document that was alone, where the request was refused for what is in it.
func (s *Sink) send(ctx context.Context, entries []entry, outcomes []sink.Outcome) (stop, split *sink.Outcome) {
	a := s.client.Do(ctx, http.MethodPost, s.bulkPath(ctx), typeNDJSON, body(entries), maxBulkAnswer(len(entries)))
	late, isLate := exchange.Late(ctx, a)
	switch {
	case isLate:
		all(entries, outcomes, late)
		return nil, nil
	case a.Err != nil && !a.Sent:
		o := notConnected(a)
		all(entries, outcomes, o)
		return &o, nil
	case a.Err != nil:
		all(entries, outcomes, sink.Outcome{Kind: sink.Unknown, Status: a.Status, Reason: classInterrupted})
		return nil, nil
	case a.OK():
		s.read(a, entries, outcomes)
		return nil, nil
	}
	o, refused := wholeOutcome(a)
	if refused {
		return nil, &o
	}
	all(entries, outcomes, o)
	if o.Kind == sink.Throttled || o.Kind == sink.Configuration {
		return &o, nil
	}
	return nil, nil
}

// bulkPath tells OpenSearch for how long to wait for a shard: a third of the time that we wait for
// the answer. One shard without a primary then costs its own documents an answer, not every
// document that is in a request with them.
func (s *Sink) bulkPath(ctx context.Context) string {
	var options []string
	if s.requireAlias {
		options = append(options, "require_alias=true")
	}
	if deadline, ok := ctx.Deadline(); ok && !s.Serverless {
		options = append(options, fmt.Sprintf("timeout=%dms", max(1, time.Until(deadline).Milliseconds()/3)))
	}
	if len(options) == 0 {
		return "/_bulk"
	}
	return "/_bulk?" + strings.Join(options, "&")
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
	Index  string          `json:"_index"`
	ID     string          `json:"_id"`
	Status int             `json:"status"`
	Result string          `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// notFound is the result of a delete that found no document.
const notFound = "not_found"

// fault is the item's error; false where it has none.
func (i item) fault() (f fault, failed bool) {
	if len(i.Error) == 0 || string(i.Error) == "null" {
		return fault{}, false
	}
	if json.Unmarshal(i.Error, &f) != nil {
		f = fault{}
	}
	return f, true
}

// read takes the outcomes from a bulk answer. One that does not fit the request, item by item, says
// nothing of any of them.
func (s *Sink) read(a exchange.Answer, entries []entry, outcomes []sink.Outcome) {
	var bulk struct {
		Items []map[string]item `json:"items"`
	}
	mismatch := sink.Outcome{Kind: sink.Unknown, Status: a.Status, Reason: classMismatch}
	if err := json.Unmarshal(a.Body, &bulk); err != nil || len(bulk.Items) != len(entries) {
		all(entries, outcomes, mismatch)
		return
	}
	for i, e := range entries {
		if it, ok := bulk.Items[i][actionName(e.kind)]; !ok || it.ID != e.id {
			all(entries, outcomes, mismatch)
			return
		}
	}
	after := backoff.After(a.Header, time.Now())
	for i, e := range entries {
		it := bulk.Items[i][actionName(e.kind)]
		o := s.itemOutcome(e.kind, it, after)
		if o.Kind == sink.Applied && e.lands != "" && it.Index != "" && it.Index != e.lands &&
			!s.targets.moved(e.index, it.Index) {
			// It was applied, but perhaps beside a copy in the index that the name stood for.
			s.targets.forget(e.index)
			o = sink.Outcome{Kind: sink.Unknown, Status: it.Status, Reason: classElsewhere}
		}
		outcomes[e.op] = o
	}
}
