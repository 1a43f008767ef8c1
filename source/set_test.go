// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/source"
	"github.com/lullhq/lull/source/debezium"
	"github.com/lullhq/lull/source/sourcetest"
)

func TestOddBodiesAreClassified(t *testing.T) {
	t.Parallel()
	set := newSet(t)
	head, tail := `{"type":"doc.changed","subject":"a","sequence":"1","data":{"x":"`, `"}}`
	fill := func(n int) string { return head + strings.Repeat("x", n-len(head)-len(tail)) + tail }
	deep := func(n int) string {
		return head[:len(head)-1] + strings.Repeat("[", n) + strings.Repeat("]", n) + tail[1:]
	}
	tests := []struct {
		name, body, problem string
	}{
		{"empty", "", "empty"},
		{"white space", " \r\n\t ", "empty"},
		{"not JSON", "<event/>", "not JSON (error at byte 1 of 8)"},
		{"cut off", head, "not JSON"},
		{"two values", "{} {}", "not JSON"},
		{"byte order mark", "\ufeff{}", "not JSON"},
		{"not UTF-8", head + "\xff" + tail, "UTF-8"},
		{"above 1 MiB", fill(1<<20 + 1), "1048577 bytes, at most 1048576"},
		{"too deep", deep(256), "more than 256 deep"},
		{"a megabyte of brackets", strings.Repeat("[", 1<<20), "more than 256 deep"},
		{
			"too many events", `{"Records":[{"eventSource":"aws:s3"}` + strings.Repeat(`,{}`, event.MaxEvents) + `]}`,
			"more than 500 events",
		},
	}
	for _, tt := range tests {
		f := invalid(t, set, sourcetest.Message("native", tt.body))
		if f.Reason != event.Undecodable || f.Index != 0 || !strings.Contains(f.Problem, tt.problem) {
			t.Errorf("%s: got %+v, want undecodable with %q", tt.name, f, tt.problem)
		}
		if len(f.Problem) > 200 {
			t.Errorf("%s: the problem has %d bytes, want at most 200: %s", tt.name, len(f.Problem), f.Problem)
		}
	}
	for name, body := range map[string]string{"1 MiB": fill(1 << 20), "as deep as allowed": deep(254)} {
		if e := oneEvent(t, set, "native", body); e.Doc != "content#a" {
			t.Errorf("%s: got %s, want content#a", name, e.Doc)
		}
	}
}

func TestTwoRecordsInOneS3NotificationAreTwoEvents(t *testing.T) {
	t.Parallel()
	record := func(key, sequencer string) string {
		return fmt.Sprintf(
			`{"eventSource":"aws:s3","eventName":"ObjectCreated:Put","s3":{"bucket":{"name":"open-bucket"},"object":{"key":%q,"sequencer":%q}}}`, key, sequencer)
	}
	results := newSet(t).Decode(sourcetest.Message("s3", `{"Records":[`+record("a", "01")+`,`+record("b", "no")+`,`+
		record("c", "03")+`]}`))
	if len(results) != 3 {
		t.Fatalf("got %d results, want 3", len(results))
	}
	for i, want := range []event.DocID{"content#open-bucket/a", "content#open-bucket/b", "content#open-bucket/c"} {
		r := results[i]
		if i == 1 {
			if r.Invalid == nil || r.Invalid.Doc != want || r.Invalid.Index != 1 {
				t.Errorf("record 1: got %+v, want a fault of %s at 1", r, want)
			}
		} else if r.Event.Doc != want || r.Event.Index != i {
			t.Errorf("record %d: got %+v, want %s", i, r, want)
		}
	}
}

func TestBodyOfAPointerIsLoadedOnlyFromAllowedPlaces(t *testing.T) {
	t.Parallel()
	body := `["software.amazon.payloadoffloading.PayloadS3Pointer",{"s3BucketName":"shared-bucket","s3Key":"out/big.json"}]`
	if f := invalid(t, newSet(t).WithLoader(bucket), sourcetest.Message("native", body)); f.Reason != event.Contract ||
		f.Transient() {
		t.Errorf("outside the prefix: got %+v, want contract for good", f)
	}
	body = strings.Replace(body, "out/", "in/", 1)
	if f := invalid(t, newSet(t), sourcetest.Message("native", body)); f.Reason != event.Payload {
		t.Errorf("without a loader: got %+v, want payload", f)
	}
	f := invalid(t, newSet(t).WithLoader(bucket), sourcetest.Message("native", body))
	if !f.Transient() || errors.Unwrap(f) == nil {
		t.Errorf("a time-out: got %+v, want a transient fault with its cause", f)
	}
	if strings.Contains(f.Error(), "timed out") {
		t.Errorf("a time-out: %q quotes the cause, want the cause by Unwrap only", f.Error())
	}
}

func TestMessageWithoutASourceIsAContractFault(t *testing.T) {
	t.Parallel()
	set := sourcetest.New(t, strings.Replace(settings, "defaultSource: native", "", 1))
	m := sourcetest.Message("", "{}")
	for name, attributes := range map[string]map[string]queue.Attribute{"no attribute": nil, "empty": m.Attributes} {
		m.Attributes = attributes
		f := invalid(t, set, m)
		if f.Reason != event.Contract || f.Field != queue.AttrSource || !strings.Contains(f.Problem, "govuk, ") {
			t.Errorf("%s: got %+v, want a fault that lists the sources", name, f)
		}
		if _, err := set.Document(m, event.Event{}); !errors.As(err, &f) {
			t.Errorf("%s: document: got %v, want a fault", name, err)
		}
	}
}

func TestBadSettingsAreAllNamed(t *testing.T) {
	t.Parallel()
	c := config.Default()
	c.Sources = map[string]config.Source{
		"a": {Kind: "ftp"}, "b": {Kind: "native", Class: "float"}, "c": {Kind: "json"},
		"d": {Kind: "native", Projection: []string{"title"}},
		"e": {Kind: "native", Projection: []string{"/_lull/version"}},
		"f": {Kind: "debezium", Options: debezium.Options{Debezium: debezium.Pointers{Key: "/a~2"}}},
	}
	c.DefaultSource = "z"
	_, err := source.New(&c)
	if err == nil {
		t.Fatal("got no error")
	}
	for _, want := range []string{
		`a: kind "ftp"`, `b: read its class`, `json.id is missing`, `json.version is missing`,
		`"title"`, `"/_lull/version"`, `"/a~2"`, `defaultSource "z"`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to say %s", err, want)
		}
	}
	if c.Sources["a"].NoVersion != "" {
		t.Error("the settings were changed")
	}
}

// The test is not parallel, because it counts the allocations of the whole process.
func TestNativeEventTakesFewAllocations(t *testing.T) {
	set := newSet(t)
	m := event.Message{Body: nativeBody(871), Sent: sourcetest.Sent}
	if got := testing.AllocsPerRun(200, func() { set.Decode(m) }); got > 8 {
		t.Errorf("got %.0f allocations for a message, want at most 8", got)
	}
}

// unlinkedConfig is settings with a source of a kind that this test does not import.
type unlinkedConfig struct{ allowed bool }

func (c unlinkedConfig) SourceConfig() source.Config {
	return source.Config{
		Sources: map[string]source.Settings{"wiki": source.Settings{Kind: "wiki", Collection: "pages"}.Complete()},
		Default: "wiki", Unlinked: c.allowed, Places: func(string) []source.Place { return nil },
	}
}

func TestAnUnlinkedSourceIsNamedAndDecodesNothing(t *testing.T) {
	t.Parallel()
	if _, err := source.New(unlinkedConfig{}); err == nil || !strings.Contains(err.Error(), "import the package") {
		t.Errorf("got %v, want the kind refused", err)
	}
	set, err := source.New(unlinkedConfig{allowed: true})
	if err != nil {
		t.Fatal(err)
	}
	m := event.Message{Body: `{"id":"a"}`}
	if got := set.SourceOf(m); got != "wiki" {
		t.Errorf("got the source %q, want wiki", got)
	}
	got := set.Decode(m)
	if len(got) != 1 || got[0].Invalid == nil || !strings.Contains(got[0].Invalid.Problem, "import the package") {
		t.Errorf("got %+v, want a message that is invalid because its kind is not linked", got)
	}
}
