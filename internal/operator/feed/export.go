// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"

	"github.com/lullhq/lull/internal/seam/queue"
)

// InputError says that an input is wrong: reading it again does not help.
type InputError struct{ Err error }

func (e *InputError) Error() string { return e.Err.Error() }
func (e *InputError) Unwrap() error { return e.Err }

// ErrOther says that an export is not the one that was read before.
var ErrOther error = &InputError{errors.New(
	"the input does not begin with the bytes that were read before: give the same one, or drop the job (lull jobs)",
)}

// Spot is a place in an export. A job stores it.
type Spot struct {
	Messages int    `json:"messages,omitempty"` // number of messages before the place
	Bytes    int64  `json:"bytes,omitempty"`    // number of bytes before the place, decompressed
	Digest   string `json:"digest,omitempty"`   // SHA-256 of these bytes
}

// Export is an input that a job reads. It knows how many messages and bytes were read. It is not
// safe for concurrent use.
type Export struct {
	Input

	size   int64
	spot   Spot
	sum    hash.Hash
	held   []byte // the bytes read after the spot: blank lines, and the line of the next message
	failed error
}

// NewExport returns an export that has not been read yet. f has lines, perhaps compressed with
// gzip. size is the size of the file, or 0 if it is unknown.
func NewExport(name string, size int64, f io.ReadCloser) (e *Export, err error) {
	e = &Export{size: size, sum: sha256.New()}
	in, packed, err := openLines(name, f, func(part []byte) { e.held = append(e.held, part...) })
	if e.Input = in; packed {
		e.size = 0
	}
	return e, err
}

// Spot returns the place after the last message that was read.
func (e *Export) Spot() Spot {
	m := e.spot
	m.Digest = hex.EncodeToString(e.sum.Sum(nil))
	return m
}

// Expected estimates how many messages the whole export has. It is 0 if that is unknown.
func (e *Export) Expected() int {
	return int(float64(e.spot.Messages) * float64(e.size) / float64(max(e.spot.Bytes, 1)))
}

// Batch reads at most n messages. It returns fewer at the end, and before an error. The next call
// returns that error.
func (e *Export) Batch(n int) (batch []queue.Outgoing, err error) {
	for len(batch) < n && e.failed == nil {
		var m Timed
		if m, e.failed = e.Next(); e.failed == nil {
			e.spot.Messages++
			e.spot.Bytes += int64(len(e.held))
			e.sum.Write(e.held)
			e.held = e.held[:0]
			batch = append(batch, m.Outgoing)
		}
	}
	if len(batch) == 0 && !e.Ended() {
		return nil, e.failed
	}
	return batch, nil
}

// Ended reports whether a batch has reached the end of the export.
func (e *Export) Ended() bool { return errors.Is(e.failed, io.EOF) }

// check reads the export up to a spot. It returns ErrOther if the bytes differ from those that were
// read before.
func (e *Export) check(m Spot) error {
	for e.spot.Messages < m.Messages {
		if batch, err := e.Batch(1); err != nil {
			return err
		} else if len(batch) == 0 {
			break
		}
	}
	if m.Messages > 0 && e.Spot() != m {
		return ErrOther
	}
	return nil
}

// Reader reads the export of a job, from any place in it. It is not safe for concurrent use.
type Reader struct {
	// Open opens the export at its beginning. The export must outlive the step that opens it.
	Open func() (*Export, error)

	in *Export
}

// At returns the export at a place. It opens the export again, unless the open export is at that
// place. It returns an [InputError] if the bytes up to the place differ from those that were read
// before.
func (r *Reader) At(m Spot) (*Export, error) {
	if r.in == nil || r.in.spot.Messages != m.Messages || r.in.failed != nil && !r.in.Ended() {
		if err := r.Close(); err != nil {
			return nil, err
		}
		in, err := r.Open()
		if err != nil {
			return nil, err
		}
		r.in = in
	}
	if err := r.in.check(m); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r.in, nil
}

// Close closes the export, if it is open. At opens it again.
func (r *Reader) Close() error {
	if r.in == nil {
		return nil
	}
	in := r.in
	r.in = nil
	return in.Close()
}
