// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/outbound"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/internal/exchange"
)

// Classes of outcomes that do not come from a status of the receiver.
const (
	classNoSecret    = "no_key"             // the request was not sent, because signing it failed
	classPrivate     = "address_not_public" // the host has a private address, which the settings do not allow
	classCertificate = "certificate"        // the receiver's certificate is not valid
	classMismatch    = "results"            // the results in the answer do not match the request
	classPage        = "web_page"           // the answer is a web page, so this is not the receiver
)

// whole returns the outcome for the answer to a request. ofOne says that a document is at fault, so
// that a request with several documents may be split.
func (s *Sink) whole(ctx context.Context, a exchange.Answer) (o sink.Outcome, ofOne bool) {
	switch {
	case a.OK() && beginning(a.Body) == '<':
		return sink.Outcome{Kind: sink.Configuration, Status: a.Status, Reason: classPage}, false
	case a.OK():
		return sink.Outcome{Kind: sink.Applied, Status: a.Status}, false
	}
	if o, failed := exchange.Undelivered(ctx, a); failed {
		switch {
		case o.Apart: // there was no time left
		case a.Unauthenticated():
			o.Reason = classNoSecret
		case errors.Is(a.Err, outbound.ErrForbidden):
			o = sink.Outcome{Kind: sink.Configuration, Reason: classPrivate}
		case untrusted(a):
			o = sink.Outcome{Kind: sink.Configuration, Reason: classCertificate}
		}
		return o, false
	}
	o = s.judge(a.Status, backoff.After(a.Header, time.Now()), a.Header.Get("Retry-After") != "")
	ofOne = o.Kind == sink.Refused || o.Kind == sink.Rejected || a.Status == http.StatusConflict
	o.Apart = ofOne && o.Kind != sink.Newer && o.Kind != sink.Unknown
	return o, ofOne
}

// untrusted reports whether nothing was sent because the receiver's certificate is not valid.
func untrusted(a exchange.Answer) bool {
	var invalid *tls.CertificateVerificationError
	return !a.Sent && errors.As(a.Err, &invalid)
}

// item returns the outcome for the result of one document.
func (s *Sink) item(kind event.Operation, status int, after time.Duration) sink.Outcome {
	switch {
	case status >= 200 && status < 300,
		kind == event.Delete && (status == http.StatusNotFound || status == http.StatusGone):
		return sink.Outcome{Kind: sink.Applied, Status: status}
	case status < 400: // not a result
		return sink.Outcome{Kind: sink.Unknown, Status: status, Reason: classMismatch}
	}
	// The receiver itself says this about the document, and so the status does not come from a
	// proxy.
	o := s.judge(status, after, true)
	if o.Kind != sink.Newer && o.Kind != sink.Unknown {
		o.Apart = true
	}
	return o
}

// judge returns the outcome for a status other than a success. waits says that the answer has a
// Retry-After, or that the status is for one document. Nothing was applied then.
func (s *Sink) judge(status int, after time.Duration, waits bool) sink.Outcome {
	o := sink.Outcome{Status: status, Reason: "http " + strconv.Itoa(status)}
	switch {
	case status == http.StatusTooManyRequests, status == http.StatusTooEarly,
		waits && (status == http.StatusServiceUnavailable || status == http.StatusRequestTimeout):
		o.Kind, o.RetryAfter = sink.Throttled, after
	case status == http.StatusConflict && s.Versions:
		o.Kind = sink.Newer
	case status == http.StatusConflict, status == http.StatusRequestTimeout, status >= 500, status < 300:
		o.Kind = sink.Unknown
	case status == http.StatusUnprocessableEntity, status == http.StatusRequestEntityTooLarge:
		o.Kind = sink.Rejected
	case status == http.StatusBadRequest:
		o.Kind = sink.Refused
	default:
		o.Kind = sink.Configuration
	}
	return o
}

// hints says what an operator can do about a failed Ping.
var hints = map[int]string{
	http.StatusUnauthorized: "the receiver denies access, or does not accept the signature: compare the secrets, and " +
		"both clocks",
	http.StatusForbidden:        "the receiver denies access",
	http.StatusNotFound:         "the receiver is not at this path: correct the url",
	http.StatusMethodNotAllowed: "the receiver does not accept POST at this path: correct the url",
}

// Ping sends a signed request without documents. A receiver that refuses the request because it has
// no documents is available, too.
func (s *Sink) Ping(ctx context.Context) error {
	a := s.post(ctx, typePing, nil)
	o, ofOne := s.whole(ctx, a)
	switch {
	case o.Kind == sink.Applied, ofOne:
		return nil
	case o.Reason == classPage:
		return errors.New("ping: the answer is a web page, not a receiver's answer: correct the url")
	case o.Reason == classPrivate:
		return errors.New("ping: the receiver's address is not public: set webhook.private: true if that is intended")
	}
	return fmt.Errorf("ping: %w", (&exchange.Client{Kind: Name, Hints: hints}).Fault(a))
}
