// SPDX-License-Identifier: Apache-2.0

package event

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/internal/seam/deadletter"
)

// Unwrapper removes envelopes. It is safe for concurrent use if the function Load is.
type Unwrapper struct {
	// Depth is the greatest number of envelopes around an event.
	Depth int
	// Load fetches the body that a pointer names. Load must also check that the pointer is allowed.
	// If Load is nil, pointers are refused.
	Load func(Pointer) (string, *Invalid)
}

// Unwrap appends the parts of a message to dst: at least one Body, and at most MaxEvents. A body
// without an envelope is appended unchanged.
func (u Unwrapper) Unwrap(dst []Body, text string, meta Meta) []Body {
	dst = u.open(dst, text, meta, u.Depth)
	if len(dst) > MaxEvents { // refuse the whole message: decoding only a part would lose the other events
		return append(dst[:0],
			Body{Invalid: undecodable("the message contains more than %d events: send fewer in one message",
				MaxEvents)})
	}
	return dst
}

// open checks a text that was not checked yet, and removes its envelopes. The argument left is how
// many more envelopes are allowed.
func (u Unwrapper) open(dst []Body, text string, meta Meta, left int) []Body {
	if isHeartbeat(meta.ContentType) {
		return append(dst, Body{Skip: "heartbeat", Meta: meta})
	}
	if f := Check(text); f != nil {
		return append(dst, Body{Invalid: f, Meta: meta})
	}
	return u.peel(dst, text, meta, left)
}

// peel removes one envelope, if there is one, from a text that is valid JSON.
func (u Unwrapper) peel(dst []Body, text string, meta Meta, left int) []Body {
	text = strings.Trim(text, whitespace)
	switch text[0] {
	case '[':
		if p, ok := parsePointer(text); ok {
			return u.follow(dst, p, meta, left)
		}
	case '{':
		switch k := recognise(text); {
		case k.kind == raw:
		case k.kind == testEvent:
			return append(dst, Body{Skip: "s3:TestEvent", Meta: meta})
		case left == 0:
			return append(dst, Body{Invalid: u.wrappedTooDeep(), Meta: meta})
		default:
			return u.unpack(dst, k, meta, left-1)
		}
	}
	return append(dst, Body{Text: text, Meta: meta})
}

func (u Unwrapper) unpack(dst []Body, k envelope, meta Meta, left int) []Body {
	switch k.kind {
	case sns:
		return u.notification(dst, k, meta, left)
	case eventBridge:
		meta.Type = k.has["detail-type"].Str
		detail := k.has["detail"]
		if k.ofS3() {
			return append(dst, Body{Text: detail.Raw, Shape: S3Change, Meta: meta})
		}
		if detail.Type == gjson.String { // an input transformer has turned the detail into a text
			return u.open(dst, detail.Str, meta, left)
		}
		return u.peel(dst, detail.Raw, meta, left)
	case records:
		for _, r := range k.has["Records"].ForEach {
			b := Body{Text: r.Raw, Meta: meta}
			if recordSource(r) == "aws:s3" {
				b.Shape = S3Record
			}
			if dst = append(dst, b); len(dst) > MaxEvents {
				break
			}
		}
		return dst
	case rabbitBatch:
		return u.rabbits(dst, k, meta, left)
	case activeOne:
		return u.active(dst, k.whole, meta, left)
	case kafkaOne:
		return u.kafka(dst, k.whole, meta, left)
	case kinesisOne:
		return u.kinesis(dst, k.whole, meta, left)
	case abandoned:
		return append(dst, Body{Invalid: abandonedRecords(k.batch), Meta: meta})
	default:
		return u.rabbit(dst, k.whole, meta, left)
	}
}

// notification opens an envelope of SNS without raw delivery.
func (u Unwrapper) notification(dst []Body, k envelope, meta Meta, left int) []Body {
	if kind := k.has["Type"].Str; kind != "Notification" {
		return append(dst, Body{Meta: meta, Invalid: &Invalid{
			Reason: deadletter.Contract, Field: "Type",
			Problem: Quote(kind) + " is a message of SNS itself, not an event: confirm the subscription in SNS",
		}})
	}
	if said := k.has["MessageAttributes"]; said.Exists() {
		attributes := Members(said, metaNames...)
		meta = meta.withInner(metaOf(func(name string) string { return Child(attributes[name], "Value").Str }))
	}
	return u.open(dst, k.has["Message"].Str, meta, left)
}

func (u Unwrapper) wrappedTooDeep() *Invalid {
	return undecodable("the event is in more than %d envelopes: raise payload.envelopeDepth", u.Depth)
}

func isHeartbeat(contentType string) bool {
	kind, _, _ := strings.Cut(contentType, ";")
	return strings.EqualFold(strings.TrimSpace(kind), heartbeat)
}
