// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/source"
)

const matched = `
sources:
  native: {kind: native}
  restored: {kind: native, epoch: 7}
  named: {kind: native, collection: named, match: [{named: true}]}
  partner: {kind: native, collection: partner, match: [{sink: partner}]}
  topic: {kind: native, collection: topic, match: [{topic: 'arn:aws:sns:eu-west-1:111122223333:news'}]}
  shop: {kind: native, collection: shop, match: [{bus: shop}]}
  orders: {kind: native, collection: orders, match: [{bus: shop, detailType: order}]}
  media: {kind: s3, collection: media, match: [{bucket: media}]}
  pages: {kind: native, collection: pages, match: [{topic: pages}]}
  cluster:
    kind: native
    collection: cluster
    match: [{topic: pages, stream: 'arn:aws:kafka:eu-west-1:111122223333:cluster/c/1'}]
  clicks: {kind: native, collection: clicks, match: [{stream: 'arn:aws:kinesis:eu-west-1:111122223333:stream/clicks'}]}
  items:
    kind: dynamodb-stream
    collection: items
    match: [{stream: 'arn:aws:dynamodb:eu-west-1:111122223333:table/items'}]
  mq: {kind: native, collection: mq, match: [{queue: published}]}
defaultSource: native
`

func TestTheSettingsChooseTheSource(t *testing.T) {
	t.Parallel()
	set := parsed(t, matched)
	account := func(service, name string) string { return "arn:aws:" + service + "eu-west-1:111122223333:" + name }
	const (
		body = `{"type":"doc.changed","subject":"a","sequence":"1","data":{}}`
		own  = "arn:aws:sns:eu-west-1:111122223333:news"
	)
	sns := func(topic, body string) string {
		return `{"Type":"Notification","TopicArn":"` + topic + `","Message":` + source.Quoted(body) + `}`
	}
	bus := func(from, kind string) string {
		return `{"source":"` + from + `","detail-type":"` + kind + `","detail":` + body + `}`
	}
	s3 := func(buckets ...string) string {
		var records []string
		for _, b := range buckets {
			records = append(records, `{"eventSource":"aws:s3","eventName":"ObjectRemoved:Delete","s3":{"bucket":{"name":"`+b+
				`"},"object":{"key":"a","sequencer":"01"}}}`)
		}
		return `{"Records":[` + strings.Join(records, ",") + `]}`
	}
	bridged := `{"source":"aws.s3","detail-type":"Object Deleted","detail":{"bucket":{"name":"media"},"object":{"key":"a","sequencer":"01"}}}`
	coded := base64.StdEncoding.EncodeToString([]byte(body))
	kafka := func(topic, cluster string) string {
		return `{"eventSource":"aws:kafka","eventSourceArn":"` + cluster + `","topic":"` + topic + `","partition":"0","offset":7,"value":"` + coded + `"}`
	}
	kinesis := func(stream string) string {
		return `{"eventSource":"aws:kinesis","sequenceNumber":"7","data":"` + coded + `","eventSourceARN":"` + account("kinesis:", "stream/"+stream) + `"}`
	}
	dynamo := func(arn string) string {
		return `{"eventSource":"aws:dynamodb","eventName":"REMOVE","dynamodb":{"Keys":{"id":{"S":"a"}},"SequenceNumber":"1"},"eventSourceARN":"` + arn + `"}`
	}
	items := account("dynamodb:", "table/items")
	for _, tt := range []struct{ name, sink, attribute, body, want string }{
		{"a topic of Kafka", "search", "", kafka("pages", "x"), "pages#a"},
		{"a topic of one cluster of Kafka", "search", "", kafka("pages", account("kafka:", "cluster/c/1")), "cluster#a"},
		{"another topic of Kafka", "search", "", kafka("page", "x"), "content#a"},
		{"Kafka behind SNS is SNS's topic", "search", "", sns(own, kafka("pages", "x")), "topic#a"},
		{"a stream of Kinesis", "search", "", kinesis("clicks"), "clicks#a"},
		{"a consumer of a stream of Kinesis", "search", "", kinesis("clicks/consumer/lull:1"), "clicks#a"},
		{"another stream of Kinesis", "search", "", kinesis("clicks2"), "content#a"},
		{"a table's stream by the table", "search", "", dynamo(items + "/stream/2026-11-20T00:00:00.000"), "items#a"},
		{"a list of a table's records", "search", "", `{"Records":[` + dynamo(items+"/stream/1") + `]}`, "items#a"},
		{"records of two tables", "search", "", `{"Records":[` + dynamo(items+"/stream/1") + `,` + dynamo(items+"2/stream/1") + `]}`, "subject is missing"},
		{"another table's stream", "search", "", dynamo(items + "2/stream/1"), "subject is missing"},
		{"a queue of RabbitMQ", "search", "", `{"eventSourceKey":"published::/","basicProperties":{},"data":"` + coded + `"}`, "mq#a"},
		{"a queue of ActiveMQ", "search", "", `{"eventSource":"aws:amq","destination":{"physicalName":"published"},"data":"` + coded + `"}`, "mq#a"},
		{"of equal rules the first source by name", "search", "", sns(own, `{"eventSourceKey":"published::/","basicProperties":{},"data":"`+coded+`"}`), "mq#a"},
		{"nothing said", "search", "", body, "content#a"},
		{"the default by its name", "search", "native", body, "content#a"},
		{"a source that may be named", "search", "named", body, "named#a"},
		{"another life of the counter", "search", "restored", body, "may not name source restored"},
		{"no source at all", "search", "nobody", body, `"nobody" is not a source`},
		{"an empty name", "search", "\x00", body, "is not a source"},
		{"the queue", "partner", "", body, "partner#a"},
		{"the queue, by its name", "partner", "partner", body, "partner#a"},
		{"the queue goes before a name", "partner", "named", body, "may not name source named"},
		{"the queue goes before envelopes", "partner", "", sns(own, body), "partner#a"},
		{"the queue of another sink", "search", "partner", body, "may not name source partner"},
		{"a topic", "search", "", sns(own, body), "topic#a"},
		{"another topic", "search", "", sns(own+"s", body), "content#a"},
		{"the outer topic", "search", "", sns(own+"s", sns(own, body)), "content#a"},
		{"a topic goes before a name", "search", "named", sns(own, body), "may not name source named"},
		{"a bus", "search", "", bus("shop", "other"), "shop#a"},
		{"a bus with its detail type", "search", "", bus("shop", "order"), "orders#a"},
		{"a bucket", "search", "", s3("media"), "media#media/a"},
		{"a bucket by a topic", "search", "", sns("arn:other", s3("media")), "media#media/a"},
		{"a bucket by the bus", "search", "", bridged, "media#media/a"},
		{"records of two buckets", "search", "", s3("media", "else"), "lull-source"},
		{"a body that is not an object", "search", "", ` [1]`, "send a JSON object"},
	} {
		m := event.Message{Body: tt.body}
		if tt.attribute != "" {
			m.Attributes = map[string]event.Attribute{queue.AttrSource: queue.Text(strings.Trim(tt.attribute, "\x00"))}
		}
		r := set.At(tt.sink).Decode(m)[0]
		why := set.At(tt.sink).Explain(m)
		got := set.At(tt.sink).SourceOf(m)
		if why.Source != got || (why.Invalid == nil) != (got != "") || got != "" && why.Rule == "" {
			t.Errorf("%s: explained as %+v, and decoded by %q", tt.name, why, got)
		}
		if got := string(r.Event.Doc); r.Invalid == nil && got != tt.want ||
			r.Invalid != nil && !strings.Contains(r.Invalid.Error(), tt.want) {
			t.Errorf("%s: got %s, %v, want %s", tt.name, got, r.Invalid, tt.want)
		}
	}
}

func TestEventsNameOpenCollectionsOnly(t *testing.T) {
	t.Parallel()
	body := func(collection string) string {
		return `{"type":"doc.deleted","subject":"a","sequence":"1","collection":"` + collection + `"}`
	}
	for _, tt := range []struct{ name, settings, collection, want string }{
		{"none configured", "", "customers", ""},
		{"configured", "collections: {content: {}}", "content", ""},
		{"not configured", "collections: {content: {}}", "customers", "add it to collections"},
		{"the source's", "sources: {a: {kind: native, collections: [content]}}", "content", ""},
		{"another source's", "collections: {content: {}, payroll: {}}\ndefaultCollection: content\n" +
			"sources: {a: {kind: native, collections: [content]}}", "payroll", "sources.a.collections"},
	} {
		r := parsed(t, "stack: x\n"+tt.settings).Decode(event.Message{Body: body(tt.collection)})[0]
		if (r.Invalid != nil) != (tt.want != "") || r.Invalid != nil &&
			(r.Invalid.Reason != event.Contract || r.Invalid.Field != "collection" || !strings.Contains(r.Invalid.Problem, tt.want)) {
			t.Errorf("%s: got %v, want %q", tt.name, r.Invalid, tt.want)
		}
	}
}
