// SPDX-License-Identifier: Apache-2.0

package typesense

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/internal/exchange"
)

// parallel is how many deletes run at the same time. Each delete is a separate request.
const parallel = 8

// Write sends the ops in as few requests as the bounds allow; see sink.Sink. Write sends deletes
// first, so that a delete fails if its collection is missing. A put would create the collection.
func (s *Sink) Write(ctx context.Context, ops []sink.Op) []sink.Outcome {
	b := exchange.Batch{Same: true}
	var puts, deletes []exchange.Entry
	for _, e := range b.Prepare(ctx, ops, s.names, s.encode) {
		if e.Kind == event.Put {
			puts = append(puts, e)
		} else {
			deletes = append(deletes, e)
		}
	}
	b.Each(ctx, parallel, deletes, func(e exchange.Entry) sink.Outcome { return s.delete(ctx, e) })
	slices.SortStableFunc(puts, func(a, b exchange.Entry) int { return cmp.Compare(a.Index, b.Index) })
	most := exchange.NewBounds(s.BulkDocuments, s.BulkBytes)
	most.OneIndex = true // an import is for one collection
	b.Push(ctx, puts, most, func(part []exchange.Entry) (whole *sink.Outcome, ofOne bool) {
		return s.send(ctx, &b, part)
	})
	return b.Outcomes
}

// encode sets the text of an entry: the line of a put. A delete has no text.
func (s *Sink) encode(e *exchange.Entry) *sink.DocumentError {
	if e.Kind == event.Put {
		e.Text = s.line(e.Doc.ID(), e.Plain, e.Meta())
	}
	return nil
}

// line returns a document in the form in which it is sent. lull's members come last, because
// Typesense uses the last of two members with the same name.
func (s *Sink) line(id string, plain []byte, m sink.Meta) []byte {
	own := map[string]string{"id": id, fieldOriginal: string(sink.Seal(nil, plain, m))}
	if len(s.Fields) == 0 {
		own[fieldText] = text(plain)
	}
	members, _ := json.Marshal(own)
	line := slices.Grow(slices.Clone(plain[:len(plain)-1]), len(members)+1)
	if len(plain) > len("{}") {
		line = append(line, ',')
	}
	return append(append(line, members[1:]...), '\n')
}

// text returns all searchable values of a document: texts, numbers and booleans, one a line.
func text(plain []byte) string {
	d := json.NewDecoder(bytes.NewReader(plain))
	d.UseNumber()
	var document any
	if d.Decode(&document) != nil {
		return ""
	}
	var words []string
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				walk(v[name])
			}
		case []any:
			for _, each := range v {
				walk(each)
			}
		case nil:
		default:
			words = append(words, fmt.Sprint(v))
		}
	}
	walk(document)
	return strings.Join(words, "\n")
}

// send imports entries of one collection; see exchange.Batch.Push.
func (s *Sink) send(ctx context.Context, b *exchange.Batch, entries []exchange.Entry) (
	whole *sink.Outcome, ofOne bool,
) {
	index, body := entries[0].Index, exchange.Body(entries)
	path := collectionPath(index) + "/import?action=upsert&return_doc=false"
	imports := func() exchange.Answer { // the answer quotes each line that fails
		return s.client.Do(ctx, http.MethodPost, path, "text/plain", body, maxError+int64(2*len(body)))
	}
	a := imports()
	if isMissing(a) {
		// Nothing was applied. If lull cannot create the collection, the outcome says that the
		// collection is missing.
		if s.create(ctx, index) == nil {
			a = imports()
		}
	}
	if a.OK() {
		read(a, b, entries)
		return nil, false
	}
	o := judge(ctx, a)
	return &o, o.Reason == sink.TooLarge
}

// read sets the outcomes from the answer to an import, which has a line for each document. If the
// lines do not match the entries, every outcome is Unknown.
func read(a exchange.Answer, b *exchange.Batch, entries []exchange.Entry) {
	lines := bytes.Split(bytes.TrimSuffix(a.Body, []byte("\n")), []byte("\n"))
	results := make([]result, len(lines))
	fits := len(lines) == len(entries)
	for i := 0; fits && i < len(lines); i++ {
		fits = json.Unmarshal(lines[i], &results[i]) == nil && results[i].Success != nil
	}
	if !fits {
		b.All(entries, sink.Outcome{Kind: sink.Unknown, Status: a.Status, Reason: classMismatch})
		return
	}
	for i, e := range entries {
		b.Outcomes[e.Position] = results[i].outcome()
	}
}

func (s *Sink) delete(ctx context.Context, e exchange.Entry) sink.Outcome {
	a := s.client.Do(ctx, http.MethodDelete, documentPath(e.Index, e.Doc.ID()), "", nil, exchange.MaxAnswer)
	if a.OK() || isMissing(a) && !e.Present ||
		a.Err == nil && a.Status == http.StatusNotFound && strings.HasPrefix(message(a.Body), noDocument) {
		return sink.Outcome{Kind: sink.Applied, Status: a.Status}
	}
	return judge(ctx, a)
}
