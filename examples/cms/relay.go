// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// client asks a lull dev. On AWS, publish sends to the queue instead (docs/sources/typescript.md),
// and search asks your search engine.
type client struct {
	url  string
	http *http.Client
}

// errRefused says that lull does not accept an event, whatever happens.
var errRefused = errors.New("lull refused the event")

// publish sends one event. It returns nil once lull has stored the event.
func (c *client) publish(ctx context.Context, event string) error {
	_, err := c.do(ctx, http.MethodPost, "/publish", strings.NewReader(event))
	return err
}

// found is a document that the search returned.
type found struct {
	ID       string  `json:"id"`
	Version  string  `json:"version"`
	Document article `json:"document"`
}

func (c *client) search(ctx context.Context, words string) ([]found, error) {
	if strings.TrimSpace(words) == "" {
		return nil, nil
	}
	query := url.Values{"q": {words}, "collection": {"articles"}, "limit": {"20"}}
	body, err := c.do(ctx, http.MethodGet, "/search?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	var answer struct{ Hits []found }
	return answer.Hits, json.Unmarshal(body, &answer)
}

func (c *client) do(ctx context.Context, method, path string, body io.Reader) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.url+path, body)
	if err != nil {
		return nil, err
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(io.LimitReader(answer.Body, 10<<20))
	switch {
	case err != nil:
		return nil, err
	case answer.StatusCode == http.StatusBadRequest:
		return nil, fmt.Errorf("%w: %s", errRefused, strings.TrimSpace(string(b)))
	case answer.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("lull answers %s: %s", answer.Status, strings.TrimSpace(string(b)))
	}
	return b, nil
}

// relay sends the events of the outbox to lull, and removes each only when lull has accepted it. If
// the program ends between these two steps, it sends the event again: lull ignores what it has.
type relay struct {
	db   *store
	lull *client
	wake chan struct{} // has room for one

	mu      sync.Mutex
	trouble error // why the oldest event waits
}

func newRelay(db *store, lull *client) *relay {
	return &relay{db: db, lull: lull, wake: make(chan struct{}, 1)}
}

// saved tells the relay that the outbox has a new event.
func (r *relay) saved() {
	select {
	case r.wake <- struct{}{}:
	default: // it will look at the outbox anyway
	}
}

// state returns how many events wait, at most 1,000, and why the oldest of them waits.
func (r *relay) state(ctx context.Context) (int, error) {
	waiting, err := r.db.outbox(ctx, 1000)
	if err != nil || len(waiting) == 0 {
		return 0, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(waiting), r.trouble
}

// run sends until ctx is done. After a failure it waits 1, 2, 4 and then 8 seconds.
func (r *relay) run(ctx context.Context) {
	wait := time.Second
	for ctx.Err() == nil {
		err := r.drain(ctx)
		r.mu.Lock()
		r.trouble = err
		r.mu.Unlock()
		if err == nil {
			wait = time.Second
			select {
			case <-ctx.Done():
			case <-r.wake:
			}
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
			wait = min(2*wait, 8*time.Second)
		}
	}
}

// drain sends what waits. An event that lull refuses stays, and the events behind it wait: a person
// must see it. With lull's own format that happens only if the settings change.
func (r *relay) drain(ctx context.Context) error {
	for {
		events, err := r.db.outbox(ctx, 100)
		if err != nil || len(events) == 0 {
			return err
		}
		for _, e := range events {
			if err := r.lull.publish(ctx, e.event); err != nil {
				return err
			}
			if err := r.db.accepted(ctx, e.version); err != nil {
				return err
			}
		}
	}
}
