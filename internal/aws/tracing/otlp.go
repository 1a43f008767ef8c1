// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// span and the types below are the part of OTLP 1 that lull sends, in its JSON encoding: ids in
// hexadecimal, times and whole numbers as texts, field names in camel case
// (https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding).

type span struct {
	Trace      string      `json:"traceId"`
	ID         string      `json:"spanId"`
	Parent     string      `json:"parentSpanId,omitempty"`
	Name       string      `json:"name"`
	Kind       int         `json:"kind"`
	Start      string      `json:"startTimeUnixNano"`
	End        string      `json:"endTimeUnixNano"`
	Attributes []attribute `json:"attributes,omitempty"`
	Links      []link      `json:"links,omitempty"`
	Status     *status     `json:"status,omitempty"`
}

type link struct {
	Trace string `json:"traceId"`
	Span  string `json:"spanId"`
}

type status struct {
	Code int `json:"code"`
}

type attribute struct {
	Key   string `json:"key"`
	Value value  `json:"value"`
}

type value struct {
	String string `json:"stringValue,omitempty"`
	Int    string `json:"intValue,omitempty"`
}

// add adds an attribute with a text, unless the text is empty.
func (s *span) add(key, text string) {
	if text != "" {
		s.Attributes = append(s.Attributes, attribute{key, value{String: text}})
	}
}

func (s *span) addInt(key string, n int) {
	s.Attributes = append(s.Attributes, attribute{key, value{Int: strconv.Itoa(n)}})
}

func nanos(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

// body returns an ExportTraceServiceRequest in JSON.
func body(service string, spans []span) ([]byte, error) {
	type scope struct {
		Name string `json:"name"`
	}
	type scopeSpans struct {
		Scope scope  `json:"scope"`
		Spans []span `json:"spans"`
	}
	type resource struct {
		Attributes []attribute `json:"attributes"`
	}
	type resourceSpans struct {
		Resource resource     `json:"resource"`
		Scopes   []scopeSpans `json:"scopeSpans"`
	}
	type request struct {
		Resources []resourceSpans `json:"resourceSpans"`
	}
	return json.Marshal(request{[]resourceSpans{{
		Resource: resource{[]attribute{{"service.name", value{String: service}}}},
		Scopes:   []scopeSpans{{scope{"github.com/lullhq/lull"}, spans}},
	}}})
}

const (
	exportTimeout = 500 * time.Millisecond
	// answerMargin is the time before the deadline of the invocation at which an export ends.
	answerMargin = 500 * time.Millisecond
	// maxAnswer is how many bytes of an answer are read, so that the connection can be used again.
	maxAnswer = 4 << 10
)

// exporter sends spans to a collector.
type exporter struct {
	url, service string
	client       *http.Client
}

func newExporter(endpoint, service string) *exporter {
	return &exporter{
		url: strings.TrimSuffix(endpoint, "/") + "/v1/traces", service: service,
		client: &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // send only to the address in the settings
		}},
	}
}

// send sends the spans once, without a retry: a lost span must not delay an invocation.
func (e *exporter) send(ctx context.Context, spans []span) error {
	text, err := body(e.service, spans)
	if err != nil {
		return fmt.Errorf("write spans: %w", err)
	}
	limit := exportTimeout
	if deadline, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(deadline)-answerMargin)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("send spans: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	got, err := e.client.Do(r)
	if err != nil {
		return fmt.Errorf("send spans: %w", err)
	}
	_, _ = io.CopyN(io.Discard, got.Body, maxAnswer)
	_ = got.Body.Close()
	if got.StatusCode/100 != 2 {
		return fmt.Errorf("send spans: the collector answered %s", got.Status)
	}
	return nil
}
