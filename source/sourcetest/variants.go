// SPDX-License-Identifier: Apache-2.0

package sourcetest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/shard"
)

// checkEnvelopes checks that a body decodes to the same results in every envelope.
func (s *suite) checkEnvelopes(t *testing.T, m event.Message) {
	t.Helper()
	want := s.Decode(m)
	if len(m.Attributes) > 1 || len(want) != 1 || want[0].Invalid != nil {
		return // an envelope would replace the attributes of the message
	}
	body := m.Body
	quoted, err := json.Marshal(body)
	if err != nil {
		t.Fatalf("quote %q: %v", body, err)
	}
	encoded := base64.StdEncoding.EncodeToString([]byte(body))
	rabbit := fmt.Sprintf(`{"basicProperties":{"headers":{}},"data":%q}`, encoded)
	for _, envelope := range []string{
		fmt.Sprintf(`{"Type":"Notification","TopicArn":"t","Message":%s}`, quoted),
		fmt.Sprintf(`{"detail-type":"changed","source":"cms","detail":%s}`, body),
		fmt.Sprintf(`{"detail-type":"changed","source":"cms","detail":%s}`, quoted),
		rabbit,
		fmt.Sprintf(`{"rmqMessagesByQueue":{"q::/":[%s]}}`, rabbit),
		fmt.Sprintf(`{"eventSource":"aws:amq","destination":{"physicalname":"q"},"data":%q}`, encoded),
		fmt.Sprintf(`{"eventSource":"aws:kafka","topic":"t","partition":"0","offset":7,"value":%q}`, encoded),
		fmt.Sprintf(`{"eventSource":"aws:kinesis","sequenceNumber":"7","data":%q}`, encoded),
	} {
		m.Body = envelope
		got := s.check(t, m)
		tooDeep := len(got) == 1 && got[0].Invalid != nil && strings.Contains(got[0].Invalid.Problem, "envelopes")
		if !tooDeep && (len(got) != 1 || got[0] != want[0]) {
			t.Fatalf("decode %q: got %+v, want %+v", envelope, got, want)
		}
	}
}

// manyDigits is a number with more digits than a floating-point number can keep.
const manyDigits = "987650123498765012349876501234"

// hostile lists values that no field expects.
var hostile = []string{
	"null", "true", "-1.5e999", manyDigits, `"` + manyDigits + `"`, `""`, `"\ud800"`, `"a\u0000|\\\n#b"`, "[]", "{}",
	`{"":[{}]}`, `"` + strings.Repeat("long and long ", 800) + `"`, nested(event.MaxDepth / 2), nested(event.MaxDepth + 1),
}

func nested(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }

// checkVariants breaks a body in many ways: as a whole, and at each of its members and elements.
func (s *suite) checkVariants(t *testing.T, m event.Message) {
	t.Helper()
	body := m.Body
	want := s.Decode(m)
	for _, m.Body = range append(hostile, body[:len(body)/2], body+body, strings.Repeat("[", 1<<16)) {
		s.check(t, m)
	}
	for _, p := range places(gjson.Parse(body)) {
		value := p.value
		for _, h := range hostile {
			m.Body = body[:value.Index] + h + body[value.Index+len(value.Raw):]
			for _, r := range s.check(t, m) {
				s.checkDigits(t, m, r)
			}
		}
		if p.name.Raw == "" {
			continue
		}
		for _, earlier := range []string{`"another"`, `"1"`, "1"} {
			m.Body = body[:p.name.Index] + p.name.Raw + ":" + earlier + "," + body[p.name.Index:]
			checkLastCounts(t, m, s.check(t, m), want)
		}
	}
}

// checkLastCounts checks that an earlier member with the same name has no effect. Only the digest
// may differ, because the payload of some formats is the whole body.
func checkLastCounts(t *testing.T, m event.Message, got, want []event.Result) {
	t.Helper()
	for i, r := range got {
		if r.Invalid != nil {
			continue
		}
		if i >= len(want) || r.Skip != want[i].Skip || r.Event.Doc != want[i].Event.Doc ||
			r.Event.Op != want[i].Event.Op || withoutDigest(r.Event) != withoutDigest(want[i].Event) {
			t.Fatalf("decode %q: got %+v, want the last of several members with one name to count, as in %+v", m.Body, r, want)
		}
	}
}

func withoutDigest(e event.Event) shard.Parts {
	p, err := e.Key.Parts()
	if err != nil {
		return shard.Parts{}
	}
	p.Digest = shard.Digest{}
	return p
}

// checkDigits checks that a field that was set to manyDigits keeps all digits in the result.
func (s *suite) checkDigits(t *testing.T, m event.Message, r event.Result) {
	t.Helper()
	if r.Invalid != nil || r.Skip != "" {
		return
	}
	out := r.Event.Version + " " + string(r.Event.Doc)
	if r.Event.Data != "" {
		if doc, err := s.Document(m, r.Event); err == nil {
			out += " " + string(doc)
		}
	}
	rest := strings.ReplaceAll(out, manyDigits, "")
	if strings.Contains(rest, manyDigits[:12]) || strings.Contains(rest, "9.876501") {
		t.Fatalf("decode %q: got %s, want every digit", m.Body, out)
	}
}

// place is a member or an element somewhere in a body. An element has no name.
type place struct{ name, value gjson.Result }

func places(v gjson.Result) (all []place) {
	if !v.IsObject() && !v.IsArray() {
		return nil
	}
	for name, value := range v.ForEach { // the name of an element is empty
		all = append(append(all, place{name, value}), places(value)...)
	}
	return all
}
