// SPDX-License-Identifier: Apache-2.0

package flight

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/klauspost/compress/s2"

	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

// An encoded manifest consists of:
//
//	"LULL"          4 bytes
//	schema          uvarint; the rest of a newer schema is not read
//	checksum        4 bytes, CRC-32C of the rest, little endian
//	the rest        one S2 block
//
// The unpacked block holds the fields in the order of the types. Numbers are varints. A text is its
// length and its bytes. A list is its length and its items. Attributes are sorted by name. Bodies
// are stored without escaping.
const magic = "LULL"

// MaxManifestBytes bounds an unpacked manifest. A batch has at most 6 MB of payload, including
// receipt handles and attributes. The remaining space is for the entries of messages with many
// small events.
const MaxManifestBytes = 32 << 20

// The fewest bytes that a record, an attribute and an entry take. A count is refused before memory
// is allocated, if that many items cannot fit into the remaining bytes.
const (
	minRecord    = 9
	minAttribute = 4
	minEntry     = 7
)

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	scratch    = sync.Pool{New: func() any { return new([]byte) }}
)

// Encode packs a manifest for the store. A Schema of 0 is written as [SchemaVersion]. Equal
// manifests give equal bytes.
func Encode(m *Manifest) ([]byte, error) {
	schema := m.Schema
	if schema == 0 {
		schema = SchemaVersion
	}
	if schema < 0 {
		return nil, fmt.Errorf("encode manifest: schema %d is negative", schema)
	}
	buf, ok := scratch.Get().(*[]byte)
	if !ok {
		buf = new([]byte)
	}
	defer scratch.Put(buf)
	w := writer{b: (*buf)[:0]}
	w.manifest(m)
	*buf = w.b
	if len(w.b) > MaxManifestBytes {
		return nil, fmt.Errorf("encode manifest: %d bytes, at most %d are allowed", len(w.b), MaxManifestBytes)
	}
	head := binary.AppendUvarint([]byte(magic), uint64(schema))
	out := make([]byte, len(head)+4+s2.MaxEncodedLen(len(w.b)))
	copy(out, head)
	block := s2.Encode(out[len(head)+4:], w.b)
	binary.LittleEndian.PutUint32(out[len(head):], crc32.Checksum(block, castagnoli))
	return out[:len(head)+4+len(block)], nil
}

// Decode unpacks a manifest. The error is [ErrSchema] for a newer schema. It is another error for
// bytes that Encode did not write.
func Decode(b []byte) (*Manifest, error) {
	if len(b) < len(magic) || string(b[:len(magic)]) != magic {
		return nil, fmt.Errorf("decode manifest: these bytes are not a manifest of lull")
	}
	b = b[len(magic):]
	schema, n := binary.Uvarint(b)
	switch {
	case n <= 0 || schema == 0:
		return nil, fmt.Errorf("decode manifest: schema is unreadable")
	case schema > SchemaVersion:
		return nil, fmt.Errorf("decode manifest of schema %d: %w", schema, ErrSchema)
	case len(b) < n+4:
		return nil, fmt.Errorf("decode manifest: cut off")
	}
	sum, block := binary.LittleEndian.Uint32(b[n:]), b[n+4:]
	if crc32.Checksum(block, castagnoli) != sum {
		return nil, fmt.Errorf("decode manifest: checksum is wrong")
	}
	size, err := s2.DecodedLen(block)
	if err != nil {
		return nil, fmt.Errorf("decode manifest: %w", err)
	}
	if size > MaxManifestBytes {
		return nil, fmt.Errorf("decode manifest: %d bytes, at most %d are allowed", size, MaxManifestBytes)
	}
	plain, err := s2.Decode(nil, block)
	if err != nil {
		return nil, fmt.Errorf("decode manifest: %w", err)
	}
	r := reader{s: string(plain)} // one copy: every text of the manifest is a part of this string
	m := r.manifest()
	if r.bad || r.s != "" {
		return nil, fmt.Errorf("decode manifest: malformed")
	}
	m.Schema = int(schema)
	return m, nil
}

type writer struct{ b []byte }

func (w *writer) uint(n uint64)  { w.b = binary.AppendUvarint(w.b, n) }
func (w *writer) int(n int64)    { w.b = binary.AppendVarint(w.b, n) }
func (w *writer) count(n int)    { w.uint(uint64(n)) }
func (w *writer) text(s string)  { w.count(len(s)); w.b = append(w.b, s...) }
func (w *writer) bytes(b []byte) { w.count(len(b)); w.b = append(w.b, b...) }

// time writes seconds and nanoseconds. A single 0 means the zero time.
func (w *writer) time(t time.Time) {
	if t.IsZero() {
		w.uint(0)
		return
	}
	w.uint(1 + uint64(t.Nanosecond()))
	w.int(t.Unix())
}

func (w *writer) manifest(m *Manifest) {
	w.text(string(m.Flight))
	w.text(m.Sink)
	w.text(string(m.Lane))
	w.time(m.Received)
	w.count(len(m.Records))
	var names []string
	for i := range m.Records {
		rec := &m.Records[i]
		names = w.message(&rec.Message, names)
		w.count(len(rec.Events))
		for j := range rec.Events {
			w.entry(&rec.Events[j])
		}
	}
}

// message returns names, a buffer for sorting, so that the next call can use it again.
func (w *writer) message(m *queue.Message, names []string) []string {
	w.text(m.ID)
	w.text(m.Receipt)
	w.text(m.Body)
	names = slices.AppendSeq(names[:0], maps.Keys(m.Attributes))
	slices.Sort(names)
	w.count(len(names))
	for _, name := range names {
		a := m.Attributes[name]
		w.text(name)
		w.text(a.Type)
		w.text(a.String)
		w.bytes(a.Binary)
	}
	w.time(m.Sent)
	w.time(m.FirstReceived)
	w.int(int64(m.ReceiveCount))
	w.text(m.MovedFrom)
	return names
}

// entry writes one entry.
func (w *writer) entry(e *Entry) {
	w.int(int64(e.Index))
	w.text(string(e.Doc))
	w.text(string(e.Key))
	w.b = append(w.b, byte(e.Class))
	w.text(string(e.Op))
	w.int(int64(e.Due))
	w.int(int64(e.Admitted))
}

// reader takes fields from the front of s. After a malformed field, bad stays set and every field
// reads as zero.
type reader struct {
	s   string
	bad bool
}

// fail marks the manifest as malformed.
func (r *reader) fail() {
	r.s, r.bad = "", true
}

// uint reads a varint, and accepts only its shortest form.
func (r *reader) uint() uint64 {
	var n uint64
	for i := 0; i < len(r.s) && i < binary.MaxVarintLen64; i++ {
		c := r.s[i]
		if c < 0x80 {
			if i == binary.MaxVarintLen64-1 && c > 1 || i > 0 && c == 0 {
				break // too large, or not the shortest form
			}
			r.s = r.s[i+1:]
			return n | uint64(c)<<(7*i)
		}
		n |= uint64(c&0x7f) << (7 * i)
	}
	r.fail()
	return 0
}

func (r *reader) int() int64 {
	n := r.uint()
	return int64(n>>1) ^ -int64(n&1)
}

// count reads how many items follow, each of at least size bytes.
func (r *reader) count(size int) int {
	n := r.uint()
	if n > uint64(len(r.s)/size) {
		r.fail()
		return 0
	}
	return int(n)
}

func (r *reader) text() string {
	n := r.count(1)
	s := r.s[:n]
	r.s = r.s[n:]
	return s
}

func (r *reader) byte() byte {
	if r.s == "" {
		r.fail()
		return 0
	}
	c := r.s[0]
	r.s = r.s[1:]
	return c
}

func (r *reader) time() time.Time {
	n := r.uint()
	if n == 0 {
		return time.Time{}
	}
	if n > 1e9 {
		r.fail()
	}
	t := time.Unix(r.int(), int64(n-1)).UTC()
	if t.IsZero() {
		r.fail() // Encode writes the zero time in a shorter form
	}
	return t
}

func (r *reader) manifest() *Manifest {
	m := &Manifest{Flight: ID(r.text()), Sink: r.text(), Lane: Lane(r.text()), Received: r.time()}
	if n := r.count(minRecord); n > 0 {
		m.Records = make([]Record, n)
	}
	var entries []Entry // the records' lists are parts of this slice, so that one allocation serves many lists
	for i := range m.Records {
		rec := &m.Records[i]
		r.message(&rec.Message)
		n := r.count(minEntry)
		if n == 0 {
			continue
		}
		if len(entries) < n {
			entries = make([]Entry, max(n, min(len(m.Records)-i, 1024)))
		}
		rec.Events, entries = entries[:n:n], entries[n:]
		for j := range rec.Events {
			r.entry(&rec.Events[j])
		}
	}
	return m
}

func (r *reader) message(m *queue.Message) {
	m.ID, m.Receipt, m.Body = r.text(), r.text(), r.text()
	if n := r.count(minAttribute); n > 0 {
		m.Attributes = make(map[string]queue.Attribute, n)
		last := ""
		for i := range n {
			name := r.text()
			if i > 0 && name <= last {
				r.fail()
			}
			a := queue.Attribute{Type: r.text(), String: r.text()}
			if b := r.text(); b != "" {
				a.Binary = []byte(b)
			}
			m.Attributes[name], last = a, name
		}
	}
	m.Sent, m.FirstReceived = r.time(), r.time()
	m.ReceiveCount, m.MovedFrom = int(r.int()), r.text()
}

func (r *reader) entry(e *Entry) {
	e.Index, e.Doc, e.Key = int(r.int()), shard.DocID(r.text()), shard.OrderKey(r.text())
	e.Class, e.Op = shard.Class(r.byte()), shard.Operation(r.text())
	e.Due, e.Admitted = shard.Micros(r.int()), shard.Micros(r.int())
}
