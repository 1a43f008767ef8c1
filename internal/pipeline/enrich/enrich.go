// SPDX-License-Identifier: Apache-2.0

package enrich

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/internal/shard"
)

const (
	// MaxRequest is the size, in bytes of inputs, at which a request is full. A Lambda function
	// accepts 6 MB. A document with more inputs is sent alone.
	MaxRequest = 4 << 20
	// MaxAnswer is the largest number of bytes of an answer that are read, after decompression.
	MaxAnswer = 8 << 20
	// MaxFields is the largest size of the fields of one document, in bytes.
	MaxFields = 1 << 20
	// maxItems is the largest number of documents that an answer may list, including unknown
	// documents.
	maxItems = 10_000
	// maxReason is the number of bytes that lull keeps of a service's text about a document.
	maxReason = 120
)

// Document is one document to enrich.
type Document struct {
	ID         string          `json:"id"`
	Collection string          `json:"collection"`
	Version    string          `json:"version"` // the version as the upstream wrote it
	Inputs     json.RawMessage `json:"inputs"`  // an object with the inputs: see [Inputs.Of]
}

// Kind is the kind of outcome for one document.
type Kind byte

// The kinds of outcomes.
const (
	Enriched  Kind = iota // the Fields must be merged into the document
	Throttled             // try again later; the document is not the reason
	Failed                // this document could not be enriched; a retry may help
	Rejected              // this document can never be enriched
)

// String returns the word for the kind in logs and metrics.
func (k Kind) String() string { return [...]string{"enriched", "throttled", "failed", "rejected"}[k] }

// Outcome is the result for one document.
type Outcome struct {
	Kind   Kind
	Fields json.RawMessage // set for Enriched: an object of at most MaxFields bytes
	// why the document was not enriched, on one line; for Failed and Rejected it contains the
	// service's text
	Reason string
}

// Failure is the error of a request without a usable answer. As far as lull knows, no document is
// the reason.
type Failure struct {
	// Throttled says that the service is overloaded.
	Throttled bool
	// Smaller says that a request with fewer documents may succeed, because the service may have
	// failed on only one of the documents.
	Smaller bool
	// Late says that the service did not answer in time, and may still be working.
	Late bool
	// RetryAfter is the wait that the service asked for; 0 for none.
	RetryAfter time.Duration
	// Reason is a text without content and secrets.
	Reason string
}

// Error returns the reason.
func (f *Failure) Error() string { return f.Reason }

// Caller sends one request to a service and returns the answer. It is safe for concurrent use. It
// never retries, and returns when ctx ends. Its errors are of type *[Failure]. Any other error
// counts as a Failure with Smaller.
type Caller interface {
	Call(ctx context.Context, request []byte) (answer []byte, err error)
}

// Answer is the result of a request.
type Answer struct {
	Outcomes []Outcome // one for each document, in their order
	Strange  int       // number of documents in the answer that were not requested
}

// HealthName returns the name of the health row of a collection's service. No sink can have that
// name.
func HealthName(c shard.Collection) string { return "enrich/" + string(c) }

type request struct {
	Documents []Document `json:"documents"`
}

type answer struct {
	Documents items `json:"documents"`
}

// items are decoded one by one, because an answer may list millions of items within [MaxAnswer]
// bytes. Each decoded item takes many times the memory of its text.
type items []item

func (all *items) UnmarshalJSON(text []byte) error {
	list := gjson.ParseBytes(text)
	if list.Type == gjson.Null {
		return nil
	}
	if !list.IsArray() {
		return errNotItems
	}
	*all = items{}
	var err error
	list.ForEach(func(_, value gjson.Result) bool {
		var one item
		if err = json.Unmarshal([]byte(value.Raw), &one); err == nil && len(*all) == maxItems {
			err = errTooMany
		}
		*all = append(*all, one)
		return err == nil
	})
	return err
}

var (
	errNotItems = errors.New("the documents are not a list")
	errTooMany  = fmt.Errorf("the answer lists more than %d documents", maxItems)
)

type item struct {
	ID     string          `json:"id"`
	Fields json.RawMessage `json:"fields"`
	Error  *struct {
		Kind   string `json:"kind"`
		Reason string `json:"reason"`
	} `json:"error"`
}

// Ask sends one request for documents with distinct ids. The second result is nil if there is a
// usable answer. Otherwise it says why there is none.
func Ask(ctx context.Context, c Caller, docs []Document) (Answer, *Failure) {
	body, err := json.Marshal(request{docs})
	if err != nil { // the inputs are JSON, but nested too deeply for the encoder
		return Answer{}, &Failure{Smaller: true, Reason: "the request cannot be written"}
	}
	text, err := c.Call(ctx, body)
	var failure *Failure
	switch {
	case errors.As(err, &failure):
		return Answer{}, failure
	case err != nil && ctx.Err() != nil:
		return Answer{}, &Failure{Late: true, Reason: "no answer in time"}
	case err != nil:
		return Answer{}, &Failure{Smaller: true, Reason: "the call failed"}
	case len(text) > MaxAnswer:
		return Answer{}, TooLarge()
	}
	return match(docs, text)
}

// TooLarge returns the failure of an answer with more than [MaxAnswer] bytes.
func TooLarge() *Failure {
	return &Failure{Smaller: true, Reason: fmt.Sprintf("the answer has more than %d bytes", MaxAnswer)}
}

// match finds the outcome of each document by its id. An answer that names none of the documents is
// a failure, because a wrong service must not cause dead letters. If only one document was
// requested, an empty list is an answer.
func match(docs []Document, text []byte) (Answer, *Failure) {
	var got answer
	switch err := json.Unmarshal(text, &got); {
	case errors.Is(err, errTooMany):
		return Answer{}, &Failure{Smaller: true, Reason: err.Error()}
	case err != nil:
		return Answer{}, &Failure{Smaller: true, Reason: "the answer is not the JSON of docs/enrich.md"}
	}
	at := make(map[string]int, len(docs))
	for i, d := range docs {
		at[d.ID] = i
	}
	a := Answer{Outcomes: make([]Outcome, len(docs))}
	seen := make([]int, len(docs))
	found := 0
	for _, it := range got.Documents {
		i, asked := at[it.ID]
		if !asked {
			a.Strange++
			continue
		}
		if seen[i]++; seen[i] == 1 {
			found++
			a.Outcomes[i] = it.outcome()
		}
	}
	if left := len(docs) == 1 && got.Documents != nil && a.Strange == 0; found == 0 && !left {
		return Answer{}, &Failure{Smaller: true, Reason: "the answer has none of the documents that were asked for"}
	}
	for i, n := range seen {
		switch {
		case n == 0:
			a.Outcomes[i] = Outcome{Kind: Failed, Reason: "the answer leaves it out"}
		case n > 1:
			a.Outcomes[i] = Outcome{Kind: Failed, Reason: "the answer has it more than once"}
		}
	}
	return a, nil
}

func (it item) outcome() Outcome {
	if it.Error != nil {
		o := Outcome{Kind: Failed, Reason: oneLine(it.Error.Reason)}
		switch it.Error.Kind {
		case Throttled.String():
			o.Kind = Throttled
		case Rejected.String():
			o.Kind = Rejected
		}
		return o
	}
	switch {
	case len(it.Fields) == 0 || it.Fields[0] != '{':
		return Outcome{Kind: Failed, Reason: "the answer has neither fields nor an error for it"}
	case len(it.Fields) > MaxFields:
		return Outcome{Kind: Failed, Reason: fmt.Sprintf("its fields have more than %d bytes", MaxFields)}
	}
	return Outcome{Kind: Enriched, Fields: it.Fields}
}

// oneLine prepares a service's text for logs: printable, on one line, and cut to a length.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text[:min(len(text), maxReason)], ""))
	return strings.Join(strings.Fields(text), " ")
}
