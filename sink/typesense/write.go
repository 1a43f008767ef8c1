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
	"github.com/lullhq/lull/internal/exchange"
	"github.com/lullhq/lull/internal/fanout"
	"github.com/lullhq/lull/sink"
)

// entry is one op as it stands in a request.
type entry struct {
	op      int // its position
	index   string
	id      string
	line    []byte // nil for a delete
	present bool
}

// parallel is how many deletes are under way at the same time: each is a request of its own.
const parallel = 8

// Write sends the ops in as few requests as the bounds allow; see sink.Sink. Deletes come first, so
// that one finds out that its collection is missing before a put makes it.
func (s *Sink) Write(ctx context.Context, ops []sink.Op) []sink.Outcome {
	outcomes := make([]sink.Outcome, len(ops))
	var puts, deletes []entry
	for i, op := range ops {
		outcomes[i] = sink.Outcome{Kind: sink.Throttled, Apart: true, Reason: classNotSent}
		if ctx.Err() != nil {
			continue
		}
		e, refused := s.encode(i, op)
		switch {
		case refused != nil:
			outcomes[i] = *refused
		case e.line == nil:
			deletes = append(deletes, e)
		default:
			puts = append(puts, e)
		}
	}
	stop := s.deleteAll(ctx, deletes, outcomes)
	slices.SortStableFunc(puts, func(a, b entry) int { return cmp.Compare(a.index, b.index) })
	for documents := s.BulkDocuments; stop == nil && len(puts) > 0 && ctx.Err() == nil; {
		n := s.fit(puts, documents)
		var split bool
		if stop, split = s.send(ctx, puts[:n], outcomes); split {
			documents = max(1, n/2)
			continue
		}
		puts, documents = puts[n:], min(2*documents, s.BulkDocuments)
	}
	if stop != nil { // what was not sent would have been told the same
		for i, o := range outcomes {
			if o.Reason == classNotSent {
				outcomes[i] = *stop
			}
		}
	}
	return outcomes
}

func (s *Sink) encode(i int, op sink.Op) (entry, *sink.Outcome) {
	index, ok := s.names.Index(op.Doc.Collection())
	if !ok {
		return entry{}, &sink.Outcome{Kind: sink.Rejected, Reason: classOtherCollection}
	}
	e := entry{op: i, index: index, id: op.Doc.ID(), present: op.Present}
	if op.Kind == event.Put {
		plain, fault := sink.Plain(op.Document)
		if fault != nil {
			o := fault.Outcome()
			return entry{}, &o
		}
		e.line = s.line(e.id, plain, op.Meta())
	}
	return e, nil
}

// line is a document as it is sent: its members, and after them lull's own, because the last of two
// with one name counts.
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

// text is all that can be searched in a document: its values that are texts, numbers or flags.
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

// fit is how many of the entries, one at least, make a request within the bounds: of one
// collection.
func (s *Sink) fit(entries []entry, documents int) int {
	size := int64(0)
	for n, e := range entries {
		size += int64(len(e.line))
		if n > 0 && (n >= documents || size > s.BulkBytes || e.index != entries[0].index) {
			return n
		}
	}
	return len(entries)
}

// send imports entries of one collection. stop is the outcome that forbids sending more; split says
// that the request was too large and has to be cut.
func (s *Sink) send(ctx context.Context, entries []entry, outcomes []sink.Outcome) (stop *sink.Outcome, split bool) {
	var body []byte
	for _, e := range entries {
		body = append(body, e.line...)
	}
	path := collectionPath(entries[0].index) + "/import?action=upsert&return_doc=false"
	imports := func() exchange.Answer { // where lines fail, it quotes them
		return s.client.Do(ctx, http.MethodPost, path, typeLines, body, maxError+int64(2*len(body)))
	}
	a := imports()
	if missing(a) {
		// Nothing was applied. Who may not make the collection sees in the outcome that it is missing.
		if made := s.create(ctx, entries[0].index); made.OK() || made.Status == http.StatusConflict {
			a = imports()
		}
	}
	if a.OK() {
		read(a, entries, outcomes)
		return nil, false
	}
	if a.Err == nil && a.Status == http.StatusRequestEntityTooLarge && len(entries) > 1 {
		return nil, true
	}
	o, whole := judge(ctx, a)
	all(entries, outcomes, o)
	if whole {
		return &o, false
	}
	return nil, false
}

func all(entries []entry, outcomes []sink.Outcome, o sink.Outcome) {
	for _, e := range entries {
		outcomes[e.op] = o
	}
}

// read takes the outcomes from the answer to an import, one line for each. One that does not fit
// says nothing of any document.
func read(a exchange.Answer, entries []entry, outcomes []sink.Outcome) {
	lines := bytes.Split(bytes.TrimSuffix(a.Body, []byte("\n")), []byte("\n"))
	results := make([]result, len(lines))
	fits := len(lines) == len(entries)
	for i := 0; fits && i < len(lines); i++ {
		fits = json.Unmarshal(lines[i], &results[i]) == nil && results[i].Success != nil
	}
	if !fits {
		all(entries, outcomes, sink.Outcome{Kind: sink.Unknown, Status: a.Status, Reason: classMismatch})
		return
	}
	for i, e := range entries {
		outcomes[e.op] = results[i].outcome()
	}
}

// deleteAll deletes documents, some at a time. stop is the outcome that forbids sending more.
func (s *Sink) deleteAll(ctx context.Context, entries []entry, outcomes []sink.Outcome) (stop *sink.Outcome) {
	for ; len(entries) > 0 && stop == nil && ctx.Err() == nil; entries = entries[min(parallel, len(entries)):] {
		some := entries[:min(parallel, len(entries))]
		stops := make([]*sink.Outcome, len(some))
		fanout.Runner(nil).Each(parallel, len(some), func(i int) {
			outcomes[some[i].op], stops[i] = s.delete(ctx, some[i])
		})
		for _, o := range stops {
			if o != nil {
				stop = o
			}
		}
	}
	return stop
}

func (s *Sink) delete(ctx context.Context, e entry) (sink.Outcome, *sink.Outcome) {
	a := s.client.Do(ctx, http.MethodDelete, documentPath(e.index, e.id), "", nil, maxAnswer)
	switch {
	case a.OK(), missing(a) && !e.present,
		a.Err == nil && a.Status == http.StatusNotFound && strings.HasPrefix(message(a.Body), noDocument):
		return sink.Outcome{Kind: sink.Applied, Status: a.Status}, nil
	}
	o, whole := judge(ctx, a)
	if whole {
		return o, &o
	}
	return o, nil
}
