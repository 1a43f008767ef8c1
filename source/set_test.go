package source_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/deadletter"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/source"
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
		{"too deep", deep(256), "nests more than 256"},
		{"a megabyte of brackets", strings.Repeat("[", 1<<20), "nests more than 256"},
		{
			"too many events", `{"Records":[{"eventSource":"aws:s3"}` + strings.Repeat(`,{}`, 10_000) + `]}`,
			"more than 10000 events",
		},
	}
	for _, tt := range tests {
		f := fault(t, set, message("native", tt.body))
		if f.Reason != deadletter.Undecodable || f.Index != 0 || !strings.Contains(f.Problem, tt.problem) {
			t.Errorf("%s: got %+v, want undecodable with %q", tt.name, f, tt.problem)
		}
		if len(f.Problem) > 200 {
			t.Errorf("%s: the problem has %d bytes, want at most 200: %s", tt.name, len(f.Problem), f.Problem)
		}
	}
	for name, body := range map[string]string{"1 MiB": fill(1 << 20), "as deep as allowed": deep(254)} {
		if e := one(t, set, message("native", body)); e.Doc != "content#a" {
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
	results := newSet(t).Decode(message("s3", `{"Records":[`+record("a", "01")+`,`+record("b", "no")+`,`+
		record("c", "03")+`]}`))
	if len(results) != 3 {
		t.Fatalf("got %d results, want 3", len(results))
	}
	for i, want := range []shard.DocID{"content#open-bucket/a", "content#open-bucket/b", "content#open-bucket/c"} {
		r := results[i]
		if i == 1 {
			if r.Fault == nil || r.Fault.Doc != want || r.Fault.Index != 1 {
				t.Errorf("record 1: got %+v, want a fault of %s at 1", r, want)
			}
		} else if r.Event.Doc != want || r.Event.Index != i {
			t.Errorf("record %d: got %+v, want %s", i, r, want)
		}
	}
}

func TestS3TestEventIsSkipped(t *testing.T) {
	t.Parallel()
	set := newSet(t)
	for _, name := range []string{"s3", "native"} {
		results := set.Decode(message(name,
			`{"Service":"Amazon S3","Event":"s3:TestEvent","Time":"2026-11-20T16:00:00.000Z","Bucket":"b"}`))
		if len(results) != 1 || results[0].Skip != "s3:TestEvent" {
			t.Errorf("%s: got %+v, want one skip", name, results)
		}
	}
}

func TestBodyOfAPointerIsLoadedOnlyFromAllowedPlaces(t *testing.T) {
	t.Parallel()
	body := `["software.amazon.payloadoffloading.PayloadS3Pointer",{"s3BucketName":"shared-bucket","s3Key":"out/big.json"}]`
	if f := fault(t, newSet(t).WithLoader(bucket), message("native", body)); f.Reason != deadletter.Contract ||
		f.Transient() {
		t.Errorf("outside the prefix: got %+v, want contract for good", f)
	}
	body = strings.Replace(body, "out/", "in/", 1)
	if f := fault(t, newSet(t), message("native", body)); f.Reason != deadletter.Payload {
		t.Errorf("without a loader: got %+v, want payload", f)
	}
	f := fault(t, newSet(t).WithLoader(bucket), message("native", body))
	if !f.Transient() || errors.Unwrap(f) == nil {
		t.Errorf("a time-out: got %+v, want a transient fault with its cause", f)
	}
	if strings.Contains(f.Error(), "timed out") {
		t.Errorf("a time-out: %q quotes the cause, want the cause by Unwrap only", f.Error())
	}
}

func TestMessageWithoutASourceIsAContractFault(t *testing.T) {
	t.Parallel()
	c := settings()
	c.DefaultSource = ""
	set, err := source.New(&c)
	if err != nil {
		t.Fatalf("build the sources: %v", err)
	}
	m := message("", "{}")
	for name, attributes := range map[string]map[string]queue.Attribute{"no attribute": nil, "empty": m.Attributes} {
		m.Attributes = attributes
		f := fault(t, set, m)
		if f.Reason != deadletter.Contract || f.Field != queue.AttrSource || !strings.Contains(f.Problem, "govuk, ") {
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
		"a": {Kind: "ftp"}, "b": {Kind: config.SourceNative, Class: "float"}, "c": {Kind: config.SourceJSON},
		"d": {Kind: config.SourceNative, Projection: []string{"title"}},
		"e": {Kind: config.SourceNative, Projection: []string{"/_lull/version"}},
		"f": {Kind: config.SourceDebezium, Debezium: config.Debezium{Key: "/a~2"}},
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

func TestSetIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	set := newSet(t)
	m := message("govuk",
		`{"content_id":"c","payload_version":7,"document_type":"guide","base_path":"/x","details":{"body":"<p>é</p>"}}`)
	want := one(t, set, m)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				got := set.Decode(m)[0].Event
				doc, err := set.Document(m, got)
				if got != want || err != nil || len(doc) == 0 {
					t.Errorf("got %+v, %s, %v, want %+v", got, doc, err, want)
				}
			}
		})
	}
	wg.Wait()
}

// Not parallel: it counts the allocations of the whole process.
func TestNativeEventTakesFewAllocations(t *testing.T) {
	c := config.Default()
	set, err := source.New(&c)
	if err != nil {
		t.Fatalf("build the sources: %v", err)
	}
	m := queue.Message{Body: nativeBody(871), Sent: sent}
	if got := testing.AllocsPerRun(200, func() { set.Decode(m) }); got > 8 {
		t.Errorf("got %.0f allocations for a message, want at most 8", got)
	}
}
