// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/searchable"
)

// The public client waits for a version of a running stack, and is told what is wrong with a
// version.
func TestTheClientWaitsForAVersion(t *testing.T) {
	t.Parallel()
	e, url := serve(t, func(*config.Config) {})
	c := searchable.Client{URL: url}
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	type result struct {
		searchable.Answer
		err error
	}
	answers := make(chan result, 1)
	go func() {
		a, err := c.Wait(ctx, "content", "a?b&c", "7")
		answers <- result{a, err}
	}()
	body := `{"type":"doc.changed","subject":"a?b&c","sequence":"8","data":{}}`
	if err := e.Publish(ctx, queue.Outgoing{Body: body}); err != nil {
		t.Fatal(err)
	}
	a := <-answers
	if a.err != nil || a.Searchable != searchable.Yes || len(a.Sinks) != 1 || a.Sinks[0].How != searchable.Asked ||
		a.Sinks[0].By != "8" {
		t.Errorf("got %+v, %v", a.Answer, a.err)
	}
	var status *searchable.StatusError
	if _, err := c.Wait(ctx, "content", "a?b&c", "eight"); !errors.As(err, &status) || status.Status != http.StatusBadRequest {
		t.Errorf("a version of no class: got %v", err)
	}
}
