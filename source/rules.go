package source

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/deadletter"
	"github.com/lullhq/lull/internal/shard"
)

// rules are the settings that every source has.
type rules struct {
	name       string
	class      shard.Class
	epoch      uint32
	arrival    bool // the policy for events without a version
	collection shard.Collection
	allow      []config.BucketPrefix
	hosts      []string
	projection *tree // nil for the payload as it is
}

// origin is what a message says beside its body.
type origin struct {
	sent time.Time // when its first copy was sent
}

func newRules(c *config.Config, name string) (*rules, error) {
	s := c.Sources[name]
	class, err := shard.ParseClass(string(s.Class))
	if err != nil {
		return nil, fmt.Errorf("read its class: %w", err)
	}
	projection, err := newTree(s.Projection)
	if err != nil {
		return nil, fmt.Errorf("read its projection: %w", err)
	}
	return &rules{
		name: name, class: class, epoch: s.Epoch, arrival: s.NoVersion == config.NoVersionArrival,
		collection: shard.Collection(c.CollectionFor(name)),
		allow:      slices.Clone(c.AllowFor(name)), hosts: slices.Clone(c.Payload.HTTPHosts), projection: projection,
	}, nil
}

func (r *rules) common() *rules { return r }

// document is the payload as it is, or the parts that the projection names.
func (r *rules) document(data string) ([]byte, *event.Fault) { return r.projection.object(data) }

// draft is what a format found in a body.
type draft struct {
	doc       shard.DocID
	op        shard.Operation
	version   version
	run       shard.Run
	resync    bool
	at        time.Time
	notBefore time.Time
	data, ref string // part of the digest even where the event does not carry them on
}

// finish makes the event of a draft: the place where order keys are made.
func (r *rules) finish(o origin, d *draft) event.Result {
	v, class, text, f := r.judge(o, d.version)
	if f != nil {
		f.Doc = d.doc
		return event.Result{Fault: f}
	}
	key, err := shard.NewOrderKey(shard.Parts{
		Epoch: r.epoch, Version: v, Run: d.run, Time: d.at,
		Digest: digest(d.op, d.data, d.ref),
	})
	if err != nil {
		return event.Result{Fault: &event.Fault{
			Reason: deadletter.Contract, Field: "time", Problem: err.Error(),
			Doc: d.doc,
		}}
	}
	e := event.Event{
		Doc: d.doc, Op: d.op, Version: text, Class: class, Key: key, Time: d.at, NotBefore: d.notBefore,
		Resync: d.resync,
	}
	if d.op == shard.Put {
		e.Data, e.DataRef = d.data, d.ref
	}
	return event.Result{Event: e}
}

// digest is the first 8 bytes of SHA-256 over the operation, whether data or a reference follows,
// and that. Operations hold no zero byte, so that no two different events have one input.
func digest(op shard.Operation, data, ref string) shard.Digest {
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

// hasher reads strings through a buffer of its own: hashing a body must not copy it as a whole.
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

// id makes a document id of a collection, empty for the source's own, and a text. field names the
// text in faults.
func (r *rules) id(collection shard.Collection, field, text string) (shard.DocID, *event.Fault) {
	if collection == "" {
		collection = r.collection
	}
	if err := collection.Validate(); err != nil {
		return "", contract("collection", "%s", err)
	}
	switch {
	case text == "":
		return "", contract(field, "%s is empty: send the document's id, 1 to %d bytes", field, shard.MaxIDBytes)
	case len(text) > shard.MaxIDBytes:
		return "", contract(field, "the document's id has %d bytes, at most %d are allowed", len(text),
			shard.MaxIDBytes)
	}
	doc, err := shard.NewDocID(collection, text)
	if err != nil {
		return "", contract(field, "%s", err)
	}
	return doc, nil
}

// identity reads a text that identifies a document. Half a surrogate pair would read as U+FFFD, as
// any other half does: two ids would become one document.
func identity(field string, v gjson.Result) (string, *event.Fault) {
	switch v.Type {
	case gjson.String:
		if strings.ContainsRune(v.Str, '\uFFFD') && strings.Contains(strings.ToLower(v.Raw), `\ud`) {
			return "", contract(field, "%s holds half a surrogate pair, which is no text", field)
		}
		return v.Str, nil
	case gjson.Number:
		return v.Raw, nil
	case gjson.Null:
		return "", contract(field, "%s is missing: send the document's id, 1 to %d bytes", field, shard.MaxIDBytes)
	}
	return "", contract(field, "%s is %s: send the document's id as text", field, typeName(v))
}

// allowed says why events of the source may not refer to an object, or nil.
func (r *rules) allowed(field, bucket, key string) *event.Fault {
	for _, place := range r.allow {
		if place.Bucket == bucket && strings.HasPrefix(key, place.Prefix) {
			return nil
		}
	}
	return contract(field,
		"the object's place in bucket %s is not open to source %s: list bucket and prefix under payload.allow",
		event.Quote(bucket), r.name)
}

// reference says why events of the source may not refer to ref, or nil.
func (r *rules) reference(field, ref string) *event.Fault {
	if place, ok := strings.CutPrefix(ref, "s3://"); ok {
		bucket, key, _ := strings.Cut(place, "/")
		if bucket == "" || key == "" {
			return contract(field, "%s is incomplete: want s3://bucket/key", event.Quote(ref))
		}
		return r.allowed(field, bucket, key)
	}
	u, err := url.Parse(ref)
	if err != nil || u.Scheme != "https" || u.Host == "" {
		return contract(field, "%s is no reference: want s3://bucket/key or https://host/path", event.Quote(ref))
	}
	if u.User != nil || u.Port() != "" && u.Port() != "443" {
		return contract(field, "a reference holds neither a user nor a port: want https://host/path")
	}
	if !slices.Contains(r.hosts, strings.ToLower(u.Hostname())) {
		return contract(field, "host %s may not be referred to: list it under payload.httpHosts",
			event.Quote(u.Hostname()))
	}
	return nil
}

func contract(field, format string, args ...any) *event.Fault {
	return &event.Fault{Reason: deadletter.Contract, Field: field, Problem: fmt.Sprintf(format, args...)}
}

func failed(f *event.Fault) event.Result { return event.Result{Fault: f} }

// with fails an event whose document is known.
func with(doc shard.DocID, f *event.Fault) event.Result {
	f.Doc = doc
	return event.Result{Fault: f}
}

// typeName names what a value is, for faults.
func typeName(v gjson.Result) string {
	switch {
	case !v.Exists():
		return "missing"
	case v.IsObject():
		return "an object"
	case v.IsArray():
		return "an array"
	}
	switch v.Type {
	case gjson.Null:
		return "null"
	case gjson.Number:
		return "a number"
	case gjson.String:
		return "text"
	}
	return "a boolean"
}
