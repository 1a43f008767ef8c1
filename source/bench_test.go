// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/source/sourcetest"
)

func nativeBody(size int) string {
	head := `{"specversion":"1.0","id":"01JD2V6Y5T3KQ8Z4M7N9P0R1S2","source":"/cms/whitehall","type":"doc.changed","subject":"f4c394f9-7a30-11e4-a3cb-005056011aef","collection":"content","time":"2026-11-20T16:00:00.123456Z","sequence":"12345","datacontenttype":"application/json","data":{"title":"British Embassy","text":"`
	return head + strings.Repeat("lorem ipsum ", max(0, size-len(head)-3)/12) + `"}}`
}

func BenchmarkDecodeNative(b *testing.B) {
	for _, size := range []int{871, 8 << 10, 110 << 10} {
		b.Run(fmt.Sprintf("raw/%d", size), func(b *testing.B) { benchmark(b, nativeBody(size)) })
	}
	quoted := strings.ReplaceAll(nativeBody(871), `"`, `\"`)
	b.Run("sns/871", func(b *testing.B) {
		benchmark(b,
			`{"Type":"Notification","MessageId":"x","TopicArn":"arn:aws:sns:eu-west-1:1:t","Message":"`+quoted+`"}`)
	})
	b.Run("eventbridge/871", func(b *testing.B) {
		benchmark(b, `{"version":"0","id":"x","detail-type":"doc","source":"cms","detail":`+
			nativeBody(871)+`}`)
	})
}

func benchmark(b *testing.B, body string) {
	s := sourcetest.New(b, "sources: {native: {kind: native}}")
	m := event.Message{ID: "m", Body: body, Sent: time.UnixMilli(1763654400000)}
	if r := s.Decode(m); r[0].Invalid != nil || r[0].Skip != "" {
		b.Fatalf("%+v", r[0])
	}
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		s.Decode(m)
	}
}
