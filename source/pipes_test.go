// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/source"
	"github.com/lullhq/lull/source/sourcetest"
)

// pipes tests records in the form in which EventBridge Pipes sends them, according to AWS.
var pipes = sourcetest.Options{Settings: `
sources:
  native: {kind: native}
  position: {kind: native, noVersion: position}
  sequence: {kind: native, noVersion: position, class: lex}
  sequence-keyed: {kind: json, noVersion: position, class: lex, json: {key: true}}
  keyed: {kind: json, noVersion: position, json: {key: true}}
  pointed: {kind: json, noVersion: position, json: {id: /id, operation: /op, deleteValues: [gone]}}
  stream: {kind: dynamodb-stream}
  debezium: {kind: debezium}
defaultSource: native
`, Messages: "testdata/pipes.txt"}

func TestPipes(t *testing.T) { sourcetest.Run(t, pipes) }

func FuzzPipes(f *testing.F) { sourcetest.Fuzz(f, pipes) }

// A message that Encode writes for a source meets all requirements of the source's rule, and the
// source decodes the message.
func TestMessagesForARuleOfAPipeAreWhatThePipeSends(t *testing.T) {
	t.Parallel()
	const account = "eu-west-1:111122223333:"
	for _, tt := range []struct{ match, kind, want string }{
		{"{stream: 'arn:aws:kinesis:" + account + "stream/pages'}", "kind: native", `"eventSource":"aws:kinesis"`},
		{"{stream: 'arn:aws:kafka:" + account + "cluster/c/1-2'}", "kind: native", `"topic":"example"`},
		{"{topic: pages, stream: 'arn:aws:kafka:" + account + "cluster/c/1-2'}", "kind: native", `"topic":"pages"`},
		{"{topic: pages}", "kind: native, noVersion: position", `"SelfManagedKafka"`},
		{"{topic: pages}", "kind: json, noVersion: position, json: {key: true}", `"offset":`},
		{"{queue: pages}", "kind: govuk, govuk: {locales: [en]}", `"eventSourceKey":"pages::/"`},
		{"{stream: 'arn:aws:mq:" + account + "broker:b:1'}", "kind: native", `"aws:rmq"`},
		{"{stream: 'arn:aws:dynamodb:" + account + "table/pages'}", "kind: dynamodb-stream", `table/pages/stream/`},
		{"{bus: shop}", "kind: json, noVersion: position, json: {key: true}", `"offset":`},
	} {
		set := parsed(t, "sources: {other: {kind: native}, a: {"+tt.kind+", match: ["+tt.match+"]}}\ndefaultSource: other")
		for _, op := range []event.Operation{event.Put, event.Delete} {
			e, err := set.Encode("a", source.Change{ID: "bus-pass", Op: op, Time: time.UnixMilli(1795190400123), Data: `{"a":1}`})
			if err != nil || !strings.Contains(e.Body, tt.want) || e.Event.Op != op {
				t.Errorf("%s, %s: got %s, %+v, %v", tt.match, op, e.Body, e.Event, err)
			}
		}
	}
}

// A record's position orders the record among the records of its partition. A copy of the message
// in a resync run keeps the position.
func TestAResyncKeepsThePlaceInTheStream(t *testing.T) {
	t.Parallel()
	set := sourcetest.New(t, pipes.Settings)
	for _, name := range []string{"position", "pointed"} {
		e, err := set.Encode(name, source.Change{ID: "bus-pass", Op: event.Put, Version: "7", Time: sourcetest.Sent})
		if err != nil {
			t.Fatal(err)
		}
		m, err := set.Resync(sourcetest.Message(name, e.Body), aRun(t), "")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		r := set.Decode(m)[0]
		if r.Invalid != nil || r.Event.Version != "7" || !r.Event.Resync || r.Event.Doc != e.Event.Doc {
			t.Errorf("%s: got %+v, want version 7 again", name, r)
		}
	}
}
