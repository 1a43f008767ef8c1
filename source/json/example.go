// SPDX-License-Identifier: Apache-2.0

package json

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/source"
)

var example = source.Example{
	Options: Options{Pointers{
		ID: "/id", Version: "/version", Time: "/updated_at", Operation: "/op", DeleteValues: []string{"delete"},
	}},
	Change: source.Change{
		ID: "bus-pass", Version: "12", Op: event.Put, Time: time.Date(2026, 11, 20, 16, 0, 0, 0, time.UTC),
		Data: `{"title":"Renew a bus pass","price":12.5}`,
	},
	Write: write,
}

// write puts every value of the change at the place that its pointer names.
func write(s source.Settings, c source.Change) (string, error) {
	options, err := source.OptionsOf[Options](s)
	if err != nil {
		return "", err
	}
	o := options.JSON
	data, err := c.Content()
	if o.Collection == "" {
		err = cmp.Or(err, c.Here(s))
	}
	operation := ""
	switch {
	case err != nil:
	case o.ID == "" && !o.Key:
		err = errors.New("json.id is missing: write the JSON pointer to the document's id, such as /id")
	case c.Op == event.Put && o.Operation != "":
		operation = "update"
		for slices.Contains(o.DeleteValues, operation) {
			operation += "d"
		}
	case c.Op == event.Delete && o.Key && o.Operation == "":
		return "null", nil
	case c.Op == event.Delete && (o.Operation == "" || len(o.DeleteValues) == 0):
		err = errors.New("no message of the source is a delete: set json.operation and json.deleteValues")
	case c.Op == event.Delete:
		operation = o.DeleteValues[0]
	}
	values := []struct{ pointer, text string }{
		{o.ID, source.Quoted(c.ID)},
		{o.Version, source.Quoted(c.Version)},
		{o.Time, ""},
		{o.Operation, quotedOrNone(operation)},
		{o.Collection, quotedOrNone(c.Collection)},
	}
	if s.Class == source.ClassInt {
		values[1].text = source.Scalar(c.Version)
	}
	if !c.Time.IsZero() && o.Time != o.Version {
		values[2].text = source.Quoted(c.Time.UTC().Format(time.RFC3339Nano))
	}
	body := "{}"
	put := func() {
		for _, v := range values {
			p, bad := source.ParsePointer(v.pointer)
			if err = cmp.Or(err, bad); err == nil && v.pointer != "" && v.text != "" {
				body = p.Put(body, v.text)
			}
		}
	}
	put() // before the content, so that a reader of the message sees the id first
	for name, v := range gjson.Parse(data).ForEach {
		body = source.Pointer{Tokens: []string{name.Str}}.Put(body, v.Raw)
	}
	put() // and after it, because the content may have a member of the same name
	return body, err
}

func quotedOrNone(text string) string {
	if text == "" {
		return ""
	}
	return source.Quoted(text)
}
