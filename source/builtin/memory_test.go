// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"encoding/base64"
	"runtime"
	"strings"
	"testing"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/config/yamlfile"
	_ "github.com/lullhq/lull/sink/builtin/local"
	"github.com/lullhq/lull/source"
)

// hostile returns bodies of the largest allowed size that could need much memory.
func hostile() map[string]string {
	const most = event.MaxBodyBytes
	fill := func(before, of, after string) string {
		return before + strings.TrimSuffix(strings.Repeat(of, (most-len(before)-len(after))/len(of)), ",") + after
	}
	nested := func(open, inner, shut string) string {
		n := (most - len(inner)) / (len(open) + len(shut))
		return strings.Repeat(open, n) + inner + strings.Repeat(shut, n)
	}
	quoted := func(s string) string { return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"` }
	wrapped := `{}`
	for len(wrapped) < most/3 {
		wrapped = `{"Type":"Notification","Message":` + quoted(wrapped) + `}`
	}
	records := `{"Records":[`
	change := `{"id":"1","subject":"1","type":"doc.changed","sequence":"1","data":`
	return map[string]string{
		"brackets": strings.Repeat("[", most), "lists": nested("[", "", "]"), "objects": nested(`{"a":`, "1", "}"),
		"open objects": strings.Repeat(`{"a":`, most/5), "numbers": fill("[", "1,", "]"), "empty objects": fill("[", "{},", "]"),
		"keys": fill("{", `"a":1,`, `"b":1}`), "one text": fill(`"`, `\u0000`, `"`), "digits": strings.Repeat("9", most),
		"a version of digits": fill(change+`{},"sequence":"`, "9", `"}`), "data of lists": change + nested("[", "", "]")[:most/2] + "}",
		"data of keys":    fill(change+"{", `"a":1,`, `"b":1}}`),
		"data of numbers": fill(change+`{"a":[`, "1,", "]}}"), "data of escapes": fill(change+`{"a":"`, `\ud83d\ude00`, `"}}`),
		"records": fill(records, "{},", "]}"), "records of S3": fill(records, `{"eventSource":"aws:s3","s3":{}},`, "]}"),
		"records of SNS": fill(records, `{"Sns":{"Message":"{}"}},`, "]}"),
		"records of SQS": fill(records, `{"body":"{}"},`, "]}"), "events": fill("[", change+"{}},", "]"),
		"envelopes": wrapped, "an image of lists": `{"eventSource":"aws:dynamodb","eventName":"INSERT","dynamodb":{"SequenceNumber":` +
			`"1","Keys":{"id":{"S":"1"}},"NewImage":{"id":{"S":"1"},"a":` + strings.Repeat(`{"L":[`, most/18) + strings.Repeat("]}", most/18) + "}}}",
		"an image of numbers": fill(`{"eventSource":"aws:dynamodb","eventName":"INSERT","dynamodb":{"SequenceNumber":`+
			`"1","Keys":{"id":{"S":"1"}},"NewImage":{"id":{"S":"1"},"a":{"L":[`, `{"N":"1"},`, "]}}}}"),
		"an image of nulls": fill(`{"eventSource":"aws:dynamodb","eventName":"INSERT","dynamodb":{"SequenceNumber":`+
			`"1","Keys":{"id":{"S":"1"}},"NewImage":{"id":{"S":"1"},"a":{"L":[`, `{"NULL":true},`, "]}}}}"),
		"a change of Debezium": fill(`{"payload":{"op":"c","ts_ms":1,"source":{"ts_ms":1,"lsn":1},"after":{"id":1,"a":[`, "1,", "]}}}"),
		"base64":               base64.StdEncoding.EncodeToString([]byte(nested("[", "", "]")[:most/4*3])),
		"data in base64":       `{"Records":[{"kinesis":{"data":"` + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("[", most/2))) + `"}}]}`,
		"an event's envelope":  fill(`{"detail-type":"x","source":"x","detail":{"a":[`, "1,", "]}}"),
		"a broker's envelope":  `{"rmqMessagesByQueue":{"q::/":[{"data":"` + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("[", most/2))) + `"}]}}`,
		"a broker's messages":  fill(`{"rmqMessagesByQueue":{"q::/":[`, `{"data":"e30="},`, "]}}"),
	}
}

// A message has at most a megabyte. Decoding it allocates no more than a fixed amount of memory.
func TestDecodingIsBoundedInMemory(t *testing.T) { // not parallel: it measures memory
	const most = 32 << 20
	for kind, options := range map[string]string{
		"native": "", "govuk": "", "debezium": "", "dynamodb-stream": "", "s3": "",
		"json": ", json: {id: /id, version: /sequence}",
	} {
		c, err := yamlfile.Parse([]byte("sources: {own: {kind: " + kind + options + "}}\nsinks: {search: {kind: bleve}}\n" +
			"payload: {allow: [{bucket: abc}]}"))
		if err != nil {
			t.Fatal(err)
		}
		set, err := source.New(&c)
		if err != nil {
			t.Fatal(err)
		}
		for name, body := range hostile() {
			if len(body) > event.MaxBodyBytes {
				t.Fatalf("%s: %d bytes", name, len(body))
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			set.Decode(event.Message{Body: body})
			runtime.ReadMemStats(&after)
			if got := after.TotalAlloc - before.TotalAlloc; got > most {
				t.Errorf("%s, %s: allocates %d MB, want at most %d", kind, name, got>>20, most>>20)
			} else if got > 16<<20 {
				t.Logf("%s, %s: allocates %d MB", kind, name, got>>20)
			}
		}
	}
}
