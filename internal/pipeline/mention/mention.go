// SPDX-License-Identifier: Apache-2.0

// Package mention says whether a message contains a document.
//
// It promises never to answer [Nothing] about a message with an event about the document. That
// holds for a copy for another event of the message, for a dead letter that SQS sent back, and
// for a message in envelopes. A part that cannot be decoded is searched for the document's id.
package mention

import (
	"compress/gzip"
	"encoding/base64"
	"io"
	"maps"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/source"
)

// Answer says whether a message contains a document. The values are ordered: a greater answer needs
// more care before the message is deleted.
type Answer byte

// The answers.
const (
	Nothing Answer = iota
	Unclear        // a part of the message cannot be decoded, and the id is not in that part
	Named          // a part of the message cannot be decoded, and the id is or may be in that part
	Holds          // one of the events in the message is about the document
)

// In says whether a message in the queues of a sink contains a document. The document may belong to
// any sink.
func In(sources *source.Set, sink string, m queue.Message, doc shard.DocID) Answer {
	m, _, unknown := deadletter.Inside(m)
	// the body of the copy has the other events of the message, too
	if _, copied := m.Attributes[queue.AttrEvent]; copied {
		m.Attributes = maps.Clone(m.Attributes)
		delete(m.Attributes, queue.AttrEvent)
	}
	answer, unread := Nothing, false
	if unknown != nil {
		answer, unread = Unclear, true
	}
	for _, r := range sources.At(sink).Decode(m) {
		key := r.Event.Doc
		switch {
		case r.Invalid != nil:
			key = r.Invalid.Doc
		case r.Object != nil: // a notification only names an object, and has no content
			continue
		}
		if key != "" && key.Plain() == doc.Plain() {
			return Holds
		}
		if unread = unread || key == ""; key == "" && r.Invalid != nil {
			answer = Unclear
		}
	}
	// A newer lull may pack a dead letter in a way that this build does not know.
	_, newer := m.Attributes[queue.AttrLetter]
	if unread && newer || (unread || newer) && names(m, doc.ID()) {
		return Named
	}
	return answer
}

// These are bounds of the search for an id in a part that cannot be decoded.
const (
	maxDepth = 6              // how many encodings may surround the id
	minRun   = 16             // the shortest text that is tried as base64
	maxWork  = 16 * (1 << 20) // how many bytes are searched in total
	gzipWork = 1 << 10        // how many bytes of work the start of a decompression counts as
)

// names reports whether the id is in a message, as text or encoded by JSON, URLs, base64 or
// gzip. If the search takes too much work, it reports true.
func names(m queue.Message, id string) bool {
	s := search{id: id, left: maxWork}
	if s.in(m.Body, maxDepth) {
		return true
	}
	for _, a := range m.Attributes {
		if s.in(a.String, maxDepth) || s.in(string(a.Binary), maxDepth) {
			return true
		}
	}
	return false
}

type search struct {
	id   string
	left int
}

func (s *search) in(text string, depth int) bool {
	if s.left -= len(text); s.left < 0 || strings.Contains(text, s.id) {
		return true
	}
	if depth == 0 {
		return false
	}
	for _, plain := range []string{unescaped(text), unquoted(text), s.unquotedForm(text), s.unzipped(text)} {
		if plain != text && s.in(plain, depth-1) {
			return true
		}
	}
	for len(text) >= minRun {
		n := 0
		for n < len(text) && inBase64[text[n]] {
			n++
		}
		run := text[:n]
		if n >= minRun {
			run = standard.Replace(run)
		}
		for from := 0; from < 4 && len(run)-from >= minRun; from++ { // other text may directly precede the base64
			if s.in(unpacked(run[from:]), depth-1) {
				return true
			}
		}
		text = text[min(n+1, len(text)):]
	}
	return false
}

// inBase64 has the characters of base64 in both alphabets, and its line ends.
var inBase64 = func() (in [256]bool) {
	for _, c := range []byte("+/-_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz\r\n") {
		in[c] = true
	}
	return in
}()

// standard converts base64 to one line in the standard alphabet.
var standard = strings.NewReplacer("-", "+", "_", "/", "\r", "", "\n", "")

// unpacked decodes base64 without padding. The last character may be one too many.
func unpacked(run string) string {
	if len(run)%4 == 1 {
		run = run[:len(run)-1]
	}
	out, err := base64.RawStdEncoding.DecodeString(run)
	if err != nil {
		return ""
	}
	return string(out)
}

// unzipped decompresses gzip, as far as the bounds allow. It returns any other text unchanged.
func (s *search) unzipped(text string) string {
	if !strings.HasPrefix(text, "\x1f\x8b") {
		return text
	}
	s.left -= gzipWork
	r, err := gzip.NewReader(strings.NewReader(text))
	if err != nil || s.left < 0 {
		return text
	}
	plain, _ := io.ReadAll(io.LimitReader(r, int64(s.left)+1)) // if the data is broken, use the part before the error
	return string(plain)
}

// unquotedForm is [unquoted] for a text in which a plus may be a space, as in forms and in the
// keys that S3 sends. Only an id with a space needs it.
func (s *search) unquotedForm(text string) string {
	if !strings.Contains(s.id, " ") {
		return text
	}
	return unquoted(strings.ReplaceAll(text, "+", " "))
}

// unquoted decodes the escapes of URLs in a text. All other text stays.
func unquoted(text string) string {
	if !strings.Contains(text, "%") {
		return text
	}
	var b strings.Builder
	b.Grow(len(text))
	for len(text) > 0 {
		at := strings.IndexByte(text, '%')
		if at < 0 || at+3 > len(text) {
			break
		}
		n, err := strconv.ParseUint(text[at+1:at+3], 16, 8)
		if err != nil {
			b.WriteString(text[:at+1])
			text = text[at+1:]
			continue
		}
		b.WriteString(text[:at])
		b.WriteByte(byte(n))
		text = text[at+3:]
	}
	b.WriteString(text)
	return b.String()
}

// unescaped decodes the escapes of JSON in a text, which need not be JSON.
func unescaped(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var b strings.Builder
	b.Grow(len(text))
	for len(text) > 0 {
		at := strings.IndexByte(text, '\\')
		if at < 0 || at+1 == len(text) {
			break
		}
		b.WriteString(text[:at])
		escape := text[at+1]
		text = text[at+2:]
		switch at := strings.IndexByte("bfnrt", escape); {
		case escape == 'u':
			unit, ok := hex4(text)
			if !ok {
				continue
			}
			text = text[4:]
			if utf16.IsSurrogate(unit) && strings.HasPrefix(text, `\u`) {
				if low, ok := hex4(text[2:]); ok {
					unit, text = utf16.DecodeRune(unit, low), text[6:]
				}
			}
			b.WriteRune(unit)
		case at >= 0:
			b.WriteByte("\b\f\n\r\t"[at])
		default:
			b.WriteByte(escape)
		}
	}
	b.WriteString(text)
	return b.String()
}

func hex4(text string) (rune, bool) {
	if len(text) < 4 {
		return 0, false
	}
	n, err := strconv.ParseUint(text[:4], 16, 16)
	return rune(n), err == nil
}
