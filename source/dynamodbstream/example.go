// SPDX-License-Identifier: Apache-2.0

package dynamodbstream

import (
	"cmp"
	"strconv"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/source"
)

var example = source.Example{
	Change: source.Change{
		ID: "bus-pass", Version: "4421584500000000017450439091", Op: event.Put,
		Time: time.Date(2026, 11, 20, 16, 0, 0, 0, time.UTC),
		Data: `{"title":"Renew a bus pass","price":12.5,"tags":["travel","bus"]}`,
	},
	Write: write,
}

// write makes the stream record of an item whose key is the attribute id.
func write(s source.Settings, c source.Change) (string, error) {
	data, err := c.Content()
	name, image, at := "MODIFY", "", ""
	if c.Op == event.Delete {
		name = "REMOVE"
	} else {
		item := source.Pointer{Tokens: []string{"id"}}.Put(data, source.Quoted(c.ID))
		image = `"NewImage":` + gjson.Get(asAttribute(gjson.Parse(item)), "M").Raw + ","
	}
	if !c.Time.IsZero() {
		at = `"ApproximateCreationDateTime":` + strconv.FormatInt(c.Time.Unix(), 10) + ","
	}
	return `{"eventID":` + source.Quoted(c.ID+"-"+c.Version) + `,"eventName":"` + name +
			`","eventVersion":"1.1","eventSource":"aws:dynamodb","awsRegion":"eu-west-1","dynamodb":{` + at +
			`"Keys":{"id":{"S":` + source.Quoted(c.ID) + `}},` + image + `"SequenceNumber":` + source.Quoted(c.Version) +
			`,"StreamViewType":"NEW_AND_OLD_IMAGES"},` +
			`"eventSourceARN":"arn:aws:dynamodb:eu-west-1:111122223333:table/pages/stream/2026-11-20T00:00:00.000"}`,
		cmp.Or(err, c.Here(s))
}

// asAttribute returns a JSON value in DynamoDB's notation.
func asAttribute(v gjson.Result) string {
	switch v.Type {
	case gjson.String:
		return `{"S":` + v.Raw + `}`
	case gjson.Number:
		return `{"N":"` + v.Raw + `"}`
	case gjson.Null:
		return `{"NULL":true}`
	case gjson.True, gjson.False:
		return `{"BOOL":` + v.Raw + `}`
	case gjson.JSON:
	}
	kind := "M"
	if v.IsArray() {
		kind = "L"
	}
	all := source.AppendEach(nil, v, func(out []byte, inner gjson.Result) []byte {
		return append(out, asAttribute(inner)...)
	})
	return `{"` + kind + `":` + string(all) + "}"
}
