// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxIDBytes is the length of the longest document id that lull accepts, in bytes (docs/events.md).
const MaxIDBytes = 512

// Collection names a set of documents that live in the same sinks: [a-z0-9][a-z0-9-]{0,31}.
type Collection string

// Validate returns an error that says what is wrong with the name, or nil.
func (c Collection) Validate() error {
	if len(c) == 0 || len(c) > 32 {
		return fmt.Errorf("collection %q: 1 to 32 characters are allowed, got %d", clip(string(c)), len(c))
	}
	if !consists(string(c), lower+digits+"-") || c[0] == '-' {
		return fmt.Errorf("collection %q: only a-z, 0-9 and (not first) - are allowed", clip(string(c)))
	}
	return nil
}

// DocID is the partition key of a row. It is "<collection>#<id>" for the first sink of the
// collection, and "<collection>@<sink>#<id>" for each further sink (ADR 0049). Keys of rows that
// are not documents begin with "!".
type DocID string

// NewDocID checks a collection and an id, and joins them. The ids of events are checked only here.
func NewDocID(c Collection, id string) (DocID, error) {
	if err := checkParts(c, id); err != nil {
		return "", err
	}
	for i, r := range id {
		if Control(r) {
			return "", fmt.Errorf("document id holds the control character %U at byte %d: leave it out", r, i)
		}
	}
	if !utf8.ValidString(id) {
		return "", fmt.Errorf("document id is not valid UTF-8")
	}
	return DocID(string(c) + "#" + id), nil
}

func checkParts(c Collection, id string) error {
	if err := c.Validate(); err != nil {
		return err
	}
	if id == "" {
		return fmt.Errorf("document id is empty")
	}
	if len(id) > MaxIDBytes {
		return fmt.Errorf("document id has %d bytes, at most %d are allowed", len(id), MaxIDBytes)
	}
	return nil
}

// Control reports whether a character controls a terminal, or hides or reorders the text around it.
// Such characters are C0, DEL, C1, separators of lines and paragraphs, and the controls of
// bidirectional text.
func Control(r rune) bool {
	switch {
	case r < 0x20, 0x7f <= r && r <= 0x9f, r == 0x061c, r == 0x200e, r == 0x200f,
		0x2028 <= r && r <= 0x202e, 0x2066 <= r && r <= 0x2069:
		return true
	}
	return false
}

// ParseDocID reads the printed form "<collection>#<id>", or "<collection>@<sink>#<id>", which the
// commands accept as KEY. It accepts control characters, because earlier builds accepted such ids,
// and an operator must still be able to ask for their rows.
func ParseDocID(s string) (DocID, error) {
	place, id, ok := strings.Cut(s, "#")
	if !ok {
		return "", fmt.Errorf("key %q: want <collection>#<id>", clip(s))
	}
	c, sink, added := strings.Cut(place, "@")
	if err := checkParts(Collection(c), id); err != nil {
		return "", err
	}
	if Collection(sink).Validate() != nil && added {
		return "", fmt.Errorf("key %q: want the name of a sink after the @", clip(s))
	}
	return DocID(s), nil
}

// place splits the part before the first # into collection and sink.
func (d DocID) place() (collection, sink string) {
	place, _, _ := strings.Cut(string(d), "#")
	collection, sink, _ = strings.Cut(place, "@")
	return collection, sink
}

// Collection returns the part of the key before the first # or @.
func (d DocID) Collection() Collection {
	c, _ := d.place()
	return Collection(c)
}

// Sink returns the sink that the row is for. It is empty for the first sink of the collection.
func (d DocID) Sink() string {
	_, sink := d.place()
	return sink
}

// Plain returns the key without the sink. Sources, senders and sinks know a document by this key.
func (d DocID) Plain() DocID {
	if c, sink := d.place(); sink != "" {
		return DocID(c + "#" + d.ID())
	}
	return d
}

// In returns the key of the document's row for a sink. An empty sink means the first sink of the
// collection.
func (d DocID) In(sink string) DocID {
	if d = d.Plain(); sink == "" || !d.IsDocument() {
		return d
	}
	return DocID(string(d.Collection()) + "@" + sink + "#" + d.ID())
}

// ID returns the part of the key after the first #. It is the document's id in the sinks.
func (d DocID) ID() string {
	_, id, _ := strings.Cut(string(d), "#")
	return id
}

// IsDocument reports whether this is the key of a document's row, and not of one of lull's own rows
// such as "!health#search".
func (d DocID) IsDocument() bool { return !strings.HasPrefix(string(d), "!") }

func clip(s string) string {
	if len(s) > 64 {
		return s[:64] + "..."
	}
	return s
}
