// SPDX-License-Identifier: Apache-2.0

package command

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// The doctor connects to the host from which documents are fetched. It sends no request, because
// the host would log a request for a document that never existed.
func TestDoctorConnectsToSources(t *testing.T) {
	t.Parallel()
	var connected, asked atomic.Int32
	cms := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked.Add(1)
	}))
	cms.Config.ConnState = func(_ net.Conn, to http.ConnState) {
		if to == http.StateNew {
			connected.Add(1)
		}
	}
	cms.Start()
	t.Cleanup(cms.Close)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	untrusted := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(untrusted.Close)
	for _, tt := range []struct {
		name, url, private, says string
		code                     exitCode
	}{
		{"a host that answers", cms.URL, "[127.0.0.1]", "ok\tsource cms can be connected to\t127.0.0.1", exitOK},
		{"a host that is down", gone.URL, "[127.0.0.1]", "127.0.0.1: the source cannot be connected to", exitFailed},
		{"no certificate", untrusted.URL, "[127.0.0.1]", "certificate of the source's host is not trusted", exitFailed},
		{
			"a private address", strings.Replace(cms.URL, "http:", "https:", 1), "[]",
			"name the host under fetch.allowPrivate", exitFailed,
		},
		{"a bucket", "s3://bodies", "[]", "not checked: index reads the bucket", exitOK},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := connected.Load()
			settings := write(t, "sources:", "  cms:", "    kind: native", "    noVersion: arrival",
				"    fetch: {url: '"+tt.url+"/{id}', allowPrivate: "+tt.private+"}", "sinks: {search: {kind: bleve}}")
			s := start(t, nil, "--config", settings, "--speed", "100")
			a := s.ask("doctor")
			words := func(s string) string { return strings.Join(strings.Fields(s), " ") }
			if a.code != tt.code || !strings.Contains(words(a.out), words(tt.says)) {
				t.Errorf("got exit code %d and %s, want %d and %q", a.code, a.out, tt.code, tt.says)
			}
			if tt.url == cms.URL && (connected.Load() == before || asked.Load() > 0) {
				t.Errorf("got %d connections and %d requests, want one without a request", connected.Load()-before, asked.Load())
			}
		})
	}
}

// If a collection has several sinks, the doctor reads the document back from each.
func TestDoctorReadsTheDocumentBackFromEachSink(t *testing.T) {
	t.Parallel()
	settings := write(t, "collections: {content: {sinks: [a, b]}}", "defaultCollection: content", "defaultSink: a",
		"sinks: {a: {kind: bleve}, b: {kind: bleve}}")
	s := start(t, nil, "--config", settings, "--speed", "100")
	s.ask("doctor").want(t, "doctor", exitOK, "sink a holds it", "sink b holds it", "the delete is committed")
}

// With the settings of docs/objects.md, no source can write a delete.
func TestDoctorPassesOnSettingsThatCannotSayDeletes(t *testing.T) {
	t.Parallel()
	_, settings, _ := strings.Cut(contents(t, "../docs/objects.md"), "```yaml as=lull.yaml\n")
	settings, _, _ = strings.Cut(settings, "```")
	s := start(t, nil, "--local", "--config", write(t, settings), "--speed", "100")
	const says = "not checked: no source can write this change"
	s.ask("doctor").want(t, "doctor", exitOK, says, "json.deleteValues", "the sink can be read")
	s.ask("doctor", "--source", "products").want(t, "of a source", exitOK, says, "json.deleteValues")
	for _, unknown := range []string{"--source", "--collection"} {
		if got := s.ask("doctor", unknown, "other"); got.code != exitFailed || !strings.Contains(got.out, "BAD") {
			t.Errorf("%s other: exit %d: %s", unknown, got.code, got.out)
		}
	}
	if got := s.ask("get", "products#lull-doctor"); got.code != exitMissing {
		t.Errorf("the document is there: %s", got.out)
	}
}
