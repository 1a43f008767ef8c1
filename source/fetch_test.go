// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/source"
	"github.com/lullhq/lull/source/sourcetest"
)

const pulled = `
sources:
  cms: {kind: native, fetch: {url: "https://cms.example.org/api/{collection}/{id}?at={version}", version: /meta/version}}
  late:
    {kind: native, class: time, projection: [/title], fetch: {url: "https://cms.example.org/{id}", version: /updated}}
  arrival: {kind: native, noVersion: arrival, fetch: {url: "https://cms.example.org/{id}"}}
  bucket: {kind: native, fetch: {url: "s3://content-bucket/{collection}/{id}.json"}}
  stream: {kind: dynamodb-stream, fetch: {url: "https://cms.example.org/{id}"}}
  epoch: {kind: native, epoch: 3, fetch: {url: "https://cms.example.org/{id}", version: /v}}
  govuk: {kind: govuk, projection: [/title], fetch: {url: "https://cms.example.org/{id}", version: /payload_version}}
defaultSource: cms
`

func TestAnEventThatIsFetchedNeedsNothingButIdentityAndVersion(t *testing.T) {
	t.Parallel()
	set := sourcetest.New(t, pulled)
	for _, tt := range []struct{ source, body, ref string }{
		{"cms", `{"type":"doc.touched","subject":"a","sequence":"3"}`, "https://cms.example.org/api/content/a?at=3"},
		{"cms", `{"type":"doc.changed","subject":"a","sequence":"3"}`, "https://cms.example.org/api/content/a?at=3"},
		{
			"cms", `{"type":"doc.changed","subject":"a","sequence":"3","data":{"title":"unused"}}`,
			"https://cms.example.org/api/content/a?at=3",
		},
		{
			"cms", `{"type":"doc.touched","subject":"a","sequence":"3","dataref":"https://evil.example.org/x"}`,
			"https://cms.example.org/api/content/a?at=3",
		},
		{
			"cms", `{"type":"doc.touched","subject":"a/b c?d#e&f@g:h%2fi","sequence":"3"}`,
			"https://cms.example.org/api/content/a%2Fb%20c%3Fd%23e%26f%40g%3Ah%252fi?at=3",
		},
		{"arrival", `{"type":"doc.touched","subject":"ä"}`, "https://cms.example.org/%C3%A4"},
		{"bucket", `{"type":"doc.touched","subject":"a/b c?d","sequence":"3"}`, "s3://content-bucket/content/a/b c?d.json"},
		{
			"stream", `{"eventName":"MODIFY","eventSource":"aws:dynamodb","dynamodb":{"Keys":{"id":{"S":"a"}},` +
				`"SequenceNumber":"111","StreamViewType":"KEYS_ONLY"}}`, "https://cms.example.org/a",
		},
	} {
		e := oneEvent(t, set, tt.source, tt.body)
		if e.DataRef != tt.ref || e.Fetch != tt.source || e.Data != "" {
			t.Errorf("%s %s: got %q of %q with data %q, want %q", tt.source, tt.body, e.DataRef, e.Fetch, e.Data, tt.ref)
		}
	}
	e := oneEvent(t, set, "cms", `{"type":"doc.deleted","subject":"a","sequence":"4"}`)
	if e.DataRef != "" || e.Fetch != "" {
		t.Errorf("got %+v, want a delete that loads nothing", e)
	}
}

// The order key must not depend on the setting fetch. Otherwise, lull would write all documents
// again after the setting was turned on.
func TestFetchChangesNoOrderKey(t *testing.T) {
	t.Parallel()
	body := `{"type":"doc.changed","subject":"a","sequence":"3","data":{"title":"T"}}`
	with := oneEvent(t, sourcetest.New(t, pulled), "cms", body)
	if without := oneEvent(t, newSet(t), "native", body); with.Key != without.Key {
		t.Errorf("got key %s, want %s", with.Key, without.Key)
	}
}

func TestAnIDThatCouldLeaveItsPlaceIsRefused(t *testing.T) {
	t.Parallel()
	set := sourcetest.New(t, pulled)
	for _, id := range []string{
		".", "..", "../x", "a/../b", "a/..", `a\\..\\b`, "%2e%2e", "%2E%2E/x", "..%2fx", "a%2f..%2fb", "%252e%252e%252fx",
		"..%252f%zz", "./x", "%25252e%25252e",
	} {
		for _, name := range []string{"cms", "bucket"} {
			bad := invalid(t, set, sourcetest.Message(name, `{"type":"doc.touched","subject":"`+id+`","sequence":"1"}`))
			if bad.Reason != event.Payload || bad.Field != "fetch" || bad.Doc == "" {
				t.Errorf("%s %s: got %+v, want an Invalid of the document for its payload", name, id, bad)
			}
		}
	}
	for _, id := range []string{"...", "a..b", ".hidden", "v1..v2/x", "100%"} {
		oneEvent(t, set, "cms", `{"type":"doc.touched","subject":"`+id+`","sequence":"1"}`)
	}
}

// TestNoIDLeavesItsSegment reads the address as a server does, and also as a server does that
// unescapes the address too often.
func TestNoIDLeavesItsSegment(t *testing.T) {
	t.Parallel()
	set := sourcetest.New(t, pulled)
	rapid.Check(t, func(t *rapid.T) {
		id := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{
			"..", "../", "/..", `\`, "%2e", "%2f", "%25", ".", "%", "?", "#", "@", ":", "a", "é", " ", "&", "{id}", "{version}",
		}), 1, 6).Draw(t, "id"), "")
		results := set.Decode(sourcetest.Message("cms", `{"type":"doc.touched","subject":`+source.Quoted(id)+`,"sequence":"1"}`))
		if results[0].Invalid != nil {
			return
		}
		u, err := url.Parse(results[0].Event.DataRef)
		if err != nil || u.Host != "cms.example.org" || u.User != nil || u.Fragment != "" || u.RawQuery != "at=1" {
			t.Fatalf("id %q: got %s, %v", id, results[0].Event.DataRef, err)
		}
		if got := strings.Split(u.EscapedPath(), "/"); len(got) != 4 || u.Path != "/api/content/"+id {
			t.Fatalf("id %q: got the path %s", id, u.EscapedPath())
		}
		for seen := u.Path; ; {
			if clean := path.Clean(strings.ReplaceAll(seen, `\`, "/")); !strings.HasPrefix(clean, "/api/content") {
				t.Fatalf("id %q leads to %s", id, clean)
			}
			next, err := url.PathUnescape(seen)
			if err != nil || next == seen {
				return
			}
			seen = next
		}
	})
}

func TestWhatIsFetchedIsComparedWithItsEvent(t *testing.T) {
	t.Parallel()
	set := sourcetest.New(t, pulled)
	touched := func(more string) string { return `{"type":"doc.touched","subject":"a",` + more + `}` }
	five, at := touched(`"sequence":"5"`), touched(`"sequence":"2026-11-20T16:00:00.5Z"`)
	for name, tt := range map[string]struct {
		source, body, data string
		stale              bool
		doc, problem       string // the document, or a part of the problem
	}{
		"the same":           {"cms", five, `{"meta":{"version":5},"_lull":1}`, false, `{"meta":{"version":5}}`, ""},
		"newer":              {"cms", five, `{"meta":{"version":"10"}}`, false, `{"meta":{"version":"10"}}`, ""},
		"older":              {"cms", five, `{"meta":{"version":4}}`, true, "", `version "4", which is older`},
		"older, as a number": {"cms", touched(`"sequence":"10"`), `{"meta":{"version":9}}`, true, "", "older"},
		"none":               {"cms", five, `{"version":5}`, true, "", "no version at /meta/version"},
		"null":               {"cms", five, `{"meta":{"version":null}}`, true, "", "no version at /meta/version"},
		"not a version":      {"cms", five, `{"meta":{"version":"v5"}}`, false, "", "at /meta/version: "},
		"an object":          {"cms", five, `{"meta":{"version":{}}}`, false, "", "is an object"},
		"not a document":     {"cms", five, `[1]`, false, "", "is missing"},
		"not JSON":           {"cms", five, `<p>`, false, "", "not JSON"},
		"empty":              {"cms", five, ``, false, "", "empty"},
		"a time, the same":   {"late", at, `{"title":"T","updated":"2026-11-20T17:00:00.500+01:00"}`, false, `{"title":"T"}`, ""},
		"a time, older":      {"late", at, `{"title":"T","updated":"2026-11-20T16:00:00Z"}`, true, "", "older"},
		// A resync sends the same version again, and a later epoch starts with low versions.
		"the version alone": {
			"epoch", touched(`"sequence":"5","time":"2026-11-20T16:00:00Z","mode":"resync",` +
				`"resyncrun":"01JD2V6Y5T3KQ8Z4M7N9P0R1S2"`), `{"v":5}`, false, `{"v":5}`, "",
		},
		// If documents are fetched, the projection makes the document even for a kind with its own
		// documents.
		"a kind's own document": {
			"govuk", `{"content_id":"4e8a7bfd-7a1c-4a9f-9f5b-0a5f0bb7cb7e","document_type":"guide","locale":"en",` +
				`"payload_version":"7","base_path":"/x","title":"old"}`, `{"title":"new","payload_version":8}`, false,
			`{"title":"new"}`, "",
		},
		"nothing to compare":     {"bucket", five, `{"a":1}`, false, `{"a":1}`, ""},
		"nothing, not an object": {"bucket", five, `1`, false, "", "is not a document"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, e := sourcetest.Message(tt.source, tt.body), oneEvent(t, set, tt.source, tt.body)
			e.Data = tt.data
			doc, err := set.Document(m, e)
			var bad *event.Invalid
			switch {
			case tt.doc != "" && (err != nil || string(doc) != tt.doc):
				t.Errorf("got %s, %v, want %s", doc, err, tt.doc)
			case tt.doc == "" && (!errors.As(err, &bad) || bad.Stale != tt.stale || !strings.Contains(bad.Problem, tt.problem) ||
				bad.Field != "fetch" || bad.Doc != e.Doc || bad.Key != e.Key || bad.Missing):
				t.Errorf("got %s, %+v, want stale: %t, %s", doc, err, tt.stale, tt.problem)
			case bad != nil && (bad.Reason == event.StaleSource) != tt.stale:
				t.Errorf("got reason %s", bad.Reason)
			}
		})
	}
}

func TestAFaultOfTheURLSaysNothingOfItsQuery(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"https://cms.example.org/x?key=hunter2", "http://cms.example.org/{id}?key=hunter2",
		"https://cms.example.org/{id}/{x}?key=hunter2", "https://cms.example.org/../{id}?key=hunter2",
		"s3://bucket/*{id}?key=hunter2", "https://user:hunter2@cms.example.org/{id}",
	} {
		f := source.Fetch{URL: url, Version: "/v"}
		all := f.Problems(source.Settings{Kind: "native"})
		if len(all) == 0 {
			t.Errorf("%s: got no fault", url)
		}
		for _, p := range all {
			if strings.Contains(fmt.Sprint(p), "hunter2") {
				t.Errorf("%s: got %v, want it without the query", url, p)
			}
		}
	}
}
