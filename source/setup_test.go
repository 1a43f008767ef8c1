package source_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/source"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sent is when every message of the tests was sent, unless a test says otherwise.
var sent = time.UnixMilli(1795190400123).UTC() // 2026-11-20T16:00:00.123Z

// settings have a source of every kind and one for each option.
func settings() config.Config {
	c := config.Default()
	c.DefaultSource = "native"
	c.Sources = map[string]config.Source{
		"native":         {Kind: config.SourceNative},
		"native-arrival": {Kind: config.SourceNative, NoVersion: config.NoVersionArrival},
		"native-epoch":   {Kind: config.SourceNative, Epoch: 7, Collection: "restored"},
		"native-seq":     {Kind: config.SourceNative, Class: config.ClassSeq},
		"native-time":    {Kind: config.SourceNative, Class: config.ClassTime},
		"native-lsn":     {Kind: config.SourceNative, Class: config.ClassLSN},
		"native-lex":     {Kind: config.SourceNative, Class: config.ClassLex},
		"native-projected": {Kind: config.SourceNative, Projection: []string{
			"/title", "/details/body", "/details/rank",
			"/tags/1", "/a~1b/c~0d",
		}},
		"govuk": {Kind: config.SourceGovuk},
		"govuk-own": {
			Kind: config.SourceGovuk,
			Govuk: config.Govuk{
				IgnoreTypes: []string{"secret"}, IgnorePrefixes: []string{},
				OverridePaths: []string{"/open/*/x"}, Locales: []string{"cy"},
			},
		},
		"govuk-projected":  {Kind: config.SourceGovuk, Projection: []string{"/title", "/details/body"}},
		"s3":               {Kind: config.SourceS3},
		"s3-strip":         {Kind: config.SourceS3, S3: config.S3{StripPrefix: "docs/", StripSuffix: ".json"}},
		"stream":           {Kind: config.SourceDynamoDBStream},
		"stream-projected": {Kind: config.SourceDynamoDBStream, Projection: []string{"/title"}},
		"debezium":         {Kind: config.SourceDebezium},
		"debezium-keyed": {
			Kind: config.SourceDebezium, Class: config.ClassTime,
			Debezium: config.Debezium{Key: "/after/id", Version: "/source/ts_ms"},
		},
		"json": {Kind: config.SourceJSON, Class: config.ClassTime, JSON: config.JSON{
			ID: "/meta/id", Version: "/meta/updated_at", Time: "/meta/seen", Operation: "/op",
			DeleteValues: []string{"removed", "true"}, Collection: "/meta/kind",
		}},
		"json-arrival": {Kind: config.SourceJSON, NoVersion: config.NoVersionArrival, JSON: config.JSON{ID: "/id"}},
	}
	c.Payload.Allow = []config.BucketPrefix{
		{Bucket: "open-bucket"},
		{Bucket: "shared-bucket", Prefix: "in/"},
		{Bucket: "other-bucket", Sources: []string{"govuk"}},
	}
	c.Payload.HTTPHosts = []string{"assets.example.org"}
	return c
}

func newSet(t testing.TB) *source.Set {
	t.Helper()
	c := settings()
	s, err := source.New(&c)
	if err != nil {
		t.Fatalf("build the sources: %v", err)
	}
	return s
}

// message is a message for a source.
func message(name, body string) queue.Message {
	return queue.Message{
		ID: "m-1", Body: body, Sent: sent,
		Attributes: map[string]queue.Attribute{queue.AttrSource: queue.Text(name)},
	}
}

// one decodes a message of one event that must be good.
func one(t testing.TB, s *source.Set, m queue.Message) event.Event {
	t.Helper()
	results := s.Decode(m)
	if len(results) != 1 || results[0].Fault != nil || results[0].Skip != "" {
		t.Fatalf("decode %s: got %+v, want one event", m.Body, results)
	}
	return results[0].Event
}

// fault decodes a message of one event that must be bad.
func fault(t testing.TB, s *source.Set, m queue.Message) *event.Fault {
	t.Helper()
	results := s.Decode(m)
	if len(results) != 1 || results[0].Fault == nil {
		t.Fatalf("decode %.200s: got %+v, want one fault", m.Body, results)
	}
	return results[0].Fault
}
