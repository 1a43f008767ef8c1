// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/queue"
)

// Bodies stores messages as objects below one prefix. The type Bodies is safe for concurrent use.
type Bodies struct {
	bucket *Bucket
	prefix string
}

// NewBodies returns the messages below a prefix of a bucket. The prefix is DeadPrefix or
// SchedulePrefix.
func NewBodies(b *Bucket, prefix string) *Bodies { return &Bodies{bucket: b, prefix: prefix} }

// bodySchema is the newest schema of an object that this code can read.
const bodySchema = 1

// head is the first line of an object. The unchanged body follows this line.
type head struct {
	Schema     int                  `json:"schema"`
	Attributes map[string]attribute `json:"attributes,omitempty"`
}

// attribute is the JSON form of a message attribute. A string is in Text if it is valid UTF-8,
// otherwise in Bytes.
type attribute struct {
	Type   string `json:"type"`
	Text   string `json:"text,omitempty"`
	Bytes  []byte `json:"bytes,omitempty"`
	Binary []byte `json:"binary,omitempty"`
}

// encodeBody returns the object for a message.
func encodeBody(body string, attrs map[string]queue.Attribute) ([]byte, error) {
	h := head{Schema: bodySchema, Attributes: make(map[string]attribute, len(attrs))}
	for name, a := range attrs {
		out := attribute{Type: a.Type, Binary: a.Binary}
		if utf8.ValidString(a.String) {
			out.Text = a.String
		} else {
			out.Bytes = []byte(a.String)
		}
		h.Attributes[name] = out
	}
	line, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("write attributes: %w", err)
	}
	out := make([]byte, 0, len(line)+1+len(body))
	return append(append(append(out, line...), '\n'), body...), nil
}

// decodeBody returns the message in an object that encodeBody made.
func decodeBody(b []byte) (string, map[string]queue.Attribute, error) {
	line, body, ok := bytes.Cut(b, []byte{'\n'})
	var h head
	if !ok {
		return "", nil, errors.New("the object is not one of our messages")
	}
	if err := json.Unmarshal(line, &h); err != nil {
		return "", nil, errors.New("the object is not one of our messages: its first line is not readable")
	}
	if h.Schema < 1 || h.Schema > bodySchema {
		return "", nil, fmt.Errorf("the object has schema %d, this version reads %d", h.Schema, bodySchema)
	}
	var attrs map[string]queue.Attribute
	if len(h.Attributes) > 0 {
		attrs = make(map[string]queue.Attribute, len(h.Attributes))
	}
	for name, a := range h.Attributes {
		out := queue.Attribute{Type: a.Type, String: a.Text, Binary: a.Binary}
		if len(a.Bytes) > 0 {
			out.String = string(a.Bytes)
		}
		attrs[name] = out
	}
	return string(body), attrs, nil
}

func (s *Bodies) key(id string) (string, error) {
	if id == "" || strings.Contains(id, "/") {
		return "", backoff.Permanent(fmt.Errorf("id %q names no message", id))
	}
	return s.prefix + id, nil
}

// Put stores a message under an id, and replaces an existing message.
func (s *Bodies) Put(ctx context.Context, id, body string, attrs map[string]queue.Attribute) error {
	key, err := s.key(id)
	if err != nil {
		return err
	}
	b, err := encodeBody(body, attrs)
	if err != nil {
		return backoff.Permanent(err)
	}
	return s.bucket.put(ctx, key, b)
}

// Get returns the message, or false if there is none.
func (s *Bodies) Get(ctx context.Context, id string) (body string, attrs map[string]queue.Attribute, found bool,
	err error,
) {
	key, err := s.key(id)
	if err != nil {
		return "", nil, false, err
	}
	b, err := s.bucket.get(ctx, s.bucket.name, key, maxObject)
	if errors.Is(err, errMissing) {
		return "", nil, false, nil
	}
	if err != nil {
		return "", nil, false, err
	}
	body, attrs, err = decodeBody(b)
	if err != nil {
		return "", nil, false, backoff.Permanent(fmt.Errorf("read %s: %w", key, err))
	}
	return body, attrs, true, nil
}

// Delete removes the message. Deleting a missing message succeeds.
func (s *Bodies) Delete(ctx context.Context, id string) error {
	key, err := s.key(id)
	if err != nil {
		return err
	}
	return s.bucket.delete(ctx, key)
}
