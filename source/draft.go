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
	// Time is when the change happened, zero for none. NotBefore is when the event is due at the
	// earliest, zero for none.
	Time, NotBefore time.Time
	// Data is the payload as JSON, and Ref is where the payload is. A put has one of them. A delete
	// may have one, which counts only for the digest.
	Data, Ref string
	// position is where the record is in its stream, for the policy position; empty for nowhere.
	position string
	// Object is an object whose lines are messages of another source, in place of everything else
	// but Skip. See [Kind.Lines].
	Object *event.Object
	// Skip says in a word or two why the source's rule passes the event over. Empty means that it
	// does not. A skipped event needs nothing else.
	Skip string
}

// Version is a version as a message has it: text or a number, which is taken digit for digit. Null
// and a value that does not exist mean that there is no version.
type Version struct {
	Field string // its name, for problems
	Value gjson.Result
}

// finish makes the event of a draft, with its order key. The order key depends only on the body.
// The time at which the message was sent only decides whether the event is refused.
func (r *Rules) finish(m *event.Message, d *Draft) (event.Event, *event.Invalid) {
	arrived, at := m.FirstSent(), d.Time
	// Lines of an object count as sent when the object was written, in their order. As with the
	// time of the first copy, this can make a message older, but never newer.
	if line, ok := queue.LineOf(m.Attributes); ok && d.Version.Value.Type == gjson.Null {
		if line.Written.Before(arrived) {
			arrived = line.Written
		}
		at = time.UnixMicro(line.Number)
	}
	v, class, text, f := r.judge(arrived, d)
	if f == nil {
		f = r.bounded(m.Sent, v, d)
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

// digest is the first 8 bytes of SHA-256 over the operation, whether data or a reference follows,
// and that. Operations hold no zero byte, so that no two different events have one input.
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

// hasher hashes strings through its own buffer, so that a body is not copied as a whole.
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
