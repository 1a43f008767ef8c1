// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/internal/seam/queue"
)

// MaxLine bounds one line of an input, in bytes. It is far above SQS's limit, even for a message
// with many JSON escapes. So a message that is too large for SQS is refused because of its size,
// and not because its file looks broken.
const MaxLine = 64 << 20

// maxAfter is the largest after_ms: about thirty years.
const maxAfter = 1e12

// maxAttributes is how many attributes of a message are read. A queue accepts far fewer, and
// refuses the message with that reason.
const maxAttributes = 1000

// Timed is one input message and when to send it, counted from the start.
type Timed struct {
	After time.Duration
	queue.Outgoing
	Where string // the place in the input: "line 3", or a file of a folder; empty if the input has only this message
}

// Valid reports whether a text is JSON that a recursive reader can read safely. gjson's own check
// recurses too: 8 MB of brackets would overflow the stack and end the process. This check refuses a
// text that nests 10,000 deep. Such a text is sent unchanged, and then refused like any body that
// nests deeper than [event.MaxDepth].
func Valid(text []byte) bool { return json.Valid(text) }

// ParseLine reads one message. An object is a timed message if all its keys are after_ms,
// attributes or body. If body is a string, that string is sent; any other value is sent as its JSON
// bytes. Without body the message is empty, and queues refuse it. Any other line, {} too, is sent
// unchanged. The error names the field.
func ParseLine(line []byte) (Timed, error) {
	text := string(line)
	var t Timed
	doc := gjson.Parse(text)
	if !doc.IsObject() || !isTimed(doc) || !Valid(line) {
		t.Body = text
		return t, nil
	}
	if v := doc.Get("after_ms"); v.Exists() {
		if v.Type != gjson.Number || v.Num < 0 || v.Num > maxAfter {
			return t, fmt.Errorf("after_ms: want milliseconds from the start, a number from 0 to %d", int64(maxAfter))
		}
		t.After = time.Duration(v.Num * float64(time.Millisecond))
	}
	if v := doc.Get("attributes"); v.Exists() && v.Type != gjson.Null {
		attrs, err := parseAttributes(v)
		if err != nil {
			return t, err
		}
		t.Attributes = attrs
	}
	switch v := doc.Get("body"); v.Type {
	case gjson.String:
		t.Body = v.Str
	default:
		t.Body = v.Raw
	}
	return t, nil
}

func isTimed(doc gjson.Result) bool {
	timed, any := true, false
	doc.ForEach(func(k, _ gjson.Result) bool {
		switch k.Str {
		case "after_ms", "attributes", "body":
			any = true
		default:
			timed = false
		}
		return timed
	})
	return timed && any
}

// parseAttributes reads {"name": "text"} and SQS's own {"name": {"type": "String", "string":
// "text"}}.
func parseAttributes(v gjson.Result) (map[string]queue.Attribute, error) {
	if !v.IsObject() {
		return nil, fmt.Errorf("attributes: want an object of names and texts")
	}
	out := map[string]queue.Attribute{}
	n, err := 0, error(nil)
	v.ForEach(func(k, a gjson.Result) bool {
		switch {
		case a.Type == gjson.String:
			out[k.Str] = queue.Text(a.Str)
		case a.Type == gjson.Number:
			out[k.Str] = queue.Attribute{Type: "Number", String: a.Raw}
		case a.IsObject():
			var full queue.Attribute
			dec := json.NewDecoder(strings.NewReader(a.Raw))
			dec.DisallowUnknownFields() // otherwise a value with a misspelt name would be empty
			if err = dec.Decode(&full); err != nil || full.Type == "" {
				err = fmt.Errorf("attributes.%s: want a text or {type, string}", k.Str)
			}
			out[k.Str] = full
		default:
			err = fmt.Errorf("attributes.%s: want a text", k.Str)
		}
		if n++; n > maxAttributes {
			err = fmt.Errorf("attributes: there are more than %d, and a queue accepts %d: put the rest into the body",
				maxAttributes, queue.MaxAttributes)
		}
		return err == nil
	})
	return out, err
}

// Input reads messages in order until io.EOF.
type Input interface {
	Next() (Timed, error)
	Close() error
}

// All returns the messages of an input, up to the end of the input or the first error. An error is
// the last element of the sequence.
func All(in Input) iter.Seq2[Timed, error] {
	return func(yield func(Timed, error) bool) {
		for {
			t, err := in.Next()
			if errors.Is(err, io.EOF) || !yield(t, err) || err != nil {
				return
			}
		}
	}
}

// Batches reads an input to its end, and calls send with at most most messages at a time. It stops
// at the first error of the input, of send or of ctx. If the input has an error, the messages
// before the error are sent.
func Batches(ctx context.Context, in Input, most int, send func([]queue.Outgoing) error) error {
	for {
		var batch []queue.Outgoing
		var ended error
		for len(batch) < most && ended == nil {
			var m Timed
			if m, ended = in.Next(); ended == nil {
				batch = append(batch, m.Outgoing)
			}
		}
		if len(batch) > 0 {
			if err := send(batch); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(ended, io.EOF):
			return nil
		case ended != nil:
			return ended
		case ctx.Err() != nil:
			return ctx.Err()
		}
	}
}

// Open opens an input. path names a file of NDJSON, perhaps compressed with gzip. Or it names a
// folder, in which each file *.json has one message. "-" reads from in. A file NAME.json may
// contain one message on several lines.
func Open(path string, in io.Reader) (Input, error) {
	if path == "-" {
		return newLines("standard input", io.NopCloser(in), true), nil
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: name a file of messages or a folder, or - for standard input", err)
	}
	if err != nil {
		return nil, fmt.Errorf("open events: %w", err)
	}
	if info.IsDir() {
		return openFolder(path)
	}
	if info.Mode().IsRegular() && filepath.Ext(path) == ".json" && info.Size() <= MaxLine {
		if text, err := os.ReadFile(path); err == nil && Valid(bytes.TrimPrefix(text, []byte(utf8BOM))) {
			return &wholes{names: []string{path}, read: func(string) ([]byte, error) { return text, nil }}, nil
		}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open events: %w", err)
	}
	if !info.Mode().IsRegular() { // a pipe
		return newLines(path, f, true), nil
	}
	lines, _, err := openLines(path, f, func([]byte) {})
	return lines, err
}

// openLines reads NDJSON, and reports whether the file is compressed with gzip. It calls passed
// with each line that it has read, decompressed and with its line end. These lines together are the
// whole input.
func openLines(name string, f io.ReadCloser, passed func(part []byte)) (in Input, packed bool, err error) {
	r, packed, err := unzipped(f)
	if err != nil {
		return nil, packed, fmt.Errorf("open events: %s: %w", name, errors.Join(err, f.Close()))
	}
	l := newLines(name, r, false)
	l.s.Split(func(data []byte, atEOF bool) (int, []byte, error) {
		n, line, err := bufio.ScanLines(data, atEOF)
		passed(data[:n])
		return n, line, err
	})
	return l, packed, nil
}

// unzipped returns the content of a file, decompressed if it starts like gzip.
func unzipped(f io.ReadCloser) (r io.ReadCloser, packed bool, err error) {
	type file struct {
		io.Reader
		io.Closer
	}
	b := bufio.NewReader(f)
	if head, _ := b.Peek(2); string(head) != "\x1f\x8b" { // RFC 1952; the next read returns the error of Peek again
		return file{b, f}, false, nil
	}
	z, err := gzip.NewReader(b)
	return file{z, f}, true, err
}

// Request returns the input in the body of a request: one message on several lines, or NDJSON.
func Request(body []byte) Input {
	if Valid(body) {
		return &wholes{names: []string{"request"}, read: func(string) ([]byte, error) { return body, nil }}
	}
	return newLines("request", io.NopCloser(bytes.NewReader(body)), false)
}

type lines struct {
	io.Closer
	name string
	s    *bufio.Scanner
	n    int
	slow bool // another program may still be writing the input
}

// utf8BOM is the mark that some editors put at the beginning of a file.
const utf8BOM = "\ufeff"

func newLines(name string, r io.ReadCloser, slow bool) *lines {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, 64<<10), MaxLine)
	return &lines{Closer: r, name: name, s: s, slow: slow}
}

func (l *lines) Next() (Timed, error) {
	for l.s.Scan() {
		l.n++
		line := bytes.TrimSuffix(l.s.Bytes(), []byte("\r"))
		if l.n == 1 {
			line = bytes.TrimPrefix(line, []byte(utf8BOM))
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		t, err := ParseLine(line)
		if err != nil {
			return t, &InputError{fmt.Errorf("%s line %d: %w", l.name, l.n, err)}
		}
		t.Where = fmt.Sprintf("line %d", l.n)
		return t, nil
	}
	if err := l.s.Err(); err != nil {
		if errors.Is(err, bufio.ErrTooLong) {
			return Timed{}, &InputError{fmt.Errorf("%s line %d: longer than %d MiB", l.name, l.n+1, MaxLine>>20)}
		}
		return Timed{}, fmt.Errorf("read %s: %w", l.name, err)
	}
	return Timed{}, io.EOF
}

// wholes reads files that contain one message each.
type wholes struct {
	names   []string
	read    func(name string) ([]byte, error)
	several bool // the folder has more than one file
}

func openFolder(path string) (Input, error) {
	entries, err := os.ReadDir(path) // sorted by name
	if err != nil {
		return nil, fmt.Errorf("open events: %w", err)
	}
	w := &wholes{read: os.ReadFile}
	for _, e := range entries {
		if filepath.Ext(e.Name()) == ".json" && !e.IsDir() {
			w.names = append(w.names, filepath.Join(path, e.Name()))
		}
	}
	if len(w.names) == 0 {
		return nil, fmt.Errorf("open events: folder %s has no *.json", path)
	}
	return w, nil
}

func (w *wholes) Next() (Timed, error) {
	if len(w.names) == 0 {
		return Timed{}, io.EOF
	}
	name := w.names[0]
	w.names = w.names[1:]
	b, err := w.read(name)
	if err != nil {
		return Timed{}, fmt.Errorf("read events: %w", err)
	}
	t, err := ParseLine(bytes.TrimSpace(bytes.TrimPrefix(b, []byte(utf8BOM))))
	if err != nil {
		return t, fmt.Errorf("%s: %w", name, err)
	}
	if len(w.names) > 0 || w.several {
		t.Where, w.several = filepath.Base(name), true
	}
	return t, nil
}

func (w *wholes) Close() error { return nil }
