// SPDX-License-Identifier: Apache-2.0

package native

import (
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/source"
)

var example = source.Example{
	Change: source.Change{
		ID: "f4c394f9", Version: "12345", Op: event.Put, Time: time.Date(2026, 11, 20, 16, 0, 0, 0, time.UTC),
		Data: `{"title":"Opening hours","text":"We are open from nine to five."}`,
	},
	Write: write,
}

func write(_ source.Settings, c source.Change) (string, error) {
	data, err := c.Content()
	kind, payload := typeChanged, `,"datacontenttype":"application/json","data":`+data
	if c.Op == event.Delete {
		kind, payload = typeDeleted, ""
	}
	body := `{"specversion":"1.0","id":` + source.Quoted(c.ID+"-"+c.Version) + `,"source":"/cms","type":"` + kind +
		`","subject":` + source.Quoted(c.ID)
	if c.Collection != "" {
		body += `,"collection":` + source.Quoted(c.Collection)
	}
	if !c.Time.IsZero() {
		body += `,"time":"` + c.Time.UTC().Format(time.RFC3339Nano) + `"`
	}
	return body + `,"sequence":` + source.Quoted(c.Version) + payload + "}", err
}
