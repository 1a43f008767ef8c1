// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"context"
	"errors"
	"testing"

	"go.uber.org/goleak"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/config/yamlfile"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/source"
	_ "github.com/lullhq/lull/source/builtin"
	"github.com/lullhq/lull/source/sourcetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// settings has a source of every kind, and a source of the kind native for each class of versions.
const settings = `
sources:
  native: {kind: native}
  native-arrival: {kind: native, noVersion: arrival}
  native-epoch: {kind: native, epoch: 7, collection: restored}
  native-seq: {kind: native, class: seq}
  native-time: {kind: native, class: time}
  native-lsn: {kind: native, class: lsn}
  native-lex: {kind: native, class: lex}
  native-projected: {kind: native, projection: [/title, /details/body, /details/rank, /tags/1, /a~1b/c~0d]}
  govuk: {kind: govuk}
  s3: {kind: s3}
  stream: {kind: dynamodb-stream}
  debezium: {kind: debezium}
  json: {kind: json, json: {id: /id, version: /v}}
defaultSource: native
payload:
  allow: [{bucket: open-bucket}, {bucket: shared-bucket, prefix: in/}, {bucket: other-bucket, sources: [govuk]}]
`

// bucket loads objects from the bucket that the pointers of the test data name.
func bucket(_ context.Context, name, key string) ([]byte, error) {
	switch key {
	case "big.json":
		return []byte(`{"type":"doc.changed","subject":"big","sequence":"1","data":{"from":"` + name + `"}}`), nil
	case "loop.json":
		return []byte(
			`["software.amazon.payloadoffloading.PayloadS3Pointer",{"s3BucketName":"open-bucket","s3Key":"loop.json"}]`), nil
	case "absent.json":
		return nil, &event.Invalid{Reason: event.Payload, Field: "s3Key", Problem: "the object does not exist"}
	}
	return nil, errors.New("timed out")
}

var envelopes = sourcetest.Options{Settings: settings, Messages: "testdata/envelopes.txt", Load: bucket}

func TestEnvelopes(t *testing.T) { sourcetest.Run(t, envelopes) }

func FuzzEnvelopes(f *testing.F) { sourcetest.Fuzz(f, envelopes) }

// parsed builds the sources of settings without a change. sourcetest.New would also let messages
// name their source.
func parsed(t testing.TB, settings string) *source.Set {
	t.Helper()
	c, err := yamlfile.Parse([]byte(settings))
	if err != nil {
		t.Fatalf("%s: %v", settings, err)
	}
	set, err := source.New(&c)
	if err != nil {
		t.Fatalf("%s: %v", settings, err)
	}
	return set
}

// aRun returns a resync run.
func aRun(t testing.TB) event.Run {
	t.Helper()
	run, err := shard.ParseRun("01JD2V6Y5T3KQ8Z4M7N9P0R1S2")
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func newSet(t testing.TB) *source.Set { return sourcetest.New(t, settings) }

// oneEvent decodes a message that must contain exactly one valid event.
func oneEvent(t testing.TB, s *source.Set, name, body string) event.Event {
	t.Helper()
	results := s.Decode(sourcetest.Message(name, body))
	if len(results) != 1 || results[0].Invalid != nil || results[0].Skip != "" {
		t.Fatalf("decode %s: got %+v, want one event", body, results)
	}
	return results[0].Event
}

// invalid decodes a message that must contain exactly one event, and that event must be invalid.
func invalid(t testing.TB, s *source.Set, m event.Message) *event.Invalid {
	t.Helper()
	results := s.Decode(m)
	if len(results) != 1 || results[0].Invalid == nil {
		t.Fatalf("decode %.200s: got %+v, want one Invalid", m.Body, results)
	}
	return results[0].Invalid
}
