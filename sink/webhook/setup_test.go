// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/lullhq/lull/sink/webhook"
)

// quiet discards the log of a server about connections that its test breaks.
var quiet = log.New(io.Discard, "", 0)

func server(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewUnstartedServer(answer)
	s.Config.ErrorLog = quiet
	s.Start()
	t.Cleanup(s.Close)
	return s.URL
}

func opened(t *testing.T, o webhook.Options) *webhook.Sink {
	t.Helper()
	s, err := webhook.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}
