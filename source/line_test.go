// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"strings"
	"testing"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/source/sourcetest"
)

// A message may name the source of an object's lines only in a queue in which notifications of the
// object are also allowed. A rule with a sink has priority over the name.
func TestARuleWithASinkGoesBeforeALineThatNamesItsSource(t *testing.T) {
	t.Parallel()
	const shared = `
defaultSource: rows
sources:
  exports: {kind: s3, s3: {lines: rows}, match: [{EXPORTS}]}
  rows: {kind: json, collection: payroll, collections: [payroll], noVersion: arrival, class: time, json: {id: /id},
    match: [{ROWS}]}
  guest: {kind: json, collection: guest, collections: [guest], noVersion: arrival, class: time, json: {id: /id},
    match: [{GUEST}]}
`
	line := queue.Line{Number: 1, Written: sourcetest.Sent, Object: "s3://exports-bucket/k"}
	for name, tt := range map[string]struct{ exports, rows, guest, sink, want string }{
		"no rule names a sink":              {"bucket: exports", "named: true", "bus: guests", "search", "payroll#1"},
		"the queue is the guest's":          {"bucket: exports", "named: true", "sink: search", "search", "may not name source rows"},
		"the queue is the guest's, by name": {"bucket: exports", "bus: rows", "sink: search, named: true", "search", "payroll#1"},
		"the queue of another sink":         {"bucket: exports", "named: true", "sink: other", "search", "payroll#1"},
		"the object's queue, too":           {"sink: search, bucket: exports", "named: true", "sink: search", "search", "payroll#1"},
		"the lines' queue, too":             {"bucket: exports", "sink: search, named: true", "sink: search", "search", "payroll#1"},
		"the object's is another queue":     {"sink: other, bucket: exports", "named: true", "sink: search", "search", "may not name source rows"},
	} {
		settings := strings.NewReplacer("EXPORTS", tt.exports, "ROWS", tt.rows, "GUEST", tt.guest).Replace(shared)
		r := parsed(t, settings).At(tt.sink).Decode(event.Message{
			Body: `{"id":1}`, Sent: sourcetest.Sent, Attributes: map[string]event.Attribute{
				queue.AttrSource: queue.Text("rows"), queue.AttrLine: queue.Text(line.Text()),
			},
		})[0]
		if got := string(r.Event.Doc); r.Invalid == nil && got != tt.want ||
			r.Invalid != nil && !strings.Contains(r.Invalid.Error(), tt.want) {
			t.Errorf("%s: got %s, %v, want %s", name, got, r.Invalid, tt.want)
		}
	}
}

func TestAnObjectOfManyDocumentsHasAVersionWithinItsBound(t *testing.T) {
	t.Parallel()
	set := parsed(t, `
sources:
  exports: {kind: s3, s3: {lines: rows}, maxVersion: 00FF}
  rows: {kind: native}
defaultSource: exports
payload: {allow: [{bucket: exports}]}
`)
	for sequencer, within := range map[string]bool{
		"00FE": true, "00FF": true, "00FF00": true, "00FF01": false, strings.Repeat("F", 18): false,
	} {
		r := set.Decode(event.Message{
			Sent: sourcetest.Sent,
			Body: `{"Records":[{"eventSource":"aws:s3","eventName":"ObjectCreated:Put","s3":{"bucket":{"name":"exports"},` +
				`"object":{"key":"k","sequencer":"` + sequencer + `"}}}]}`,
		})[0]
		if (r.Object != nil) != within || (r.Skip != "") != within || (r.Invalid == nil) != within ||
			!within && (r.Invalid.Reason != event.VersionInvalid ||
				!strings.Contains(r.Invalid.Error(), "sources.exports.maxVersion")) {
			t.Errorf("%s: object %+v, %v", sequencer, r.Object, r.Invalid)
		}
	}
}
