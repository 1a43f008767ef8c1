// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/lullhq/lull/e2e/ground"
)

// govukMessage returns a message in the format of GOV.UK's publishing API: a whole document with
// its version, or the withdrawal of a document.
func govukMessage(id string, version int, kind string) string {
	text, err := json.Marshal(map[string]any{
		"content_id": id, "payload_version": strconv.Itoa(version), "document_type": kind, "schema_name": kind,
		"locale": "en", "base_path": "/" + id, "title": fmt.Sprintf("version %d", version),
		"description": "How to renew.", "public_updated_at": "2026-01-02T03:04:05Z",
		"details": map[string]any{
			"body": "<h2>Who can</h2><p>Any<b>one</b> &amp; you.</p><script>track()</script>",
		},
		"expanded_links": map[string]any{
			"organisations": []any{map[string]any{"title": "Bus Office", "content_id": "x"}},
		},
		"links": map[string]any{"organisations": []any{"x"}},
	})
	if err != nil {
		panic(err) // cannot happen: texts and numbers can always be encoded in JSON
	}
	return string(text)
}

// withDefaults returns the stack with default settings. Each test of this stack uses its own
// collection. So a test need not wait until superseded messages of other tests become visible
// again.
func withDefaults(t *testing.T) *ground.Stack {
	t.Helper()
	s, err := defaultStack()
	ground.Must(t, err)
	return s
}

// A stack with default settings writes bursts once and in time.
func TestDefaultSettings(t *testing.T) {
	s := withDefaults(t)
	const c, documents, versions = "news", 20, 3
	s.Begun(t, ground.Event{Collection: c, ID: "first", Version: 1}) // warms up the functions
	want := map[string]int{"first": 1}
	var events []ground.Event
	for i := range documents {
		id := fmt.Sprintf("doc-%02d", i)
		events, want[id] = append(events, shuffledVersions(c, id, versions)...), versions
	}
	rand.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
	s.Spread(t, events...)
	for id, version := range want {
		s.Committed(t, ground.Key(c, id), version)
	}
	s.Holds(t, c, want)
	timely(t, s, c, len(want))
}

// The messages of GOV.UK arrive in bursts and out of order, through a topic that wraps them in an
// envelope. The withdrawal of a page is also a version.
func TestPublishingMessagesThroughAWrappingTopic(t *testing.T) {
	s := withDefaults(t)
	const c = "content"
	want := make(map[string]int)
	var messages []string
	for i := range 10 {
		id := fmt.Sprintf("6b1c-%d", i)
		messages = append(messages, govukMessage(id, 4711, "guide"), govukMessage(id, 4712, "guide"))
		if i%5 == 0 {
			messages = append(messages, govukMessage(id, 4713, "gone"))
			continue
		}
		want[id] = 4713
		messages = append(messages, govukMessage(id, 4713, "guide"))
	}
	rand.Shuffle(len(messages), func(i, j int) { messages[i], messages[j] = messages[j], messages[i] })
	s.Wrapped(t, "publishing", messages...)
	for i := range 10 {
		s.Committed(t, ground.Key(c, fmt.Sprintf("6b1c-%d", i)), 4713)
	}
	s.Holds(t, c, want)
	got := s.Search.Documents(t, s.Index(c))["6b1c-1"].Fields
	if got["title"] != "version 4713" || got["text"] != "Who can Anyone & you." || got["link"] != "/6b1c-1" {
		t.Errorf("the page is %v", got)
	}
}

// A notification of S3 names an object, and a message may refer to its payload. lull fetches the
// object or the payload when it writes the document.
func TestPayloadsAreFetched(t *testing.T) {
	s := withDefaults(t)
	s.Notify(t, "exports")
	s.Object(t, "published/a b+c.json", `{"title":"from S3"}`)
	ref := s.Object(t, "published/body.json", `{"title":"by reference"}`)
	s.Direct(t, ground.Event{Collection: "news", ID: "referred", Version: 1, Ref: ref})
	bucket := s.Config.Stack + "-exports/"
	s.Committed(t, ground.Key("news", "referred"), 1)
	for _, key := range []string{"published/a b+c.json", "published/body.json"} {
		ground.Until(t, key+" is committed", func() (bool, string) {
			row := s.Row(t, ground.Key("files", bucket+key))
			return row.Committed != "", fmt.Sprintf("%+v", row)
		})
	}
	files := s.Search.Documents(t, s.Index("files"))
	if got := files[bucket+"published/a b+c.json"].Fields["title"]; len(files) != 2 || got != "from S3" {
		t.Errorf("of S3's two objects the sink holds %v", files)
	}
	if got := s.Search.Documents(t, s.Index("news"))["referred"].Fields["title"]; got != "by reference" {
		t.Errorf("the document by reference has title %v", got)
	}
}

// Each of two sinks has its own queues, functions and flights. Both sinks share one table.
func TestTwoSinks(t *testing.T) {
	s := withDefaults(t)
	s.ToArchive(t, ground.Event{Collection: "archive", ID: "doc", Version: 1},
		ground.Event{Collection: "archive", ID: "doc", Version: 2})
	s.Direct(t, ground.Event{Collection: "news", ID: "beside", Version: 1})
	s.Committed(t, ground.Key("archive", "doc"), 2)
	s.Committed(t, ground.Key("news", "beside"), 1)
	s.Holds(t, "archive", map[string]int{"doc": 2})
	s.Wrote(t, "archive", 0, 1)
}
