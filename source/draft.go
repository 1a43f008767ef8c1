// SPDX-License-Identifier: Apache-2.0

package source

import (
	"crypto/sha256"
	"hash"
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

// Draft is the content of a body as a format reads it. lull makes the order key from epoch,
// Version, Run, Time and the digest of Op with Data or Ref. So no format can break the order.
type Draft struct {
	Doc     event.DocID
	Op      event.Operation
	Version Version
	// Run is the resync run, which makes an equal version newer once for each run. Resync says that
	// the event belongs to a resync, with or without a run.
	Run    event.Run
	Resync bool
	// Time is when the change happened, and NotBefore is the earliest time at which the event is
	// due. A time that the message does not contain is zero.
	Time, NotBefore time.Time
	// Data is the payload as JSON, and Ref is a reference to the payload. A put has Data or Ref. A
	// delete may also have Data or Ref, but only the digest uses it.
	Data, Ref string
	// position is the position of the record in its stream, for the policy position. It is empty if
	// the body is not a record of a stream.
	position string
	// Object is an object in S3 whose lines are messages of another source. A draft with an Object
	// needs no other field. See [Kind.Lines].
	Object *event.Object
	// Skip says in a word or two why the source skips the event. It is empty if the event is not
	// skipped. A skipped event needs no other field.
	Skip string
}

// Version is a version in a message, as text or as a number. All digits of a number count. If the
// value is null or does not exist, the message has no version.
type Version struct {
	Field string // the name of the version's field, for problems
	Value gjson.Result
}

// finish makes the event of a draft, with its order key. The order key depends only on the body.
// The time at which the message was sent only decides whether the event is refused.
func (r *Rules) finish(m *event.Message, d *Draft) (event.Event, *event.Invalid) {
	arrived, at := m.FirstSent(), d.Time
	// A line of an object counts as sent when the object was written, and lines have the order in
	// which they are in the object. Like the time of the first copy, this can make a message older,
	// but never newer.
	if line, ok := queue.LineOf(m.Attributes); ok && d.Version.Value.Type == gjson.Null {
		if line.Written.Before(arrived) {
			arrived = line.Written
		}
		at = time.UnixMicro(line.Number)
	}
	v, class, text, f := r.judge(arrived, d)
	if f == nil {
		f = r.checkBounds(m.Sent, v, d)
	}
	if f != nil {
		return event.Event{}, f
	}
	key, err := shard.NewOrderKey(shard.Parts{
		Epoch: r.Settings.Epoch, Version: v, Run: d.Run, Time: at, Digest: digest(d.Op, d.Data, d.Ref),
	})
	if err != nil {
		return event.Event{}, Invalid("time", "%s", err)
	}
	e := event.Event{
		Doc: d.Doc, Op: d.Op, Version: text, Class: class, Key: key, Time: d.Time, NotBefore: d.NotBefore,
		Resync: d.Resync,
	}
	switch {
	case d.Op != event.Put:
	case r.Settings.Fetch != nil:
		if e.DataRef, f = r.Settings.Fetch.address(d.Doc, text); f != nil {
			f.Doc, f.Key = d.Doc, key
			return event.Event{}, f
		}
		e.Fetch = r.Name
	default:
		e.Data, e.DataRef = d.Data, d.Ref
	}
	return e, nil
}

// digest returns the first 8 bytes of a SHA-256. The input is the operation, then a mark for data
// or reference, and then the data or reference. An operation contains no zero byte, so two
// different events never have the same input.
func digest(op event.Operation, data, ref string) shard.Digest {
	h := hashers.Get().(*hasher) //nolint:errcheck // the pool holds nothing else
	h.Reset()
	h.add(string(op))
	if ref != "" {
		h.add("\x00ref\x00")
		h.add(ref)
	} else {
		h.add("\x00data\x00")
		h.add(data)
	}
	var d shard.Digest
	copy(d[:], h.Sum(h.room[:0]))
	hashers.Put(h)
	return d
}

// hasher hashes a string in small parts, so that it need not copy a whole body.
type hasher struct {
	hash.Hash
	room [1024]byte
}

var hashers = sync.Pool{New: func() any { return &hasher{Hash: sha256.New()} }}

func (h *hasher) add(s string) {
	for s != "" {
		n := copy(h.room[:], s)
		_, _ = h.Write(h.room[:n]) // a hash never returns an error
		s = s[n:]
	}
}
