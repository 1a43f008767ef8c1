// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// Open opens an object, from the byte from on. If etag is given, Open opens only an object with
// that entity tag. It fails with [ErrGone], [ErrReplaced] or [ErrRefused], or with an error that
// may be temporary.
type Open func(ctx context.Context, bucket, key, etag string, from int64) (io.ReadCloser, error)

// ErrRefused says that an object can never be opened.
var ErrRefused = errors.New("the object cannot be opened")

// ErrGone says that the object does not exist.
var ErrGone = errors.New("the object is not there")

// ErrReplaced says that another object has replaced the object.
var ErrReplaced = errors.New("another object is in its place")

// errTooMuch says that an object has more text than the settings allow.
var errTooMuch = errors.New("the text of the object is longer than allowed")

// Final reports whether the next try of [Open] or [Read] will fail with the same error.
func Final(err error) bool {
	return errors.Is(err, errCorrupt) || errors.Is(err, errTooMuch) || errors.Is(err, ErrGone) ||
		errors.Is(err, ErrRefused)
}

// Line is a line of an object that becomes a message, if the queue accepts the line.
type Line struct {
	Number int64 // number of the line, from 1
	Offset int64 // offset of the line's first byte in the text
	Text   string
}

// Limits bound what one call of Read does.
type Limits struct {
	// Lines is the number of messages after which Read stops.
	Lines int64
	// Stop is called every few kilobytes. If it returns true, the slice ends.
	Stop func() bool
	// MaxLine is the longest line that may be a message, in bytes. MaxText bounds the text of an
	// object.
	MaxLine int
	MaxText int64
}

// Lines are sent in batches. A batch has at most this many lines and bytes, but at least one line.
const (
	batchLines = 320
	batchBytes = 1 << 20
)

// Send sends lines. It returns the lines that can never be messages, by their index, with the
// reason. After an error the result of all lines is unknown.
type Send func([]Line) (bad map[int]string, err error)

// Read continues to read an object. The reader in gives the object from the byte p.At.From on.
// Every line becomes a message, or a fault that is counted. Read returns how far it read: to the
// end of a line, or into a line that is too long. Everything before that place was sent. Even if
// there is an error, the result may be further than p.
func Read(in io.Reader, p Progress, l Limits, send Send) (Progress, error) {
	r := reader{Limits: l, send: send, p: p, safe: p}
	if p.Text > l.MaxText {
		return p, fmt.Errorf("%w: %d bytes", errTooMuch, l.MaxText)
	}
	s, err := open(in, p.At)
	for enough := false; err == nil && !enough; {
		var text []byte
		if text, err = s.next(); err == nil {
			enough, err = r.chunk(s, text)
		}
	}
	if errors.Is(err, io.EOF) {
		err = r.end()
	}
	if r.failed != nil || r.flush() != nil {
		return p, r.failed
	}
	r.safe.Sent, r.safe.Faults, r.safe.First = r.p.Sent, r.p.Faults, r.p.First // flush has changed these counts
	return r.safe, err
}

// reader is the state of one call of Read.
type reader struct {
	Limits
	send     Send
	p        Progress // Text is the offset of the current line
	safe     Progress // the last place from which reading can continue
	taken    int64    // number of lines for messages in this call
	moved    bool     // safe is further than the place where this call began
	stopping bool
	part     []byte // the start of a line without its end
	hollow   int    // number of empty gzip blocks and members since the start of the line in part
	batch    []Line
	failed   error // error of send, after which the result of the lines is unknown
	bytes    int
}

// maxHollow bounds the number of empty gzip blocks and members within one line.
const maxHollow = 1000

// chunk reads the lines of a chunk and reports whether the slice is complete.
func (r *reader) chunk(s stream, text []byte) (enough bool, err error) {
	from, place := 0, -1
	switch {
	case r.part == nil:
		if r.hollow = 0; len(text) == 0 {
			place = 0 // this part of the object has no text
		}
	case len(text) == 0:
		if r.hollow++; r.hollow > maxHollow {
			return true, corrupt("too much without text lies within a line")
		}
	}
	for !enough {
		n := bytes.IndexByte(text[from:], '\n')
		if n < 0 {
			break
		}
		if err := r.line(text[from:from+n], 1); err != nil {
			return true, err
		}
		from += n + 1
		place = from
		enough = r.stopping || r.taken >= r.Lines
	}
	if !enough {
		r.keep(text[from:])
		r.stopping = r.Stop()
		enough = r.stopping && (r.part == nil || r.moved)
	}
	if r.p.Long != nil { // within a skipped line, reading can continue anywhere
		place = len(text)
	}
	if place >= 0 {
		r.safe, r.moved = r.p, true
		r.safe.At = s.mark(place)
	}
	if r.p.Text > r.MaxText {
		err = fmt.Errorf("%w: %d bytes", errTooMuch, r.MaxText)
	}
	return enough, err
}

// bom is the byte order mark. It may precede the first line, or any line if files were joined.
var bom = []byte("\ufeff")

// keep stores the start of a line, unless the line is already too long for a message.
func (r *reader) keep(text []byte) {
	if r.p.Long == nil {
		if len(text) > 0 {
			r.part = append(r.part, text...)
		}
		if len(r.part) <= len(bom)+r.MaxLine+len("\r") {
			return
		}
		r.p.Long = &Fault{r.p.Lines + 1, r.p.Text, r.tooLong()}
		text, r.part = r.part, nil
	}
	r.p.Text += int64(len(text))
}

func (r *reader) tooLong() string {
	return fmt.Sprintf("has more than %d bytes, the most that a message may have", r.MaxLine)
}

// line handles a line, given its rest. behind is the number of bytes of the line end after it.
func (r *reader) line(rest []byte, behind int64) error {
	whole := rest
	if r.part != nil {
		whole = append(r.part, rest...)
		r.part = nil
	}
	if bytes.HasPrefix(whole, bom) {
		whole = whole[len(bom):]
		r.p.Text += int64(len(bom))
	}
	r.p.Lines++
	f := Fault{Line: r.p.Lines, Offset: r.p.Text}
	r.p.Text += int64(len(whole)) + behind
	text := bytes.TrimSpace(whole)
	switch {
	case r.p.Long != nil:
		f, r.p.Long = *r.p.Long, nil
	case len(text) == 0:
		r.p.Blank++
		return nil
	case len(text) > r.MaxLine:
		f.Why = r.tooLong()
	case text[0] != '{' || text[len(text)-1] != '}':
		f.Why = "is not a JSON object"
	case !utf8.Valid(text):
		f.Why = "is not valid UTF-8"
	default:
		return r.take(Line{f.Line, f.Offset, string(text)})
	}
	r.p.fault(f)
	return nil
}

func (r *reader) take(l Line) error {
	r.taken++
	if len(r.batch) == batchLines || len(r.batch) > 0 && r.bytes+len(l.Text) > batchBytes {
		if err := r.flush(); err != nil {
			return err
		}
	}
	r.batch, r.bytes = append(r.batch, l), r.bytes+len(l.Text)
	return nil
}

// flush sends the batch.
func (r *reader) flush() error {
	if len(r.batch) == 0 {
		return nil
	}
	var bad map[int]string
	if bad, r.failed = r.send(r.batch); r.failed != nil {
		return r.failed
	}
	for i, l := range r.batch {
		if why, refused := bad[i]; refused {
			r.p.fault(Fault{l.Number, l.Offset, why})
		} else {
			r.p.Sent++
		}
	}
	r.batch, r.bytes = r.batch[:0], 0
	return nil
}

// end handles the last line, which may have no line end.
func (r *reader) end() error {
	if r.part != nil || r.p.Long != nil {
		if err := r.line(nil, 0); err != nil {
			return err
		}
	}
	r.p.Done = true
	r.safe = r.p
	r.safe.At = Position{}
	return nil
}
