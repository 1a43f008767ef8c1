package event

import (
	"encoding/base64"

	"github.com/tidwall/gjson"
)

// rabbits opens Lambda's envelope of Amazon MQ for RabbitMQ: lists of messages by "queue::virtual
// host".
func (u Unwrapper) rabbits(dst []Body, k envelope, meta Meta, left int) []Body {
	before := len(dst)
	k.queues.ForEach(func(_, list gjson.Result) bool {
		if !list.IsArray() {
			return true
		}
		list.ForEach(func(_, m gjson.Result) bool {
			dst = u.rabbit(dst, m, meta, left)
			return len(dst) <= MaxEvents
		})
		return len(dst) <= MaxEvents
	})
	if len(dst) == before {
		return append(dst, Body{Fault: undecodable("rmqMessagesByQueue holds no message"), Meta: meta})
	}
	return dst
}

// rabbit opens one message: data in base64, what the publisher said beside it in basicProperties.
func (u Unwrapper) rabbit(dst []Body, m gjson.Result, meta Meta, left int) []Body {
	properties, data := field(m, "basicProperties"), field(m, "data")
	headers := field(properties, "headers")
	header := func(name string) string { return headerText(field(headers, name)) }
	inner := Meta{
		ContentType: field(properties, "contentType").Str,
		Type:        field(properties, "type").Str,
		RoutingKey:  firstOf(routingKeyNames, func(name string) string { return field(m, name).Str }),
		Run:         firstOf(runNames, header),
	}
	if inner.ContentType == "" {
		inner.ContentType = firstOf(contentTypeNames, header)
	}
	if inner.RoutingKey == "" {
		inner.RoutingKey = firstOf(routingKeyNames, header)
	}
	if inner.Type == "" {
		inner.Type = firstOf(typeNames, header)
	}
	meta = meta.over(inner)
	text, err := base64.StdEncoding.DecodeString(data.Str)
	if data.Type != gjson.String || err != nil {
		f := undecodable("data of a RabbitMQ message is not base64")
		f.Field = "data"
		return append(dst, Body{Fault: f, Meta: meta})
	}
	return u.open(dst, string(text), meta, left)
}

// headerText reads a header: Lambda gives text as {"bytes":[104,105]}.
func headerText(v gjson.Result) string {
	if v.Type == gjson.String {
		return v.Str
	}
	const most = 256
	var text []byte
	field(v, "bytes").ForEach(func(_, b gjson.Result) bool {
		text = append(text, byte(b.Int()))
		return len(text) < most
	})
	return string(text)
}
