package source_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/internal/shard"
)

func FuzzNative(f *testing.F)   { fuzz(f, "native.txt", "native", "native-projected", "native-lex") }
func FuzzGovuk(f *testing.F)    { fuzz(f, "govuk.txt", "govuk", "govuk-projected") }
func FuzzS3(f *testing.F)       { fuzz(f, "s3.txt", "s3", "s3-strip") }
func FuzzDynamoDB(f *testing.F) { fuzz(f, "dynamodb-stream.txt", "stream", "stream-projected") }
func FuzzDebezium(f *testing.F) { fuzz(f, "debezium.txt", "debezium", "debezium-keyed") }
func FuzzJSON(f *testing.F)     { fuzz(f, "json.txt", "json", "json-arrival") }
func FuzzEnvelopes(f *testing.F) {
	fuzz(f, "envelopes.txt", "native", "govuk", "s3", "stream", "debezium", "json")
}

// fuzz decodes anything with the sources named, starting from the bodies of a golden file.
func fuzz(f *testing.F, seeds string, sources ...string) {
	text, err := os.ReadFile(filepath.Join("testdata", "decode", seeds))
	if err != nil {
		f.Fatalf("read the seeds: %v", err)
	}
	for c := range strings.SplitSeq(string(text), "\n----\n") {
		f.Add(c[strings.LastIndexByte(c, '\n')+1:])
	}
	set := newSet(f).WithLoader(bucket)
	f.Fuzz(func(t *testing.T, body string) {
		for _, name := range sources {
			m := message(name, body)
			results := set.Decode(m)
			checkResults(t, m, results)
			checkRepeatable(t, set.Decode, m, results, name)
			for _, r := range results {
				if r.Fault == nil && r.Skip == "" && r.Event.Op == shard.Put && r.Event.DataRef == "" {
					checkDocument(t, m, r.Event, set.Document)
				}
			}
		}
	})
}

// checkResults states what every answer of Decode must be.
func checkResults(t *testing.T, m queue.Message, results []event.Result) {
	t.Helper()
	if len(results) == 0 || len(results) > event.MaxEvents {
		t.Fatalf("decode %q: got %d results", m.Body, len(results))
	}
	for i, r := range results {
		e := r.Event
		isEvent := e.Doc != ""
		if n := count(isEvent, r.Skip != "", r.Fault != nil); n != 1 {
			t.Fatalf("decode %q: result %d is %d of event, skip and fault: %+v", m.Body, i, n, r)
		}
		if r.Fault != nil {
			checkFault(t, m, i, r.Fault)
			continue
		}
		if e.Index != i {
			t.Fatalf("decode %q: result %d has index %d", m.Body, i, e.Index)
		}
		if !isEvent {
			continue
		}
		p, err := e.Key.Parts()
		if err != nil || p.Version.Class() != e.Class || e.Version == "" {
			t.Fatalf("decode %q: key %s of %+v: %v", m.Body, e.Key, e, err)
		}
		if _, err := shard.ParseDocID(string(e.Doc)); err != nil || !utf8.ValidString(string(e.Doc)) {
			t.Fatalf("decode %q: document %q: %v", m.Body, e.Doc, err)
		}
		payloads := count(e.Data != "", e.DataRef != "")
		if e.Op == shard.Put && payloads != 1 || e.Op == shard.Delete && payloads != 0 || e.Op != shard.Put &&
			e.Op != shard.Delete {
			t.Fatalf("decode %q: %s has %d payloads", m.Body, e.Op, payloads)
		}
	}
}

func checkFault(t *testing.T, m queue.Message, i int, f *event.Fault) {
	t.Helper()
	if f.Index != i || f.Reason == "" || f.Problem == "" || f.Error() == "" || !utf8.ValidString(f.Problem) {
		t.Fatalf("decode %q: fault %+v at %d", m.Body, f, i)
	}
	const quoted = 64 + 2 // what follows a quoted field may equal the body by chance
	for j := 0; j+quoted < len(f.Problem); j++ {
		if strings.Contains(m.Body, f.Problem[j:j+quoted]) {
			t.Fatalf("decode %q: the problem %q quotes more than 64 bytes", m.Body, f.Problem)
		}
	}
}

// checkRepeatable says that the same body gives the same answer, whatever the attributes and times
// are.
func checkRepeatable(t *testing.T, decode func(queue.Message) []event.Result, m queue.Message, first []event.Result,
	name string,
) {
	t.Helper()
	if !strings.HasSuffix(name, "-arrival") {
		m.Sent = m.Sent.Add(time.Hour)
		m.Attributes = map[string]queue.Attribute{
			queue.AttrSource: queue.Text(name),
			"routing_key":    queue.Text("x.bulk.y"), queue.AttrFirstSent: queue.Text("5"),
		}
	}
	again := decode(m)
	if len(again) != len(first) {
		t.Fatalf("decode %q again: got %d results, want %d", m.Body, len(again), len(first))
	}
	for i := range again {
		// A run counts in mode resync only, into which the routing key put what was live.
		became := again[i].Event.Resync && !first[i].Event.Resync || again[i].Fault != nil &&
			again[i].Fault.Field == "resyncrun"
		if !became && (again[i].Event.Key != first[i].Event.Key || (again[i].Fault == nil) != (first[i].Fault == nil)) {
			t.Fatalf("decode %q again: got %+v, want %+v", m.Body, again[i], first[i])
		}
	}
}

func checkDocument(t *testing.T, m queue.Message, e event.Event,
	document func(queue.Message, event.Event) ([]byte, error),
) {
	t.Helper()
	doc, err := document(m, e)
	if err != nil {
		var f *event.Fault
		if !errors.As(err, &f) || f.Doc != e.Doc {
			t.Fatalf("document of %q: %v, want a fault of the event", m.Body, err)
		}
		return
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(doc, &object); err != nil || object == nil {
		t.Fatalf("document of %q: %s is no JSON object: %v", m.Body, doc, err)
	}
	if _, ok := object["_lull"]; ok {
		t.Fatalf("document of %q: %s has the sinks' key", m.Body, doc)
	}
}

func count(conditions ...bool) int {
	n := 0
	for _, c := range conditions {
		if c {
			n++
		}
	}
	return n
}
