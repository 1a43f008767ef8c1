// SPDX-License-Identifier: Apache-2.0

package govuk

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
	Change: source.Change{
		ID: "5f4c394f-9c3b-4b1e-8d2a-1f0e6a7b8c9d", Version: "4711", Op: event.Put,
		Time: time.Date(2026, 11, 20, 16, 0, 0, 0, time.UTC),
		Data: `{"base_path":"/renew-a-bus-pass","title":"Renew a bus pass","description":"How to renew.",` +
			`"details":{"body":"<h2>Who can</h2><p>Anyone, and you.</p>"},` +
			`"expanded_links":{"organisations":[{"title":"Bus Office"}]}}`,
	},
	Write: write,
}

// write makes a page with a document type that is not ignored, in the first locale. Members of the
// content replace members of the message.
func write(s source.Settings, c source.Change) (string, error) {
	o, err := source.OptionsOf[Options](s)
	if err != nil {
		return "", err
	}
	data, err := c.Content()
	if err = cmp.Or(err, c.Here(s)); err != nil {
		return "", err
	}
	f := format{lists: o.Govuk.complete()}
	if len(f.lists.Locales) == 0 {
		return "", errors.New("every message is skipped: list a locale in govuk.locales")
	}
	types := []string{"guide", "answer", "publication", "news_story"}
	kind := types[max(0, slices.IndexFunc(types, func(t string) bool { return !f.ignores(t) }))]
	if c.Op == event.Delete {
		kind = "gone"
	}
	body := `{"content_id":` + source.Quoted(c.ID) + `,"payload_version":` + source.Scalar(c.Version) +
		`,"document_type":"` + kind + `","schema_name":"` + kind + `","locale":` + source.Quoted(f.lists.Locales[0])
	if !gjson.Get(data, "base_path").Exists() {
		body += `,"base_path":` + source.Quoted("/"+c.ID)
	}
	if !c.Time.IsZero() {
		body += `,"public_updated_at":"` + c.Time.UTC().Format(time.RFC3339Nano) + `"`
	}
	body += "}"
	for name, v := range gjson.Parse(data).ForEach {
		body = source.Pointer{Tokens: []string{name.Str}}.Put(body, v.Raw)
	}
	return body, nil
}
