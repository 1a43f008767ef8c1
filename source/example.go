// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/event"
)

// Example says how the upstream of a kind writes a change. All code that makes trial messages for
// people uses the example, so that the configured source can decode the messages.
type Example struct {
	// Options are the options of the kind with which it decodes the example. Nil means the
	// defaults.
	Options any
	// Class is the class of versions that Options need. Empty means the kind's class.
	Class Class
	// Change is a realistic change of the upstream.
	Change Change
	// Write makes the body of a message, without envelopes. [Format.Decode] under the same settings
	// returns the same change. If that is impossible, the error says which setting, or which field
	// of the change, is the reason. Write is nil if the kind has no example.
	Write func(Settings, Change) (string, error)
}

// Message returns the body of the example, which the kind decodes with Options. It returns "" if
// the kind has no example. It panics if the kind cannot write its own example; package sourcetest
// finds such a kind.
func (k Kind) Message() string {
	if k.Example.Write == nil {
		return ""
	}
	body, err := k.Example.Write(k.ExampleSettings().Complete(), k.Example.Change)
	if err != nil {
		panic(fmt.Sprintf("kind %s cannot write its example: %s", k.Name, err))
	}
	return body
}

// Change is a change of one document, before it has the form of an upstream.
type Change struct {
	// ID is the document's id. Kind s3 puts the bucket before it.
	ID string
	// Collection is the collection of the document. Empty means the source's collection. If the
	// messages of a kind name no collection, the kind refuses any other collection.
	Collection string
	// Version is the version as an upstream writes it; see [NumberedVersion].
	Version string
	Op      event.Operation
	// Time is when the change happened. If it is zero, the message has no time.
	Time time.Time
	// Data is the content of a put, a JSON object. If it is empty, the message has only the content
	// that its form requires.
	Data string
	// Bucket is the bucket of the objects, for the kind s3. If it is empty, the kind uses a bucket
	// for examples.
	Bucket string
}

// ExampleSettings are the settings of a source that decodes the example. Call Complete on them.
func (k Kind) ExampleSettings() Settings {
	return Settings{Kind: k.Name, Class: k.Example.Class, Options: k.Example.Options}
}

// NumberedVersion returns a version of a class for a number: a greater number gives a greater
// version. For the class time, n counts milliseconds since 1970.
func NumberedVersion(c Class, n uint32) string { return numbered(c, int64(n)) }

// VersionAt returns a version of a class for a time: a time that is later by a millisecond or more
// gives a greater version.
func VersionAt(c Class, t time.Time) string { return numbered(c, t.UnixMilli()) }

func numbered(c Class, n int64) string {
	switch c {
	case ClassSeq:
		return fmt.Sprintf("%018X", n)
	case ClassTime:
		return time.UnixMilli(n).UTC().Format("2006-01-02T15:04:05.000Z")
	case ClassLex:
		return fmt.Sprintf("%020d", n)
	case ClassInt, ClassLSN:
	}
	return strconv.FormatInt(n, 10)
}

// Content returns the content of a put as a JSON object, or "{}" if the change has no content. An
// error says why the change cannot be written.
func (c Change) Content() (string, error) {
	switch {
	case c.ID == "":
		return "", errors.New("the change has no id")
	case c.Op != event.Put && c.Op != event.Delete:
		return "", fmt.Errorf("operation %q is unknown: use %s or %s", c.Op, event.Put, event.Delete)
	case c.Data == "" || c.Op == event.Delete:
		return "{}", nil
	case event.Check(c.Data) != nil || !gjson.Parse(c.Data).IsObject():
		return "", errors.New("data is not a JSON object")
	}
	return c.Data, nil
}

// Here returns an error if the messages of a source name no collection, and the change has another
// collection than the source.
func (c Change) Here(s Settings) error {
	if c.Collection != "" && c.Collection != s.Collection {
		return fmt.Errorf("messages of kind %s name no collection: set sources.<name>.collection to %s", s.Kind,
			c.Collection)
	}
	return nil
}

// Quoted returns a text as a JSON string.
func Quoted(text string) string { return string(gjson.AppendJSONString(nil, text)) }

// Scalar returns a text as JSON. If the text is a number of at most 15 digits, which every language
// reads exactly, the result is a number. Otherwise it is a string.
func Scalar(text string) string {
	if digitsOnly(text) && len(text) <= 15 && (text[0] != '0' || text == "0") {
		return text
	}
	return Quoted(text)
}

// Put returns a JSON object in which the pointer names the value, which is also JSON. Put creates
// missing objects along the pointer, and replaces values along the pointer that are not objects.
func (p Pointer) Put(object, value string) string {
	if len(p.Tokens) == 0 {
		return value
	}
	rest := Pointer{Tokens: p.Tokens[1:]}
	members, found := []string(nil), false
	if root := gjson.Parse(object); root.IsObject() {
		for name, v := range root.ForEach {
			text := v.Raw
			if name.Str == p.Tokens[0] {
				text, found = rest.Put(text, value), true
			}
			members = append(members, name.Raw+":"+text)
		}
	}
	if !found {
		members = append(members, Quoted(p.Tokens[0])+":"+rest.Put("", value))
	}
	return "{" + strings.Join(members, ",") + "}"
}
