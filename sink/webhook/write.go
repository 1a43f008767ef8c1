// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"time"
	"unicode"

	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/fanout"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/internal/exchange"
)

// Write sends the ops, several requests at the same time; see sink.Sink. If an answer says that the
// receiver accepts nothing, Write does not send the remaining ops.
func (s *Sink) Write(ctx context.Context, ops []sink.Op) []sink.Outcome {
	var b exchange.Batch
	most := exchange.NewBounds(s.BulkDocuments, s.BulkBytes)
	var parts [][]exchange.Entry
	for entries := b.Prepare(ctx, ops, sink.Names{}, encode); len(entries) > 0; {
		n, _ := most.Cut(entries)
		parts, entries = append(parts, entries[:n]), entries[n:]
	}
	fanout.Runner(nil).Each(s.Parallel, len(parts), func(i int) {
		b.Push(ctx, parts[i], most, func(part []exchange.Entry) (whole *sink.Outcome, ofOne bool) {
			return s.send(ctx, &b, part)
		})
	})
	return b.Outcomes
}

// send sends one request; see exchange.Batch.Push.
func (s *Sink) send(ctx context.Context, b *exchange.Batch, entries []exchange.Entry) (
	whole *sink.Outcome, ofOne bool,
) {
	a := s.post(ctx, typeDocuments, entries)
	o, ofOne := s.whole(ctx, a)
	if o.Kind == sink.Applied {
		s.read(a, b, entries)
		return nil, false
	}
	return &o, ofOne
}

// read sets the outcomes from an answer whose status is a success. If the answer has results, there
// is one for each document. Without results, every document is Applied. If the answer may have
// results that cannot be read, every outcome is Unknown.
func (s *Sink) read(a exchange.Answer, b *exchange.Batch, entries []exchange.Entry) {
	var answer struct {
		Results []struct {
			Status int `json:"status"`
		} `json:"results"`
	}
	var named struct {
		Results json.RawMessage `json:"results"`
	}
	err := json.Unmarshal(a.Body, &named)
	if err == nil && len(named.Results) == 0 || err != nil && !mayHaveResults(a) {
		b.All(entries, sink.Outcome{Kind: sink.Applied, Status: a.Status})
		return
	}
	if json.Unmarshal(a.Body, &answer) != nil || len(answer.Results) != len(entries) {
		b.All(entries, sink.Outcome{Kind: sink.Unknown, Status: a.Status, Reason: classMismatch})
		return
	}
	after := backoff.After(a.Header, time.Now())
	for i, e := range entries {
		b.Outcomes[e.Position] = s.item(e.Kind, answer.Results[i].Status, after)
	}
}

// mayHaveResults reports whether an answer that is not a JSON object may have results. An answer
// may have results if it contains "results" or "status". A compressed answer may also have results,
// and so may invalid JSON that begins with { or [. In UTF-16, each character of these words has a
// zero byte next to it.
func mayHaveResults(a exchange.Answer) bool {
	text := bytes.ToLower(bytes.ReplaceAll(a.Body, []byte{0}, nil))
	coding := a.Header.Get("Content-Encoding")
	switch {
	case len(text) > 0 && coding != "" && coding != "identity", bytes.Contains(text, []byte(`"results"`)),
		bytes.Contains(text, []byte(`"status"`)):
		return true
	case json.Valid(a.Body):
		return false
	}
	begin := beginning(a.Body)
	return begin == '{' || begin == '['
}

// beginning returns the first letter or digit of an answer, or the character with which JSON or
// HTML begins. The function skips a byte order mark, white space, and the characters that some
// frameworks write before JSON. The function returns 0 if there is no such character.
func beginning(body []byte) rune {
	for _, r := range string(body) {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune(`<{["`, r) {
			return r
		}
	}
	return 0
}
