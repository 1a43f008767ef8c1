// SPDX-License-Identifier: Apache-2.0

package opensearch

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/internal/exchange"
)

// typeNDJSON is the content type of bulk requests.
const typeNDJSON = "application/x-ndjson"

// maxBulkAnswer returns how many bytes of the answer to a bulk request are read. The answer is long
// if it contains errors, because an error may quote a part of a document.
func maxBulkAnswer(items int) int64 { return int64(1<<20 + 16<<10*items) }

// action is the first line of an op in a bulk request.
type action struct {
	Index       string       `json:"_index"`
	ID          string       `json:"_id"`
	Version     *shard.Fence `json:"version,omitempty"`
	VersionType string       `json:"version_type,omitempty"`
}

// The names of actions, in bulk requests and in their answers.
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

// actionLine returns the first line of an op for the named index. A nil version means that the line
// has no version.
func actionLine(op sink.Op, index string, version *shard.Fence) []byte {
	a := action{Index: index, ID: op.Doc.ID(), Version: version}
	if version != nil {
		a.VersionType = "external_gte"
	}
	line, _ := json.Marshal(map[string]action{actionName(op.Kind): a}) // cannot fail: texts and a number
	return append(line, '\n')
}

// Write sends the ops in as few requests as the bounds allow, one after another; see sink.Sink. If
// a request is refused and no document is at fault, Write does not send the remaining ops.
func (s *Sink) Write(ctx context.Context, ops []sink.Op) []sink.Outcome {
	var b exchange.Batch
	entries := b.Prepare(ctx, ops, s.names, s.encode)
	entries, lands := s.place(ctx, &b, entries)
	s.push(ctx, &b, entries, lands)
	return b.Outcomes
}

// push sends entries in bulk requests. lands are the known indices behind the names of the entries.
func (s *Sink) push(ctx context.Context, b *exchange.Batch, entries []exchange.Entry, lands map[string]target) {
	most := exchange.NewBounds(s.BulkDocuments, s.BulkBytes)
	b.Push(ctx, entries, most, func(part []exchange.Entry) (whole *sink.Outcome, ofOne bool) {
		return s.send(ctx, b, part, lands)
	})
}

// encode sets the text of an entry: the line of the action, and the line of the document.
func (s *Sink) encode(e *exchange.Entry) *sink.DocumentError {
	var version *shard.Fence
	if s.Options.Versions {
		version = &e.Fence
	}
	e.Text = actionLine(e.Op, e.Index, version)
	if e.Kind == shard.Put {
		e.Text = append(sink.Seal(e.Text, e.Plain, e.Meta()), '\n')
	}
	return nil
}

// send sends one bulk request; see exchange.Batch.Push.
func (s *Sink) send(ctx context.Context, b *exchange.Batch, entries []exchange.Entry, lands map[string]target) (
	whole *sink.Outcome, ofOne bool,
) {
	body, most := exchange.Body(entries), maxBulkAnswer(len(entries))
	a := s.client.Do(ctx, http.MethodPost, s.bulkPath(ctx), typeNDJSON, body, most)
	if a.OK() {
		s.read(a, b, entries, lands)
		return nil, false
	}
	o, failed := exchange.Undelivered(ctx, a)
	if !failed {
		o, ofOne = wholeOutcome(a)
	}
	return &o, ofOne
}

// bulkPath returns the path of a bulk request. bulkPath limits how long OpenSearch waits for a
// shard to a third of the remaining time. So if one shard has no primary, the documents of the
// other shards still get an answer.
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

// fault returns the error of the item, or false if the item has no error.
func (i item) fault() (f fault, failed bool) {
	if len(i.Error) == 0 || string(i.Error) == "null" {
		return fault{}, false
	}
	if json.Unmarshal(i.Error, &f) != nil {
		f = fault{}
	}
	return f, true
}

// read sets the outcomes from a bulk answer. If the items of the answer do not match the ops of the
// request, the outcome of every op is Unknown.
func (s *Sink) read(a exchange.Answer, b *exchange.Batch, entries []exchange.Entry, lands map[string]target) {
	var bulk struct {
		Items []map[string]item `json:"items"`
	}
	fits := json.Unmarshal(a.Body, &bulk) == nil && len(bulk.Items) == len(entries)
	for i := 0; fits && i < len(entries); i++ {
		it, ok := bulk.Items[i][actionName(entries[i].Kind)]
		fits = ok && it.ID == entries[i].Doc.ID()
	}
	if !fits {
		b.All(entries, sink.Outcome{Kind: sink.Unknown, Status: a.Status, Reason: classMismatch})
		return
	}
	after := backoff.After(a.Header, time.Now())
	for i, e := range entries {
		it := bulk.Items[i][actionName(e.Kind)]
		o, expected := s.itemOutcome(e.Kind, it, after), lands[e.Index].lands
		if o.Kind == sink.Applied && expected != "" && it.Index != "" && it.Index != expected &&
			!s.targets.moved(e.Index, it.Index) {
			// The write was applied, but an older copy may be in the index that the alias named
			// before.
			s.targets.forget(e.Index)
			o = sink.Outcome{Kind: sink.Unknown, Status: it.Status, Reason: classElsewhere}
		}
		b.Outcomes[e.Position] = o
	}
}
