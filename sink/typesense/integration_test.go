// SPDX-License-Identifier: Apache-2.0

package typesense_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/sink/sinktest"
	"github.com/lullhq/lull/sink/typesense"
)

// serverVariable is the environment variable with the address of a real Typesense whose key is
// "lull". make e2e-sinks starts such a server.
const serverVariable = "LULL_TEST_TYPESENSE"

func key(context.Context) (string, error) { return "lull", nil }

// real returns a sink on the server with separate collections, which are deleted afterwards.
func real(t *testing.T, change func(*typesense.Options)) *typesense.Sink {
	t.Helper()
	address := os.Getenv(serverVariable)
	if address == "" {
		t.Skipf("%s is not set: no Typesense to test against", serverVariable)
	}
	prefix := "lull-test-" + strings.ToLower(rand.Text()[:12]) + "-"
	o := typesense.Options{URL: address, Index: prefix + "{collection}", Key: key}
	if change != nil {
		change(&o)
	}
	s, err := typesense.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		var all []struct {
			Name string `json:"name"`
		}
		call(t, http.MethodGet, address+"/collections", "", &all)
		for _, c := range all {
			if strings.HasPrefix(c.Name, prefix) {
				call(t, http.MethodDelete, address+"/collections/"+c.Name, "", nil)
			}
		}
		_ = s.Close()
	})
	return s
}

// call sends a request to the server for which the sink has no method.
func call(t *testing.T, method, url, body string, into any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Typesense-Api-Key", "lull")
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= 300 {
		t.Fatalf("%s %s: HTTP %d %s %v", method, url, resp.StatusCode, text, err)
	}
	if into != nil {
		if err := json.Unmarshal(text, into); err != nil {
			t.Fatalf("%s %s: %v", method, url, err)
		}
	}
}

func TestRealServer(t *testing.T) {
	t.Parallel()
	sinktest.Run(t, sinktest.Options{
		New: func(t *testing.T) sinktest.Sink { return real(t, nil) }, NoHugeNumbers: true,
	})
}
