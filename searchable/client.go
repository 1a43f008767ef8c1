// SPDX-License-Identifier: Apache-2.0

package searchable

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Client asks a stack. The zero Client is not usable: set URL. A Client is safe for concurrent use.
type Client struct {
	// URL is the address of a lull dev, or of the function of a deployed stack.
	URL string
	// Sign signs a request. It is nil for lull dev. It must not change the request's URL.
	Sign func(*http.Request) error
	// HTTP sends the requests. Nil means http.DefaultClient. A time-out of HTTP must be longer than
	// [MaxWait].
	HTTP *http.Client
	// Pause is the time between two questions of [Client.Wait] after an error. 0 means a second.
	Pause time.Duration
}

// The errors of [Client.Wait]. Match them with errors.Is.
var (
	// ErrUnknown says that lull cannot know what a search finds in one of the sinks.
	ErrUnknown = errors.New("lull cannot know what a search finds")
	// ErrNever says that the version becomes searchable only if an operator acts: it is a dead
	// letter, or lull accepts no version of the document.
	ErrNever = errors.New("the version will not be searchable unless an operator acts")
)

// StatusError is an answer with another status than 200.
type StatusError struct {
	Status int    // the HTTP status
	Text   string // what the stack says is wrong
}

func (e *StatusError) Error() string { return fmt.Sprintf("status %d: %s", e.Status, e.Text) }

// Wait waits until a search finds the version of a document, or a newer one, in all sinks of its
// collection. It returns nil only then. If it ends without a yes, the answer is the last one that
// the stack gave, and the error says why: ErrUnknown, ErrNever, a *StatusError that does not go
// away, or the error of ctx. Give ctx a deadline.
func (c *Client) Wait(ctx context.Context, collection, id, version string) (Answer, error) {
	q := Question{Key: collection + "#" + id, Version: version, Wait: MaxWait}
	var last Answer
	for {
		a, err := c.Ask(ctx, q)
		switch {
		case err == nil:
			if last = a; a.Searchable == Yes {
				return a, nil
			}
			if final := a.final(); final != nil {
				return a, final
			}
		case ctx.Err() != nil:
			return last, fmt.Errorf("wait for version %s of %s: %w%s", version, q.Key, ctx.Err(), last.because())
		case !passing(err):
			return last, fmt.Errorf("wait for version %s of %s: %w", version, q.Key, err)
		default:
			if !sleep(ctx, cmp.Or(c.Pause, time.Second)) {
				return last, fmt.Errorf("wait for version %s of %s: %w (%w)", version, q.Key, ctx.Err(), err)
			}
		}
	}
}

// passing reports whether an error may go away: no answer, throttling, or an error of the stack.
func passing(err error) bool {
	var status *StatusError
	return !errors.As(err, &status) || status.Status == http.StatusTooManyRequests ||
		status.Status >= http.StatusInternalServerError
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// final returns why no later answer can be yes, or nil.
func (a Answer) final() error {
	for _, in := range a.Sinks {
		switch {
		case in.Place == Dead || in.Place == Forgotten:
			return fmt.Errorf("sink %s: %w: %s", in.Sink, ErrNever, in.Why)
		case in.Searchable == Unknown && in.Place == Committed:
			return fmt.Errorf("sink %s: %w: %s", in.Sink, ErrUnknown, in.Why)
		}
	}
	return nil
}

// because says in brackets what the last answer waits for. It is empty if there is no answer.
func (a Answer) because() string {
	for _, in := range a.Sinks {
		if in.Searchable != Yes {
			return fmt.Sprintf(" (sink %s: %s)", in.Sink, in.Why)
		}
	}
	return ""
}

// maxAnswer is the longest answer that a client reads, in bytes.
const maxAnswer = 1 << 20

// Ask sends one question. An error is a *StatusError if the stack answered.
func (c *Client) Ask(ctx context.Context, q Question) (a Answer, err error) {
	query := url.Values{"key": {q.Key}}
	if q.Version != "" {
		query.Set("version", q.Version)
	}
	if q.Wait > 0 {
		query.Set("wait", min(q.Wait, MaxWait).String())
	}
	// A signature covers the encoded query, in which SigV4 wants %20 for a space.
	text := strings.ReplaceAll(query.Encode(), "+", "%20")
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(c.URL, "/")+Path+"?"+text, http.NoBody)
	if err != nil {
		return a, fmt.Errorf("ask: %w", err)
	}
	if c.Sign != nil {
		if err := c.Sign(r); err != nil {
			return a, fmt.Errorf("sign the question: %w", err)
		}
	}
	resp, err := cmp.Or(c.HTTP, http.DefaultClient).Do(r)
	if err != nil {
		return a, fmt.Errorf("ask: %w", err)
	}
	defer func() { _ = resp.Body.Close() }() // it was read
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return a, fmt.Errorf("read the answer: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return a, &StatusError{resp.StatusCode, problem(body)}
	}
	if err := json.Unmarshal(body, &a); err != nil {
		return a, fmt.Errorf("read the answer: %w", err)
	}
	return a, nil
}

// problem returns what an answer says is wrong. lull writes error, and AWS writes Message.
func problem(body []byte) string {
	var said struct {
		Error   string `json:"error"`
		Message string `json:"Message"`
	}
	_ = json.Unmarshal(body, &said) // the answer of a proxy may be HTML
	return cmp.Or(said.Error, said.Message, "no reason was given")
}
