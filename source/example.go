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

// Example says how the upstream of a kind writes a change. All code that makes messages for people
// to try uses it, so that the configured source can decode them.
type Example struct {
	// Options are options of the kind that decode the example. Nil means that the defaults do.
	Options any
	// Class is the class of versions that Options need. Empty means the kind's class.
	Class Class
	// Change is a change as a real upstream could send it.
	Change Change
	// Write makes the body of a message, without envelopes. [Format.Decode] under the same settings
	// returns the same change. An error says which setting, or which field of the change, makes
	// that impossible. Nil means that the kind has no example.
	Write func(Settings, Change) (string, error)
}

// Message is the body of the example, which the kind decodes with Options. It is empty where the
// kind has no example. It panics where the kind contradicts itself, which sourcetest finds.
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
	// Collection is where the document belongs; empty means the source's collection. A kind whose
	// messages name no collection refuses another one.
	Collection string
	// Version is the version as an upstream writes it; see [NumberedVersion].
	Version string
	Op      event.Operation
	// Time is when the change happened; the zero time is left out.
	Time time.Time
	// Data is a JSON object, the content of a put. Empty means no content beyond what the form needs.
	Data string
	// Bucket is where the objects of the kind s3 are. Empty means the kind's example.
	Bucket string
}

// ExampleSettings are the settings of a source that decodes the example. Call Complete on them.
func (k Kind) ExampleSettings() Settings {
	return Settings{Kind: k.Name, Class: k.Example.Class, Options: k.Example.Options}
}

// NumberedVersion is a version of a class: a greater number gives a greater version. For the class
// time n counts milliseconds since 1970.
func NumberedVersion(c Class, n uint32) string { return numbered(c, int64(n)) }

// VersionAt is a version of a class that grows with time, by the millisecond.
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

// Content is the content of a put as a JSON object: "{}" where it has none. An error says that the
// change cannot be written.
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

// Here says why the change cannot be of a source whose messages name no collection, or nil.
func (c Change) Here(s Settings) error {
	if c.Collection != "" && c.Collection != s.Collection {
		return fmt.Errorf("messages of kind %s name no collection: set sources.<name>.collection to %s", s.Kind,
			c.Collection)
	}
	return nil
}

// Quoted is a text in JSON.
func Quoted(text string) string { return string(gjson.AppendJSONString(nil, text)) }

// Scalar is a text in JSON: a number where it is one of up to 15 digits, which every language
// reads exactly.
func Scalar(text string) string {
	if digitsOnly(text) && len(text) <= 15 && (text[0] != '0' || text == "0") {
		return text
	}
	return Quoted(text)
}

// Put returns a JSON object with a value, in JSON, at the place of the pointer. It creates missing
// members on the way, and replaces values on the way that are not objects.
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
