// SPDX-License-Identifier: Apache-2.0

package event

import (
	"slices"

	"github.com/tidwall/gjson"
)

// rabbits opens the envelope that Lambda uses for Amazon MQ for RabbitMQ. The envelope has a list
// of messages for each "queue::virtual host".
func (u Unwrapper) rabbits(dst []Body, k envelope, meta Meta, left int) []Body {
	before := len(dst)
	for _, list := range k.has["rmqMessagesByQueue"].ForEach {
		if !list.IsArray() {
			continue
		}
		for _, m := range list.ForEach {
			if dst = u.rabbit(dst, m, meta, left); len(dst) > MaxEvents {
				return dst
			}
		}
	}
	if len(dst) == before {
		return append(dst, Body{Invalid: undecodable("rmqMessagesByQueue contains no message"), Meta: meta})
	}
	return dst
}

// rabbit opens one message of RabbitMQ. Its field data contains the body in base64, and its field
// basicProperties describes the body. A property has priority over a header with the same meaning.
func (u Unwrapper) rabbit(dst []Body, m gjson.Result, meta Meta, left int) []Body {
	beside := Members(m, slices.Concat([]string{"basicProperties", "data"}, routingKeyNames)...)
	own := Members(beside["basicProperties"], "contentType", "type", "headers")
	headers := Members(own["headers"], metaNames...)
	inner := metaOf(func(name string) string { return headerText(headers[name]) }).withInner(Meta{
		ContentType: own["contentType"].Str,
		Type:        own["type"].Str,
		RoutingKey:  firstOf(routingKeyNames, func(name string) string { return beside[name].Str }),
	})
	return u.decoded(dst, "data", beside["data"], meta.withInner(inner), left)
}

// headerText reads a header. A text is {"bytes":[104,105]} in RabbitMQ, and [104,105] in Kafka.
func headerText(v gjson.Result) string {
	if v.Type == gjson.String {
		return v.Str
	}
	const most = 256
	var text []byte
	if !v.IsArray() {
		v = Child(v, "bytes")
	}
	for _, b := range v.ForEach {
		if text = append(text, byte(b.Int())); len(text) == most {
			break
		}
	}
	return string(text)
}
