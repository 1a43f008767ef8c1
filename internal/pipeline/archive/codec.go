// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/lullhq/lull/internal/seam/queue"
)

// Bounds of an unpacked object. A batch has at most 10,000 messages and 6 MB. JSON writes some
// bytes as six.
const (
	MaxBytes    = 64 << 20
	MaxMessages = 10_000
)

// schema is the newest schema of an object that this code understands.
const schema = 1

// head is the first line of an object.
type head struct {
	Schema int `json:"schema"`
}

// line is a message in an object. A text that is not UTF-8 is stored as bytes, because JSON cannot
// hold such a text.
type line struct {
	ID         string               `json:"id"`
	Sent       time.Time            `json:"sent"`
	Attributes map[string]attribute `json:"attributes,omitempty"`
	Body       string               `json:"body,omitempty"`
	BodyBytes  []byte               `json:"bodyBytes,omitempty"`
}

// attribute is a message attribute in an object.
type attribute struct {
	Type   string `json:"type"`
	Text   string `json:"text,omitempty"`
	Bytes  []byte `json:"bytes,omitempty"`
	Binary []byte `json:"binary,omitempty"`
}

// textOrBytes returns s as text if s is UTF-8, and otherwise as bytes.
func textOrBytes(s string) (text string, raw []byte) {
	if utf8.ValidString(s) {
		return s, nil
	}
	return "", []byte(s)
}

// Encode packs messages, without the fields that belong to one receive. Equal messages give equal
// bytes.
func Encode(msgs []queue.Message) ([]byte, error) {
	var out bytes.Buffer
	// Speed matters, because receive waits for the packing, with a third of a core.
	zip, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err != nil {
		return nil, fmt.Errorf("pack the archive: %w", err)
	}
	lines := json.NewEncoder(zip)
	lines.SetEscapeHTML(false)
	err = lines.Encode(head{schema})
	for i := 0; i < len(msgs) && err == nil; i++ {
		m := &msgs[i]
		l := line{ID: m.ID, Sent: m.Sent.UTC()}
		l.Body, l.BodyBytes = textOrBytes(m.Body)
		if len(m.Attributes) > 0 {
			l.Attributes = make(map[string]attribute, len(m.Attributes))
		}
		for name, a := range m.Attributes {
			at := attribute{Type: a.Type, Binary: a.Binary}
			at.Text, at.Bytes = textOrBytes(a.String)
			l.Attributes[name] = at
		}
		err = lines.Encode(l)
	}
	if err = errors.Join(err, zip.Close()); err != nil {
		return nil, fmt.Errorf("pack the archive: %w", err)
	}
	return out.Bytes(), nil
}

// Decode unpacks an object into the messages, as they were in their queue. An error says that the
// bytes are not a whole object, or that newer code wrote them.
func Decode(object []byte) ([]queue.Message, error) {
	zip, err := gzip.NewReader(bytes.NewReader(object))
	if err != nil {
		return nil, fmt.Errorf("unpack the archive: %w", err)
	}
	left := &io.LimitedReader{R: zip, N: MaxBytes + 1}
	lines := json.NewDecoder(left)
	var h head
	if err := next(lines, left, &h); err != nil {
		return nil, err
	}
	if h.Schema < 1 || h.Schema > schema {
		return nil, fmt.Errorf("unpack the archive: the object has schema %d, this version reads %d", h.Schema, schema)
	}
	var msgs []queue.Message
	for {
		var l line
		err := next(lines, left, &l)
		if errors.Is(err, io.EOF) {
			return msgs, nil
		}
		if err != nil {
			return nil, err
		}
		if len(msgs) == MaxMessages {
			return nil, fmt.Errorf("unpack the archive: more than %d messages", MaxMessages)
		}
		msgs = append(msgs, l.message())
	}
}

// next reads a line. At the end of a whole object, the error is io.EOF.
func next(lines *json.Decoder, left *io.LimitedReader, into any) error {
	err := lines.Decode(into)
	switch {
	case err != nil && left.N == 0:
		return fmt.Errorf("unpack the archive: more than %d bytes", MaxBytes)
	case err == nil, errors.Is(err, io.EOF):
		return err
	}
	return fmt.Errorf("unpack the archive: %w", err)
}

// message returns the message of the line.
func (l *line) message() queue.Message {
	m := queue.Message{ID: l.ID, Sent: l.Sent, Body: l.Body, ReceiveCount: 1}
	if len(l.BodyBytes) > 0 {
		m.Body = string(l.BodyBytes)
	}
	if len(l.Attributes) > 0 {
		m.Attributes = make(map[string]queue.Attribute, len(l.Attributes))
	}
	for name, a := range l.Attributes {
		at := queue.Attribute{Type: a.Type, String: a.Text, Binary: a.Binary}
		if len(a.Bytes) > 0 {
			at.String = string(a.Bytes)
		}
		m.Attributes[name] = at
	}
	return m
}
