package shard

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
)

// OrderKey is lull's byte string that sorts by (epoch, version, resync run, event time, digest): a
// total order per document. Compare with < and ==. The empty key is none. A key for a version below
// 16 million takes 21 bytes.
//
//	epoch       1 byte below 248, else 1 + n bytes      which life of the source's counter
//	version     3 bits class, 5 bits length, the bytes  what the upstream says
//	resync run  0, or 1 and 16 bytes of a ULID          the same version again, once per run
//	event time  7 bytes, microseconds, 0 for none       same version, later time wins
//	digest      8 bytes                                 same version and time: one winner in either order of arrival
type OrderKey string

// Lowest is below every key: what claimed_was holds where nothing was claimed before.
const Lowest OrderKey = "\x00"

// Digest is the first 8 bytes of SHA-256 over operation and data (or reference).
type Digest [8]byte

// Run is a resync run: the 16 bytes of a ULID. The zero Run is none.
type Run [16]byte

// Parts is an order key taken apart.
type Parts struct {
	Epoch   uint32
	Version Version
	Run     Run
	Time    time.Time // microseconds, UTC; zero for none
	Digest  Digest
}

// NewOrderKey packs the parts. A missing version and times outside 1970 to 4253 are errors.
func NewOrderKey(p Parts) (OrderKey, error) {
	if p.Version.packed == "" {
		return "", fmt.Errorf("version is missing")
	}
	us := MicrosOf(p.Time)
	if us < 0 || us > maxMicros {
		return "", fmt.Errorf("event time %s is outside 1970 to 4253", p.Time.UTC().Format(time.RFC3339))
	}
	var buf [128]byte
	b := appendEpoch(buf[:0], p.Epoch)
	b = append(b, p.Version.packed...)
	if p.Run == (Run{}) {
		b = append(b, 0)
	} else {
		b = append(append(b, 1), p.Run[:]...)
	}
	var t [8]byte
	binary.BigEndian.PutUint64(t[:], uint64(us))
	b = append(b, t[1:]...)
	return OrderKey(append(b, p.Digest[:]...)), nil
}

// appendEpoch writes small numbers in one byte and keeps the order.
func appendEpoch(b []byte, n uint32) []byte {
	if n < 248 {
		return append(b, byte(n))
	}
	var e [4]byte
	binary.BigEndian.PutUint32(e[:], n)
	digits := bytes.TrimLeft(e[:], "\x00")
	return append(append(b, byte(247+len(digits))), digits...)
}

// Parts takes a key apart. An error says that the bytes are not a key of ours.
func (k OrderKey) Parts() (Parts, error) {
	p, ok := takeApart(string(k))
	if !ok {
		return Parts{}, fmt.Errorf("%x is not an order key", clip(string(k)))
	}
	return p, nil
}

// Class is the class of the key's version, 0 where the key cannot be read.
func (k OrderKey) Class() Class {
	p, _ := k.Parts()
	return p.Version.Class()
}

// VersionText is the upstream's version in the key, for people: empty where the key cannot be read.
func (k OrderKey) VersionText() string {
	p, _ := k.Parts()
	return p.Version.Text()
}

// takeApart reads the parts of a key that [NewOrderKey] has packed.
func takeApart(k string) (p Parts, ok bool) {
	if k == "" {
		return p, false
	}
	more := max(int(k[0])-247, 0) // bytes of an epoch behind the first
	if len(k) < 1+more {
		return p, false
	}
	for _, b := range []byte(k[min(more, 1) : 1+more]) {
		p.Epoch = p.Epoch<<8 | uint32(b)
	}
	s := k[1+more:]
	n := versionSize(s)
	p.Version, s = Version{s[:n]}, s[n:]
	if s == "" {
		return p, false
	}
	run := 1 + int(s[0])*len(p.Run)
	if len(s) != run+15 {
		return p, false
	}
	copy(p.Run[:], s[1:run])
	var t [8]byte
	copy(t[1:], s[run:])
	p.Time = Micros(binary.BigEndian.Uint64(t[:])).Time()
	copy(p.Digest[:], s[run+7:])
	packed, err := NewOrderKey(p)
	return p, err == nil && string(packed) == k
}

// versionSize is how many bytes of s the version takes that it begins with, 0 where it begins with
// none that [ParseVersion] makes.
func versionSize(s string) int {
	if s == "" {
		return 0
	}
	size := 1 + int(s[0]&31)
	switch (Version{s}).Class() {
	case ClassSeq:
		size = 1 + maxHex/2
	case ClassLex:
		size = 1 + strings.IndexByte(s, 0)
	}
	if len(s) < size {
		return 0
	}
	if v, err := parsePrinted(Version{s[:size]}.String()); err != nil || v.packed != s[:size] {
		return 0
	}
	return size
}

// String is the printed form, which sorts as the bytes do:
//
//	e010,i0512345,-,01763654400123456,9f86d081884c7d65
//
// epoch and version with the length of their digits before them, the run or -, microseconds, the
// digest in hex.
func (k OrderKey) String() string {
	switch k {
	case "":
		return ""
	case Lowest:
		return "lowest"
	}
	p, err := k.Parts()
	if err != nil {
		return "invalid:" + hex.EncodeToString([]byte(k))
	}
	run := "-"
	if p.Run != (Run{}) {
		run = p.Run.String()
	}
	epoch := strconv.FormatUint(uint64(p.Epoch), 10)
	return fmt.Sprintf("e%02d%s,%s,%s,%017d,%x", len(epoch), epoch, p.Version, run, MicrosOf(p.Time), p.Digest[:])
}

// ParseOrderKey reads the printed form back.
func ParseOrderKey(s string) (OrderKey, error) {
	f := strings.Split(s, ",")
	bad := func(what string) (OrderKey, error) { return "", fmt.Errorf("order key %q: bad %s", clip(s), what) }
	if len(f) != 5 {
		return bad("number of parts")
	}
	var p Parts
	if len(f[0]) < 4 || f[0][0] != 'e' {
		return bad("epoch")
	}
	n, err := strconv.ParseUint(f[0][3:], 10, 32)
	if err != nil || f[0] != fmt.Sprintf("e%02d%d", len(strconv.FormatUint(n, 10)), n) {
		return bad("epoch")
	}
	p.Epoch = uint32(n)
	if p.Version, err = parsePrinted(f[1]); err != nil {
		return "", fmt.Errorf("order key: %w", err)
	}
	if f[2] != "-" {
		if p.Run, err = ParseRun(f[2]); err != nil {
			return "", fmt.Errorf("order key: %w", err)
		}
	}
	us, err := strconv.ParseUint(f[3], 10, 64)
	if err != nil || len(f[3]) != 17 || us > maxMicros {
		return bad("time")
	}
	p.Time = Micros(us).Time()
	if len(f[4]) != 16 {
		return bad("digest")
	}
	if _, err := hex.Decode(p.Digest[:], []byte(f[4])); err != nil {
		return bad("digest")
	}
	return NewOrderKey(p)
}

// Floor is below every key of the version in its epoch, and above every key of the versions before
// it: what a reset leaves as committed.
func Floor(epoch uint32, v Version) (OrderKey, error) {
	return NewOrderKey(Parts{Epoch: epoch, Version: v})
}

// IsFloor reports whether the key is a [Floor]: no event's key has a digest of zeros.
func (k OrderKey) IsFloor() bool {
	p, err := k.Parts()
	return err == nil && p.Run == (Run{}) && p.Time.IsZero() && p.Digest == (Digest{})
}

// LastEpoch is above every epoch of a source: the settings refuse it. A key in it is the tombstone
// of a document that was forgotten.
const LastEpoch = math.MaxUint32

// Final is above every key that an event of the document may have: the tombstone that is left of a
// document that is forgotten. Its version is the one that the document had.
func Final(v Version) (OrderKey, error) {
	return NewOrderKey(Parts{Epoch: LastEpoch, Version: v, Digest: Digest{7: 1}})
}

// IsFinal reports whether the key is a [Final].
func (k OrderKey) IsFinal() bool {
	p, err := k.Parts()
	return err == nil && p.Epoch == LastEpoch
}

// FirstVersion is the lowest version of a class.
func FirstVersion(c Class) (Version, error) { return ParseVersion(c, c.about().first) }

// SameContent reports whether two keys name the same version, run and payload and differ in event
// time only: writing the later one is a repetition ("rewritten").
func SameContent(a, b OrderKey) bool {
	pa, errA := a.Parts()
	pb, errB := b.Parts()
	pa.Time, pb.Time = time.Time{}, time.Time{}
	return errA == nil && errB == nil && a != b && pa == pb
}

// VersionConflict reports whether two keys name one version of one run with different payloads.
func VersionConflict(a, b OrderKey) bool {
	pa, errA := a.Parts()
	pb, errB := b.Parts()
	return errA == nil && errB == nil && pa.Epoch == pb.Epoch && pa.Version == pb.Version && pa.Run == pb.Run &&
		pa.Digest != pb.Digest
}

// ParseRun reads a ULID, 26 characters of Crockford's base 32, in either case.
func ParseRun(s string) (Run, error) {
	id, err := ulid.ParseStrict(s)
	if err != nil {
		return Run{}, fmt.Errorf("resync run %q is not a ULID", clip(s))
	}
	if id.IsZero() {
		return Run{}, fmt.Errorf("resync run %q is empty", s)
	}
	return Run(id), nil
}

// Time is when the run began, by its ULID: zero for none.
func (r Run) Time() time.Time {
	if r == (Run{}) {
		return time.Time{}
	}
	return ulid.ULID(r).Timestamp().UTC()
}

// String is the ULID in upper case.
func (r Run) String() string { return ulid.ULID(r).String() }
