// SPDX-License-Identifier: Apache-2.0

package deadletter

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

// AttrLetter holds the facts of a dead letter, see [queue.AttrLetter].
const AttrLetter = queue.AttrLetter

// AttrBody is the attribute that holds the packed body of a dead letter that is too large
// otherwise. An attribute can hold bytes, and a body only text, which is longer than the bytes that
// it encodes.
const AttrBody = "lull-body"

// SchemaVersion is the newest schema of AttrLetter that this code understands. Only a dead letter
// with AttrBody has schema 2. A build that knows only schema 1 leaves such a dead letter in the
// dead-letter queue. But SQS's own redrive sends the dead letter to receive, and receive of such a
// build reads its body as an event.
const (
	SchemaVersion = 2
	schemaText    = 1
)

// maxVisible is how many of the original attributes stay attributes of the message. SQS accepts ten
// attributes, and up to three are lull's own.
const maxVisible = queue.MaxAttributes - 3

// Errors of Read.
var (
	// ErrNoLetter says that the message is not a dead letter: SQS itself moved the message, or
	// another sender sent it.
	ErrNoLetter = errors.New("message is not a dead letter")
	// ErrSchema says that a newer lull wrote the dead letter. Such a dead letter stays in its
	// queue.
	ErrSchema = errors.New("dead letter has a newer schema")
)

// wire is AttrLetter as JSON. Times are microseconds since 1970, 0 for none.
type wire struct {
	Schema    int          `json:"schema"`
	Reason    Reason       `json:"reason"`
	Detail    string       `json:"detail,omitempty"`
	Doc       string       `json:"doc,omitempty"`
	DocBytes  []byte       `json:"docBytes,omitempty"` // instead of Doc, if Doc is not valid text
	Key       string       `json:"key,omitempty"`      // the order key as text
	KeyBytes  []byte       `json:"keyBytes,omitempty"` // instead of Key, if the text cannot be parsed
	Event     int          `json:"event,omitempty"`
	Sink      string       `json:"sink,omitempty"`
	Lane      string       `json:"lane,omitempty"`
	Message   string       `json:"message,omitempty"`
	FirstSent shard.Micros `json:"firstSent,omitempty"`
	Sent      shard.Micros `json:"sent,omitempty"`
	Died      shard.Micros `json:"died,omitempty"`
	Refusals  int64        `json:"refusals,omitempty"`
	First     string       `json:"firstError,omitempty"`
	Last      string       `json:"lastError,omitempty"`
	Encoding  string       `json:"encoding,omitempty"` // the encoding of the body; empty if the body is unchanged

	// Attributes are the original attributes for which SQS's limit leaves no space.
	Attributes map[string]wireAttribute `json:"attributes,omitempty"`
}

// wireAttribute keeps strings as bytes, because an attribute's string may not be valid text.
type wireAttribute struct {
	Type   string `json:"type"`
	String []byte `json:"string,omitempty"`
	Binary []byte `json:"binary,omitempty"`
}

// Message packs the dead letter for the dead-letter queue. Body and attributes are the original
// ones. If SQS has no space for an attribute, AttrLetter holds it. If the body leaves no space for
// the facts, the body is packed, and AttrLetter says so. The error is queue.ErrTooLarge if the body
// is too large even when packed. Such a message stays in its own queue, and SQS moves it because of
// its receive count.
func (l Letter) Message() (queue.Outgoing, error) {
	w := wire{
		Schema: schemaText, Reason: l.Reason, Detail: cut(l.Detail), Event: l.Event, Sink: l.Sink, Lane: l.Lane,
		Message:   l.MessageID,
		FirstSent: shard.MicrosOf(l.FirstSent), Sent: shard.MicrosOf(l.Sent), Died: shard.MicrosOf(l.Died),
		Refusals: l.Refusals, First: cut(l.FirstError), Last: cut(l.LastError),
	}
	if doc := string(l.Doc); utf8.ValidString(doc) {
		w.Doc = doc
	} else {
		w.DocBytes = []byte(doc)
	}
	if printed := l.Key.String(); readsBack(printed, l.Key) {
		w.Key = printed
	} else {
		w.KeyBytes = []byte(l.Key)
	}
	visible, hidden := split(l.Attributes)
	w.Attributes = hidden
	n := 0
	var packed []byte
	for _, w.Encoding = range []string{"", encodingGzip, encodingBytes} {
		var err error
		switch w.Encoding {
		case encodingGzip:
			packed, err = pack(l.Body)
		case encodingBytes:
			w.Schema = SchemaVersion
		}
		if err != nil {
			return queue.Outgoing{}, fmt.Errorf("pack the body of a dead letter: %w", err)
		}
		out, err := w.message(l, visible, packed)
		if err != nil {
			return queue.Outgoing{}, err
		}
		if n = queue.Bytes(out.Body, out.Attributes); n <= queue.MaxBytes {
			return out, nil
		}
	}
	return queue.Outgoing{}, fmt.Errorf("dead letter of %d bytes: %w", n, queue.ErrTooLarge)
}

// message returns the SQS message for w. packed is the packed body, if w.Encoding needs one.
func (w wire) message(l Letter, visible map[string]queue.Attribute, packed []byte) (queue.Outgoing, error) {
	facts, err := json.Marshal(w)
	if err != nil {
		return queue.Outgoing{}, fmt.Errorf("write the facts of a dead letter: %w", err)
	}
	out := queue.Outgoing{Body: l.Body, Attributes: queue.With(visible, AttrLetter, queue.Text(ascii(facts)))}
	out.Attributes[queue.AttrFirstSent] = queue.FirstSent(l.FirstSent)
	switch w.Encoding {
	case encodingGzip:
		out.Body = base64.StdEncoding.EncodeToString(packed)
	case encodingBytes:
		out.Body = "packed, see " + AttrBody
		out.Attributes[AttrBody] = queue.Attribute{Type: "Binary", Binary: packed}
	}
	return out, nil
}

// split divides the original attributes into those that stay attributes of the message and those
// that AttrLetter holds. AttrLetter gets the smallest ones, because bytes take a third more space
// there. AttrLetter also gets the original lull-first-sent and lull-body, because the dead letter's
// message has its own attributes of these names.
func split(attrs map[string]queue.Attribute) (visible map[string]queue.Attribute, hidden map[string]wireAttribute) {
	visible = make(map[string]queue.Attribute, len(attrs))
	var names []string
	inside := func(name string, a queue.Attribute) {
		if hidden == nil {
			hidden = map[string]wireAttribute{}
		}
		hidden[name] = wireAttribute{Type: a.Type, String: []byte(a.String), Binary: a.Binary}
	}
	for name, a := range attrs {
		switch name {
		case AttrLetter: // left over from an earlier dead letter, or forged
		case queue.AttrFirstSent, AttrBody:
			inside(name, a)
		default:
			visible[name] = a
			names = append(names, name)
		}
	}
	if len(names) <= maxVisible {
		return visible, hidden
	}
	size := func(name string) int { return queue.Bytes(name, map[string]queue.Attribute{"": attrs[name]}) }
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(size(a)-size(b), cmp.Compare(a, b)) })
	for _, name := range names[:len(names)-maxVisible] {
		inside(name, visible[name])
		delete(visible, name)
	}
	return visible, hidden
}

// Read returns the dead letter that a message holds. The error is ErrNoLetter if the message is not
// a dead letter, and ErrSchema if a newer lull wrote it. Any other error says that AttrLetter is
// broken. Then the caller has to judge the message by its own content.
func Read(m queue.Message) (Letter, error) {
	a, ok := m.Attributes[AttrLetter]
	if !ok || m.MovedFrom != "" {
		return Letter{}, ErrNoLetter
	}
	var version struct {
		Schema int `json:"schema"`
	}
	if err := json.Unmarshal([]byte(a.String), &version); err != nil {
		return Letter{}, fmt.Errorf("read the facts of a dead letter: %w", err)
	}
	switch {
	case version.Schema > SchemaVersion:
		return Letter{}, ErrSchema
	case version.Schema < 1:
		return Letter{}, fmt.Errorf("read the facts of a dead letter: schema %d", version.Schema)
	}
	var w wire
	if err := json.Unmarshal([]byte(a.String), &w); err != nil {
		return Letter{}, fmt.Errorf("read the facts of a dead letter: %w", err)
	}
	return w.letter(m)
}

// Inside returns the message inside a dead letter. A caller that does not believe the facts judges
// this message by its own content. SQS's own redrive brings dead letters to the queues of events.
// If a row marks the version of such a dead letter as dead, the dead letter may not be stored yet.
//
// says is the reason in the facts, or [RejectedBySink] if the facts cannot be read. It is empty if
// the message is not a dead letter. The error is ErrSchema if a newer lull wrote the facts. If lull
// sent such a message, leave it in its queue: this code cannot know where its body is.
func Inside(m queue.Message) (inside queue.Message, says Reason, err error) {
	if _, ok := m.Attributes[AttrLetter]; !ok {
		return m, "", nil
	}
	sent := m
	sent.MovedFrom = "" // a dead letter that SQS moved is still a dead letter
	l, broken := Read(sent)
	if errors.Is(broken, ErrSchema) {
		return m, RejectedBySink, ErrSchema
	}
	if broken != nil {
		return m, RejectedBySink, nil //nolint:nilerr // the caller judges the message by its own content
	}
	first, marked := m.Attributes[queue.AttrFirstSent]
	if m.Body, m.Attributes = l.Body, l.Attributes; marked { // the dead letter's own attribute has the earlier time
		m.Attributes = queue.With(m.Attributes, queue.AttrFirstSent, first)
	}
	return m, l.Reason, nil
}

// letter returns the dead letter whose facts are w and whose message is m.
func (w wire) letter(m queue.Message) (Letter, error) {
	if !w.Reason.Known() {
		return Letter{}, fmt.Errorf("read the facts of a dead letter: reason %q is unknown", cut(string(w.Reason)))
	}
	l := Letter{
		Facts: Facts{
			Reason: w.Reason, Detail: cut(w.Detail), Doc: shard.DocID(w.Doc), Event: w.Event, Sink: w.Sink,
			Lane: w.Lane, MessageID: w.Message,
			FirstSent: w.FirstSent.Time(), Sent: w.Sent.Time(), Died: w.Died.Time(), State: Parked,
			Refusals: w.Refusals, FirstError: cut(w.First), LastError: cut(w.Last),
		},
		Body: m.Body,
	}
	if len(w.DocBytes) > 0 {
		l.Doc = shard.DocID(w.DocBytes)
	}
	var err error
	switch {
	case w.Key != "":
		if l.Key, err = shard.ParseOrderKey(w.Key); err != nil {
			return Letter{}, fmt.Errorf("read the facts of a dead letter: %w", err)
		}
	case len(w.KeyBytes) > 0:
		l.Key = shard.OrderKey(w.KeyBytes)
	}
	switch w.Encoding {
	case "":
	case encodingGzip:
		l.Body, err = unpack(base64.NewDecoder(base64.StdEncoding, strings.NewReader(m.Body)))
	case encodingBytes:
		l.Body, err = unpack(bytes.NewReader(m.Attributes[AttrBody].Binary))
	default:
		return Letter{}, fmt.Errorf("unpack the body of a dead letter: encoding %q is unknown", cut(w.Encoding))
	}
	if err != nil {
		return Letter{}, fmt.Errorf("unpack the body of a dead letter: %w", err)
	}
	for name, a := range m.Attributes {
		ours := name == AttrLetter || name == queue.AttrFirstSent || name == AttrBody && w.Encoding == encodingBytes
		if !ours {
			l.put(name, a)
		}
	}
	for name, a := range w.Attributes {
		if name != AttrLetter {
			l.put(name, queue.Attribute{Type: a.Type, String: string(a.String), Binary: a.Binary})
		}
	}
	if l.ID = ID(l.Doc, l.Key, ""); l.ID == "" {
		l.ID = Hash(l.Body, l.Attributes)
	}
	return l, nil
}

// put sets an attribute of the original message.
func (l *Letter) put(name string, a queue.Attribute) {
	if l.Attributes == nil {
		l.Attributes = map[string]queue.Attribute{}
	}
	l.Attributes[name] = a
}

// readsBack reports whether the text of an order key parses to the same key.
func readsBack(printed string, k shard.OrderKey) bool {
	if k == "" {
		return true
	}
	back, err := shard.ParseOrderKey(printed)
	return err == nil && back == k
}
