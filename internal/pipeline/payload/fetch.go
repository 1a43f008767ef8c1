// SPDX-License-Identifier: Apache-2.0

package payload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/outbound"
	"github.com/lullhq/lull/source"
)

// HeadersOf returns the headers of requests for a source, by name; nil for none. It is called for
// every request, so it should cache the headers. Its errors quote no value.
type HeadersOf func(context.Context) (map[string]string, error)

// maxFetches is the number of requests that this process may send to one source in parallel.
const maxFetches = 32

// puller fetches documents from one source.
type puller struct {
	settings source.Fetch
	headers  HeadersOf
	client   *http.Client
	turns    chan struct{} // has one element for each running request
}

// Pulling returns a loader that also fetches documents from the given sources. headers returns the
// function for the headers of a source, by the settings of the source. It may be nil if no source
// has headers.
func (l *Loader) Pulling(sources map[string]source.Settings, headers func(source.Headers) (HeadersOf, error)) (
	*Loader, error,
) {
	with := *l
	with.pullers = map[string]*puller{}
	var errs []error
	for name, s := range sources {
		if s.Fetch == nil {
			continue
		}
		p := &puller{settings: *s.Fetch, turns: make(chan struct{}, maxFetches)}
		if h := s.Fetch.Headers; h != (source.Headers{}) && headers != nil {
			var err error
			if p.headers, err = headers(h); err != nil {
				errs = append(errs, fmt.Errorf("sources.%s.fetch.headers: %w", name, err))
			}
		}
		p.client = outbound.Client(outbound.Reachable(p.settings.Private()))
		with.pullers[name] = p
	}
	return &with, errors.Join(errs...)
}

// Fetch loads the newest state of a document from a source that has the setting fetch. Fetch
// returns three kinds of errors. An *[source.Unavailable] is about the source. An *event.Invalid is
// about this document, and is permanent or Missing. Any other error may be temporary.
func (l *Loader) Fetch(ctx context.Context, from, ref string) ([]byte, error) {
	p := l.pullers[from]
	if p == nil {
		return nil, invalidFetch("source " + event.Quote(from) + " has no setting fetch any more")
	}
	select {
	case p.turns <- struct{}{}:
		defer func() { <-p.turns }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, p.settings.Timeout)
	defer cancel()
	if bucket, _, ok := p.settings.Bucket(); ok {
		return p.object(ctx, l.objects, bucket, ref)
	}
	return p.get(ctx, ref)
}

// object loads an object from the bucket that the settings name.
func (p *puller) object(ctx context.Context, objects Objects, bucket, ref string) ([]byte, error) {
	key, ok := strings.CutPrefix(ref, "s3://"+bucket+"/")
	if !ok {
		return nil, invalidFetch("the object is not in the bucket of fetch.url")
	}
	body, err := objects(ctx, bucket, key)
	var bad *event.Invalid
	switch {
	case errors.As(err, &bad):
		bad.Field = "fetch"
		return nil, bad
	case err != nil:
		return nil, &source.Unavailable{Problem: "the bucket cannot be read"}
	case int64(len(body)) > int64(p.settings.MaxBytes):
		return nil, p.tooLarge()
	}
	return body, nil
}

func (p *puller) get(ctx context.Context, ref string) ([]byte, error) {
	u, err := url.Parse(ref)
	if err != nil || !strings.EqualFold(u.Hostname(), p.settings.Host()) || u.User != nil {
		return nil, invalidFetch("the address is not on the host of fetch.url")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, ref, nil)
	if err != nil {
		return nil, invalidFetch("the address of the document is not valid")
	}
	if p.headers != nil {
		headers, err := p.headers(ctx)
		if err != nil {
			return nil, &source.Unavailable{Problem: "the headers for the source cannot be read"}
		}
		for name, value := range headers {
			req.Header.Set(name, value)
		}
	}
	req.Header.Set("Accept", "application/json")
	of := outbound.Rules{Unanswered: unanswered, Judge: judge, Most: int64(p.settings.MaxBytes), TooLarge: p.tooLarge()}
	body, err := of.Ask(p.client, req)
	if err == nil && !json.Valid(body) { // the answer is empty, a page for people, or cut off
		return nil, &source.Unavailable{Problem: notJSON}
	}
	return body, err
}

const notJSON = "the source answered 200 with something other than JSON"

// unanswered returns the error of a request without an answer.
func unanswered(err error) error {
	return &source.Unavailable{Problem: silences[outbound.WhySilent(err)]}
}

// silences says why a request got no answer.
var silences = map[outbound.Silence]string{
	outbound.Broken:      "the connection to the source broke",
	outbound.Forbidden:   "the source's host has a private address: name the host under fetch.allowPrivate",
	outbound.NoAddress:   "the source's host has no address",
	outbound.Untrusted:   "the certificate of the source's host is not trusted: renew it, or correct the host in fetch.url",
	outbound.Unreachable: "the source cannot be connected to",
	outbound.TooLate:     "the source did not answer in time",
}

// judge returns the error of an answer without a document. It decides whether the error is about
// this document or about the source. If the whole source may return a status for a while, that
// status must not cause dead letters.
func judge(res *http.Response) error {
	status := res.StatusCode
	says := fmt.Sprintf("the source answered %d", status)
	switch {
	case status == http.StatusOK:
		media, _, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
		if err != nil || media != "application/json" && media != "text/json" && !strings.HasSuffix(media, "+json") {
			return &source.Unavailable{Problem: notJSON}
		}
		return nil
	case status == http.StatusNotFound, status == http.StatusGone:
		bad := invalidFetch(says)
		bad.Missing = true
		return bad
	case status < 400:
		return &source.Unavailable{Problem: says + ": redirects are not followed, and 200 is the only success"}
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusProxyAuthRequired:
		return &source.Unavailable{Problem: says + ": correct fetch.headers, or the rights of that user"}
	case status >= 500, status == http.StatusRequestTimeout, status == http.StatusMisdirectedRequest,
		status == http.StatusTooEarly, status == http.StatusTooManyRequests:
		return &source.Unavailable{Problem: says, RetryAfter: backoff.After(res.Header, time.Now())}
	}
	return invalidFetch(says)
}

func (p *puller) tooLarge() error {
	return invalidFetch("the document has more than the " + p.settings.MaxBytes.String() + " of fetch.maxBytes")
}

func invalidFetch(problem string) *event.Invalid {
	return &event.Invalid{Reason: deadletter.Payload, Field: "fetch", Problem: problem}
}
