// SPDX-License-Identifier: Apache-2.0

// Package dynamodbstream is the format of DynamoDB Streams. A body is one record, as EventBridge
// Pipes sends it or from Lambda's list of Records. Importing the package registers the kind
// dynamodb-stream.
//
// The events have no time. A record's time is only exact to about a second, and sequence numbers
// never repeat, so the order key does not need the time.
package dynamodbstream

import (
	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/setting"
	"github.com/lullhq/lull/source"
)

func init() {
	source.Register(source.Kind{
		Kind:  setting.Kind{Name: "dynamodb-stream", Doc: "Records of DynamoDB Streams."},
		Class: source.ClassInt, Versioned: true,
		New:     func(r *source.Rules) (source.Format, error) { return &format{r}, nil },
		Example: example,
	})
}

type format struct{ *source.Rules }

func (s *format) Decode(b event.Body) (d source.Draft, bad *event.Invalid) {
	if bad = source.Object(b); bad != nil {
		return d, bad
	}
	root := gjson.Parse(b.Text)
	change := event.Child(root, "dynamodb")
	if !change.IsObject() {
		return d, source.Invalid("dynamodb", "dynamodb is %s: the message is not a record of DynamoDB Streams",
			source.TypeName(change))
	}
	id, bad := streamID(event.Child(change, "Keys"))
	if bad != nil {
		return d, bad
	}
	if d.Doc, bad = s.DocID("", "Keys", id); bad != nil {
		return d, bad
	}
	d.Version = source.Version{Field: "SequenceNumber", Value: event.Child(change, "SequenceNumber")}
	switch name := event.Child(root, "eventName").Str; name {
	case "INSERT", "MODIFY":
		image := event.Child(change, "NewImage")
		if !image.IsObject() && s.Settings.Fetch == nil { // with fetch, the keys of the item are enough
			return d, source.Invalid("NewImage",
				"NewImage is %s: set the stream's view type to NEW_IMAGE or NEW_AND_OLD_IMAGES", source.TypeName(image))
		}
		d.Op, d.Data = event.Put, image.Raw
	case "REMOVE":
		d.Op = event.Delete
	default:
		return d, source.Invalid("eventName", "eventName %s is unknown: send INSERT, MODIFY or REMOVE", event.Quote(name))
	}
	return d, d.InRun(b)
}

// streamID joins the values of the key attributes in the order of their names.
func streamID(keys gjson.Result) (string, *event.Invalid) {
	if !keys.IsObject() {
		return "", source.Invalid("Keys", "Keys is %s: send the item's key attributes", source.TypeName(keys))
	}
	return source.ColumnsText("Keys", keys, func(name string, attribute gjson.Result) (string, *event.Invalid) {
		kind, v := singleValue(attribute)
		if kind != "S" && kind != "N" && kind != "B" || v.Type != gjson.String {
			return "", source.Invalid("Keys", "key attribute %s is neither S, N nor B", event.Quote(name))
		}
		return source.Identity("Keys", v)
	})
}

// singleValue returns the type and the value of an attribute value such as {"S":"text"}. The type
// is "" unless the object has exactly one member.
func singleValue(v gjson.Result) (kind string, value gjson.Result) {
	n := 0
	if v.IsObject() {
		for name, inner := range v.ForEach {
			n++
			kind, value = name.Str, inner
		}
	}
	if n != 1 {
		return "", value
	}
	return kind, value
}
