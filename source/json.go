package source

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/shard"
)

// pointed is the format json: any JSON object, read through the JSON pointers of the configuration.
type pointed struct {
	*rules
	id, version                   pointer
	at, operation, collectionName *pointer // nil for none
	deleteValues                  []string
}

func newPointed(r *rules, c config.JSON) (format, error) {
	s := &pointed{rules: r, deleteValues: slices.Clone(c.DeleteValues)}
	var errs []error
	read := func(name, text string) pointer {
		p, err := newPointer(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("read json.%s: %w", name, err))
		}
		return p
	}
	maybe := func(name, text string) *pointer {
		if text == "" {
			return nil
		}
		p := read(name, text)
		return &p
	}
	s.id, s.version = read("id", c.ID), read("version", c.Version)
	s.at, s.operation, s.collectionName = maybe("time", c.Time), maybe("operation", c.Operation),
		maybe("collection", c.Collection)
	if c.ID == "" {
		errs = append(errs, errors.New("json.id is missing: point to the document's id, such as /id"))
	}
	if c.Version == "" && !r.arrival {
		errs = append(errs, errors.New("json.version is missing: point to the version, or set noVersion: arrival"))
	}
	return s, errors.Join(errs...)
}

func (s *pointed) decode(o origin, b event.Body) event.Result {
	if f := object(b); f != nil {
		return failed(f)
	}
	root := gjson.Parse(b.Text)
	id, f := identity(s.id.text, s.id.in(root))
	if f != nil {
		return failed(f)
	}
	var collection string
	if s.collectionName != nil {
		if collection, f = optional(s.collectionName.text, s.collectionName.in(root)); f != nil {
			return failed(f)
		}
	}
	d := draft{op: shard.Put, data: b.Text}
	if d.doc, f = s.docID(collection, id); f != nil {
		return failed(f)
	}
	if s.operation != nil && slices.Contains(s.deleteValues, operationText(s.operation.in(root))) {
		d.op = shard.Delete
	}
	if s.at != nil {
		if d.at, f = instant(s.at.text, s.at.in(root), true); f != nil {
			return with(d.doc, f)
		}
	}
	if s.version.text != "" { // without a pointer there is no version, which only the policy arrival accepts
		d.version = version{s.version.text, s.version.in(root)}
	}
	return s.finish(o, &d)
}

func (s *pointed) docID(collection, id string) (shard.DocID, *event.Fault) {
	doc, f := s.rules.id(shard.Collection(collection), s.id.text, id)
	if f != nil && f.Field == "collection" && s.collectionName != nil {
		f.Field = s.collectionName.text
	}
	return doc, f
}

// operationText is the value that tells a delete from a put: text as it is, other values as JSON.
// What is missing is "".
func operationText(v gjson.Result) string {
	if v.Type == gjson.String {
		return v.Str
	}
	return v.Raw
}
