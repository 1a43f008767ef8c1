package opensearch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
)

// maxAnswer bounds what is read of an answer. The largest are pages of documents.
const maxAnswer = 512 << 20

// maxBulkAnswer bounds what is read of the answer to a bulk request. Item errors quote a part of a
// document.
func maxBulkAnswer(items int) int64 { return int64(1<<20 + 16<<10*items) }

// Content types of requests.
const (
	typeJSON   = "application/json"
	typeNDJSON = "application/x-ndjson"
)

// answer is what came back of one request.
type answer struct {
	status int // 0 where no status line came back
	header http.Header
	body   []byte
	sent   bool  // a connection was had: bytes may have reached the sink
	err    error // no answer, or not the whole of it
}

// ok reports a whole answer that says success.
func (a answer) ok() bool { return a.err == nil && a.status >= 200 && a.status < 300 }

// do sends one request, once, and reads limit bytes of the answer at most. path is escaped and
// begins with a slash.
func (s *Sink) do(ctx context.Context, method, path, contentType string, body []byte, limit int64) answer {
	var sent atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { sent.Store(true) },
	})
	var reader io.Reader = http.NoBody
	if body != nil {
		reader = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, s.address+path, reader)
	if err != nil {
		return answer{err: fmt.Errorf("make request: %w", err)}
	}
	if body != nil {
		req.Header.Set("Content-Type", contentType)
	}
	if s.Authenticate != nil {
		if err := s.Authenticate(req); err != nil {
			return answer{err: &authError{err}}
		}
	}
	resp, err := s.Transport.RoundTrip(req) // not a client's: whatever redirects is not OpenSearch
	if err != nil {
		return answer{sent: sent.Load(), err: fmt.Errorf("%s %s: %w", method, s.address+path, err)}
	}
	defer resp.Body.Close()
	a := answer{status: resp.StatusCode, header: resp.Header, sent: true}
	a.body, a.err = io.ReadAll(io.LimitReader(resp.Body, limit+1))
	switch {
	case a.err != nil:
		a.err = fmt.Errorf("read answer: %w", a.err)
	case int64(len(a.body)) > limit:
		a.err = fmt.Errorf("answer exceeds %d bytes", limit)
	}
	return a
}

// authError says that a request was not sent because it could not be authenticated.
type authError struct{ err error }

func (e *authError) Error() string { return e.err.Error() }
func (e *authError) Unwrap() error { return e.err }

var errNotOpenSearch = errors.New("opensearch: the answer is not what OpenSearch answers: check the url")

// ask sends JSON and decodes the answer into into, unless that is nil.
func (s *Sink) ask(ctx context.Context, method, path string, body, into any) error {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return fmt.Errorf("make request: %w", err)
		}
	}
	a := s.do(ctx, method, path, typeJSON, text, maxAnswer)
	if !a.ok() {
		return requestError(a)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(a.body, into); err != nil {
		return errNotOpenSearch
	}
	return nil
}
