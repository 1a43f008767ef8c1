// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/event"
)

// MetaField is the member that lull adds to each document. With MetaField, an operator can check in
// the search engine which version lull wrote.
const MetaField = "_lull"

// Meta is the content of MetaField.
type Meta struct {
	Version string      `json:"version"`    // the version, as the upstream system wrote it
	Key     string      `json:"order_key"`  // the printed form of the order key
	Fence   event.Fence `json:"fence"`      // the external version in the sink
	Indexed time.Time   `json:"indexed_at"` // UTC, microseconds
}

// Meta returns the metadata that a sink stores together with the op's document.
func (op Op) Meta() Meta {
	return Meta{
		Version: op.Version, Key: op.Key.String(), Fence: op.Fence,
		Indexed: op.At.UTC().Truncate(time.Microsecond),
	}
}

// JSON returns the metadata as JSON text.
func (m Meta) JSON() []byte {
	text, err := json.Marshal(m)
	if err != nil { // a year beyond 9999, which our clocks never show
		m.Indexed = time.Time{}
		text, _ = json.Marshal(m)
	}
	return text
}

// Stored returns the document, with this metadata, in the form in which a Reader returns documents.
func (m Meta) Stored(doc event.DocID, document []byte) Stored {
	return Stored{Doc: doc, Version: m.Version, Key: m.Key, Fence: m.Fence, Indexed: m.Indexed, Document: document}
}

// The classes of a DocumentError. An Outcome's reason begins with its class.
const (
	NotUTF8         = "not_utf8"
	NotJSON         = "not_json"
	NotAnObject     = "not_an_object"
	ReservedField   = "reserved_field"
	TooLarge        = "too_large"
	TooDeep         = "too_deep"
	TooManyFields   = "too_many_fields"
	LongFieldName   = "field_name_too_long"
	MissingDocument = "no_document"
)

// DocumentError says why no sink can ever store a document. A DocumentError never quotes the
// document.
type DocumentError struct {
	Class string // one of the constants above, such as NotJSON
	Field string // the name of the field to blame, "" if no field is to blame
}

// Error returns the reason for an Outcome.
func (e *DocumentError) Error() string { return Reason(e.Class, e.Field) }

// Outcome returns the outcome Rejected, for an op whose document is to blame.
func (e *DocumentError) Outcome() Outcome { return Outcome{Kind: Rejected, Reason: e.Error()} }

// plainField matches a field name that may be printed. Documents can contain any name, so an
// unusual name counts as content.
var plainField = regexp.MustCompile(`^[A-Za-z0-9_.@-]{1,64}$`)

// PlainName reports whether a field's name may be printed, because it looks like a name and not
// like content.
func PlainName(name string) bool { return plainField.MatchString(name) }

// Reason joins a class and the name of a field; an empty name means no field. Reason omits a name
// that might be content of a document.
func Reason(class, field string) string { return Named(class, "field", field) }

// Named joins a class and a name, like Reason, but for another thing than a field. what says what
// is named, such as "column".
func Named(class, what, name string) string {
	if name == "" || !PlainName(name) {
		return class
	}
	return class + ": " + what + " " + name
}

// Plain checks that a document is a JSON object that a sink can store. Plain returns a copy on one
// line, without insignificant space. Every number and string stays as it was, digit for digit.
// Every sink stores this form. If the document is at fault, the error says why; a retry cannot
// help.
func Plain(document []byte) ([]byte, *DocumentError) {
	if len(document) == 0 {
		return nil, &DocumentError{Class: MissingDocument}
	}
	if !utf8.Valid(document) {
		return nil, &DocumentError{Class: NotUTF8}
	}
	b := bytes.NewBuffer(make([]byte, 0, len(document)))
	if err := json.Compact(b, document); err != nil {
		return nil, &DocumentError{Class: NotJSON}
	}
	plain := b.Bytes()
	if plain[0] != '{' {
		return nil, &DocumentError{Class: NotAnObject}
	}
	if _, value := findMeta(plain); value.Exists() {
		return nil, &DocumentError{Class: ReservedField, Field: MetaField}
	}
	return plain, nil
}

// Seal appends a plain document to dst, with its metadata as the first member.
func Seal(dst, plain []byte, m Meta) []byte { return Attach(dst, plain, m.JSON()) }

// Attach does what Seal does, for a sink whose metadata has another form than Meta. meta is JSON.
func Attach(dst, plain, meta []byte) []byte {
	dst = append(dst, `{"`+MetaField+`":`...)
	dst = append(dst, meta...)
	if len(plain) > len("{}") {
		dst = append(dst, ',')
	}
	return append(dst, plain[1:]...)
}

// Unseal splits a stored document into its metadata and the plain document. ok is false if the
// document has no metadata, because lull did not write it.
func Unseal(sealed []byte) (m Meta, plain []byte, ok bool, err error) {
	meta, plain, err := Detach(sealed)
	if err != nil || meta == nil {
		return Meta{}, plain, false, err
	}
	if err := json.Unmarshal(meta, &m); err != nil {
		return Meta{}, nil, false, fmt.Errorf("read %s: %w", MetaField,
			&DocumentError{Class: NotJSON, Field: MetaField})
	}
	m.Indexed = m.Indexed.UTC()
	return m, plain, true, nil
}

// Detach does what Unseal does, for a sink whose metadata has another form than Meta. The returned
// meta is JSON, and nil if the document has no metadata.
func Detach(sealed []byte) (meta, plain []byte, err error) {
	b := bytes.NewBuffer(make([]byte, 0, len(sealed)))
	if err := json.Compact(b, sealed); err != nil || b.Bytes()[0] != '{' {
		return nil, nil, fmt.Errorf("read a sealed document: %w", &DocumentError{Class: NotJSON})
	}
	plain = b.Bytes()
	name, value := findMeta(plain)
	if !value.Exists() {
		return nil, plain, nil
	}
	begin, end := name.Index, value.Index+len(value.Raw)
	switch { // also remove one of the commas before and after the member
	case plain[end] == ',':
		end++
	case plain[begin-1] == ',':
		begin--
	}
	return []byte(value.Raw), slices.Delete(plain, begin, end), nil
}

// findMeta looks for MetaField among the top-level members of a valid object without insignificant
// space. findMeta also finds the name if it is written with escapes.
func findMeta(plain []byte) (name, value gjson.Result) {
	// Most documents contain neither the name nor an escape that could be part of the name.
	if !bytes.Contains(plain, []byte(MetaField)) && !bytes.Contains(plain, []byte(`\u00`)) {
		return name, value
	}
	gjson.ParseBytes(plain).ForEach(func(n, v gjson.Result) bool {
		if n.Str == MetaField {
			name, value = n, v
		}
		return n.Str != MetaField
	})
	return name, value
}
