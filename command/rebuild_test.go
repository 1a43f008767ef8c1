// SPDX-License-Identifier: Apache-2.0

package command

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

// If a sink cannot be rebuilt, the command says so first, before it says which flag is missing.
func TestRebuildsOfSinksThatHaveNone(t *testing.T) {
	t.Parallel()
	s := start(t, nil, "--speed", "100")
	const none = "of kind bleve cannot be rebuilt"
	s.ask("rebuild", "content", "--dry-run").want(t, "dry run", exitUsage, none)
	s.ask("rebuild", "").want(t, "an empty name", exitUsage, "COLLECTION: ")
	s.ask("rebuild", "content").want(t, "no flag", exitUsage, none)
	var down atomic.Bool
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if down.Load() {
			w.WriteHeader(http.StatusInternalServerError)
		}
		_, _ = io.WriteString(w, `{"version":{"number":"2.19.3"}}`)
	}))
	t.Cleanup(engine.Close)
	o := start(t, nil, "--sink", engine.URL, "--speed", "100")
	down.Store(true)
	o.ask("rebuild", "content").want(t, "a sink that has them", exitUsage, "say what changes")
	o.ask("rebuild", "content", "--dry-run").want(t, "a dry run asks the engine", exitFailed, "500")
}
