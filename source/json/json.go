// SPDX-License-Identifier: Apache-2.0

// Package json is a format for any JSON object. JSON pointers in the settings name the fields that
// lull reads. Importing the package registers the kind json.
package json

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/setting"
	"github.com/lullhq/lull/source"
)

// Options are the options of the kind json, under sources.<name>.json.
type Options struct {
	JSON Pointers `json:"json"`
}

// Pointers are JSON pointers (RFC 6901) into the message.
type Pointers struct {
	// ID points to the document's id; required unless Key is set.
	ID string `json:"id"`
	// Key takes the key of a record in Kafka, or the partition key of a record in Kinesis, as the
	// document's id. With Key, a record of Kafka without a value deletes its document.
	Key bool `json:"key"`
	// Version points to the version; required unless the source's noVersion is arrival or position.
	Version string `json:"version"`
	// Time points to the event time. If it is empty, events have no time.
	Time string `json:"time"`
	// Operation points to the value that distinguishes a delete from a put. If it is empty, every
	// message is a put.
	Operation string `json:"operation"`
	// DeleteValues are the values at Operation that mean delete.
	DeleteValues []string `json:"deleteValues"`
	// Collection points to the collection's name. Empty means the source's collection.
	Collection string `json:"collection"`
}

func init() {
	source.Register(source.Kind{
		Kind: setting.Kind{
			Name: "json", Doc: "Any JSON object, read through JSON pointers.", Options: Options{},
			Settings: []setting.Setting{
				setting.Pointer("json.id", "The path of the document's id.").Otherwise("required for json without json.key"),
				setting.Flag("json.key", "Takes the key of a record in Kafka, or its partition key in Kinesis, as the "+
					"document's id. A record of Kafka without a value deletes its document."),
				setting.Pointer("json.version", "The path of the version.").
					Otherwise("required for json unless noVersion is arrival or position"),
				setting.Pointer("json.time", "The path of the event time.").Otherwise("none"),
				setting.Pointer("json.operation", "The path of the operation.").Otherwise("none: every event is a put"),
				setting.List("json.deleteValues", nil, "", "The values of the operation that mean delete.").
					Otherwise("none"),
				setting.Pointer("json.collection", "The path of the collection's name.").Otherwise("none"),
			},
		},
		Class:   source.ClassInt,
		Check:   check,
		New:     newFormat,
		Example: example,
		Resync:  markRun,
	})
}

func check(s source.Settings) (problems []setting.Problem) {
	options, _ := s.Options.(Options)
	o := options.JSON
	missing := func(name, problem, fix string) {
		problems = append(problems, setting.Problem{Setting: "json." + name, Problem: problem, Fix: fix})
	}
	if o.ID == "" && !o.Key {
		missing("id", "is missing", "write the JSON pointer to the document's id, such as /id, or set json.key if it is the "+
			"key of a record in Kafka or Kinesis")
	}
	if o.ID != "" && o.Key {
		missing("key", "cannot be used together with json.id: each defines the document's id", "remove one of them")
	}
	if o.Version == "" && s.NoVersion != source.NoVersionArrival && s.NoVersion != source.NoVersionPosition {
		missing("version", "is missing",
			"write the JSON pointer to the version, such as /version, or set noVersion to arrival, or to "+
				"position for records of Kafka or Kinesis")
	}
	if o.Version != "" && s.NoVersion == source.NoVersionPosition {
		missing("version", "cannot be used together with noVersion: position, which defines the version",
			"remove one of them")
	}
	if o.Operation == "" && len(o.DeleteValues) > 0 {
		missing("operation", "is missing although deleteValues has "+strings.Join(o.DeleteValues, ", "),
			"write the JSON pointer to the operation, such as /op, or remove json.deleteValues")
	}
	if o.Operation != "" && len(o.DeleteValues) == 0 {
		missing("deleteValues", "is empty although operation is set: no event would be a delete",
			"list the values that mean delete, or remove json.operation")
	}
	return problems
}

// format has a pointer for each option. The pointer of an option that is not set is empty and not
// used.
type format struct {
	*source.Rules
	key                                      bool // the key of the record is the document's id
	id, version, time, operation, collection source.Pointer
	deleteValues                             []string
}

func newFormat(r *source.Rules) (source.Format, error) {
	options, err := source.OptionsOf[Options](r.Settings)
	if err != nil {
		return nil, err
	}
	o := options.JSON
	s := &format{Rules: r, key: o.Key, deleteValues: o.DeleteValues}
	var errs []error
	for _, p := range []struct {
		to         *source.Pointer
		name, text string
	}{
		{&s.id, "id", o.ID},
		{&s.version, "version", o.Version},
		{&s.time, "time", o.Time},
		{&s.operation, "operation", o.Operation},
		{&s.collection, "collection", o.Collection},
	} {
		if *p.to, err = source.ParsePointer(p.text); err != nil {
			errs = append(errs, fmt.Errorf("read json.%s: %w", p.name, err))
		}
	}
	for _, p := range check(r.Settings) {
		errs = append(errs, fmt.Errorf("%s %s: %s", p.Setting, p.Problem, p.Fix))
	}
	return s, errors.Join(errs...)
}

func (s *format) Decode(b event.Body) (d source.Draft, bad *event.Invalid) {
	tombstone := b.Text == "null" && b.Position != ""
	switch {
	case tombstone && !s.key:
		return d, source.Invalid("value", "the record has no value, so only its key names the deleted document: "+
			"set sources.%s.json.key", s.Name)
	case !tombstone:
		if bad = source.Object(b); bad != nil {
			return d, bad
		}
	}
	root := gjson.Parse(b.Text)
	id, field, bad := s.identity(b, root)
	if bad != nil {
		return d, bad
	}
	collection, bad := source.Optional(s.collection.Text, valueAt(s.collection, root))
	if bad != nil {
		return d, bad
	}
	if d.Doc, bad = s.DocID(collection, field, id); bad != nil {
		if bad.Field == "collection" && s.collection.Text != "" {
			bad.Field = s.collection.Text
		}
		return d, bad
	}
	d.Op, d.Data = event.Put, b.Text
	if tombstone {
		d.Op, d.Data = event.Delete, ""
	} else if slices.Contains(s.deleteValues, operationText(valueAt(s.operation, root))) {
		d.Op = event.Delete
	}
	if d.Time, bad = source.Instant(s.time.Text, valueAt(s.time, root), true); bad != nil {
		return d, bad
	}
	d.Version = source.Version{Field: s.version.Text, Value: valueAt(s.version, root)}
	return d, d.InRun(b)
}

// valueAt returns the value that the pointer of an option names. If the option is not set, it
// returns nothing, and not the whole body, which an empty pointer means.
func valueAt(p source.Pointer, body gjson.Result) gjson.Result {
	if p.Text == "" {
		return gjson.Result{}
	}
	return p.In(body)
}

// identity returns the document's id, and the name of the field that contains the id.
func (s *format) identity(b event.Body, root gjson.Result) (id, field string, bad *event.Invalid) {
	if !s.key {
		id, bad = source.Identity(s.id.Text, s.id.In(root))
		return id, s.id.Text, bad
	}
	if b.Key == "" {
		return "", "key", source.Invalid("key",
			"the message has no key, but json.key uses the key as the id: send records of "+
				"Kafka or Kinesis with a key, by EventBridge Pipes")
	}
	id, bad = source.KeyText("key", source.Key(b.Key))
	return id, "key", bad
}

// markRun marks a body as part of a resync run. It writes the collection into the body, and the run
// into an envelope around the body.
func markRun(s source.Settings, body, run, collection string) (string, error) {
	options, _ := s.Options.(Options)
	if at := options.JSON.Collection; at == "" {
		if err := (source.Change{Collection: collection}).Here(s); err != nil {
			return "", err
		}
	} else if p, err := source.ParsePointer(at); err != nil {
		return "", err
	} else if collection != "" {
		body = p.Put(body, source.Quoted(collection))
	}
	return source.Wrapped(body, run), nil
}

// operationText returns the value that distinguishes a delete from a put. It returns a text without
// quotes, any other value as JSON, and "" for a missing value.
func operationText(v gjson.Result) string {
	if v.Type == gjson.String {
		return v.Str
	}
	return v.Raw
}
