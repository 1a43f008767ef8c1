// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/source"
)

// ofKind lists the settings that a source of each kind needs to decode the example of the kind.
var ofKind = map[string]string{
	"native": "", "govuk": "", "s3": "", "dynamodb-stream": "", "debezium": "",
	"json": "json: {id: /id, version: /v, operation: /op, deleteValues: [removed]}",
}

func TestEveryRuleFeedsEveryKindOfSource(t *testing.T) {
	t.Parallel()
	for _, kind := range source.Kinds() {
		for _, rule := range []source.Match{
			{},
			{Named: true},
			{Sink: "theirs"},
			{Topic: "arn:aws:sns:eu-west-1:111122223333:news"},
			{Bus: "shop"},
			{Bus: "shop", DetailType: "order"},
			{DetailType: "order"},
			{Bus: "aws.s3"},
			{Bucket: "theirs"},
			{Bus: "aws.s3", Bucket: "theirs"},
			{Topic: "arn:aws:sns:eu-west-1:111122223333:news", Bus: "aws.s3", Bucket: "theirs"},
		} {
			custom, ofS3 := rule.Bus == "shop" || rule.DetailType == "order", rule.Bus == "aws.s3" || rule.Bucket != ""
			if kind == "s3" && custom || kind != "s3" && ofS3 {
				continue // messages of S3 come only from S3's bus, and only these messages name a bucket
			}
			match := fmt.Sprintf("{sink: %q, topic: %q, bus: %q, detailType: %q, bucket: %q, named: %t}", rule.Sink,
				rule.Topic, rule.Bus, rule.DetailType, rule.Bucket, rule.Named)
			other, fallback := "{kind: native, epoch: 9, collection: other}", "other"
			if rule.Empty() {
				match, fallback = "{named: true}", "own"
				other = "{kind: native, epoch: 9, collection: other, match: [{named: true}]}"
			}
			set := parsed(t, fmt.Sprintf(`
sources:
  other: %s
  own: {kind: %s, collection: own, match: [%s], %s}
defaultSource: %s
payload: {allow: [{bucket: ours}, {bucket: theirs, prefix: in/}]}
`, other, kind, match, ofKind[kind], fallback))
			var docs []event.DocID
			for _, op := range []event.Operation{event.Put, event.Delete} {
				e, err := set.At(rule.Sink).Encode("own", source.Change{
					Collection: "own", ID: "a", Op: op, Time: time.UnixMilli(1795190400123), Data: `{"title":"A"}`,
				})
				got := set.At(rule.Sink).Decode(event.Message{Body: e.Body, Attributes: e.Attributes})
				if err != nil || len(got) != 1 || got[0].Invalid != nil || got[0].Event.Doc.Collection() != "own" ||
					!strings.HasSuffix(string(got[0].Event.Doc), "a") || got[0].Event.Op != op {
					t.Errorf("%s of %s by %+v: %v, %s becomes %+v", op, kind, rule, err, e.Body, got)
				}
				if docs = append(docs, e.Event.Doc); docs[0] != e.Event.Doc {
					t.Errorf("a delete of %s by %+v is of %s, its put of %s", kind, rule, e.Event.Doc, docs[0])
				}
				m := event.Message{Body: e.Body, Attributes: e.Attributes, Sent: time.UnixMilli(1795190400123)}
				again, err := set.At(rule.Sink).Resync(m, aRun(t), "")
				resent := set.At(rule.Sink).Decode(again)
				if err != nil || len(resent) != 1 || !resent[0].Event.Resync || resent[0].Event.Doc != e.Event.Doc ||
					resent[0].Event.Version != e.Event.Version || resent[0].Event.Key <= e.Event.Key {
					t.Errorf("resync %s of %s by %+v: %v, %s becomes %+v", op, kind, rule, err, again.Body, resent)
				}
				is := event.OriginOf(e.Body, 4)
				if is.Topic != rule.Topic || rule.Bus != "" && is.Bus != rule.Bus ||
					rule.DetailType != "" && is.DetailType != rule.DetailType || rule.Bucket != "" && is.Bucket != rule.Bucket {
					t.Errorf("%s of %s by %+v: %s comes from %+v", op, kind, rule, e.Body, is)
				}
			}
		}
	}
}

func TestWhatCannotBeWrittenNamesTheSetting(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		settings, collection string
		op                   event.Operation
		want                 string
	}{
		{"{kind: json, json: {id: /id, version: /v}}", "", event.Delete, "set json.operation"},
		{"{kind: json, json: {id: /id, version: /v}}", "more", event.Put, "collection to more"},
		{"{kind: govuk}", "more", event.Put, "collection to more"},
		{"{kind: govuk, govuk: {locales: []}}", "", event.Put, "govuk.locales"},
		{"{kind: s3, s3: {stripPrefix: other/}}", "", event.Put, "payload.allow"},
		{"{kind: native, maxVersion: \"4\"}", "", event.Put, "sources.own.maxVersion"},
		{"{kind: native, collections: [content]}", "more", event.Put, "sources.own.collections"},
		{"{kind: native, class: lsn}", "", event.Put, ""},
	} {
		set := parsed(t, "sources: {own: "+tt.settings+"}\npayload: {allow: [{bucket: ours, prefix: in/}]}\n")
		_, err := set.Encode("own", source.Change{
			Collection: tt.collection, ID: "a", Op: tt.op, Time: time.UnixMilli(1795190400123), Data: "{}",
		})
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.settings, err, tt.want)
		}
	}
}

func TestAResyncOfWhatCannotSayItIsRefused(t *testing.T) {
	t.Parallel()
	set := parsed(t, "sources: {own: {kind: json, json: {id: /id, version: /v}}}\n"+
		"collections: {content: {}, next: {}}\ndefaultCollection: content\n")
	for _, tt := range []struct{ body, collection, want string }{
		{`{"id":"a","v":1}`, "", ""},
		{`{"id":"a","v":1}`, "next", "sources.<name>.collection to next"},
		{`{"v":1}`, "", "/id is missing"},
		{`not JSON`, "", "not JSON"},
		{`{"Service":"Amazon S3","Event":"s3:TestEvent"}`, "", ""},
	} {
		m := event.Message{Body: tt.body, Sent: time.UnixMilli(1795190400123)}
		got, err := set.Resync(m, aRun(t), tt.collection)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("resync %s: %s and %v, want %q", tt.body, got.Body, err, tt.want)
		}
	}
}
