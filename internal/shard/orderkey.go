// SPDX-License-Identifier: Apache-2.0

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

// OrderKey is lull's byte string that sorts by (epoch, version, resync run, event time, digest).
// The order of all keys of one document is total. Compare keys with < and ==. The empty key means
// that there is no version. A key for a version below 16 million takes 21 bytes.
//
//	epoch       1 byte below 248, else 1 + n bytes      grows when the source's counter starts again
//	version     3 bits class, 5 bits length, the bytes  the upstream's version
//	resync run  0, or 1 and 16 bytes of a ULID          an equal version, accepted once per run
//	event time  7 bytes, microseconds, 0 for none       same version: the later time wins
//	digest      8 bytes                                 same version and time: the order of arrival does not matter
type OrderKey string

// Lowest is below every key. claimed_was is Lowest if no version was claimed before.
const Lowest OrderKey = "\x00"

// Digest is the first 8 bytes of SHA-256 over operation and data (or reference).
type Digest [8]byte

// Run is a resync run: the 16 bytes of a ULID. The zero Run means no resync.
type Run [16]byte

// Parts holds the parts of an order key.
type Parts struct {
	Epoch   uint32
	Version Version
	Run     Run
	Time    time.Time // in microseconds, UTC; zero for none
	Digest  Digest
}

// NewOrderKey packs the parts. It returns an error if the version is missing or the time is outside
// 1970 to 4253.
func NewOrderKey(p Parts) (OrderKey, error) {
	if p.Version.packed == "" {
		return "", fmt.Errorf("version is missing")
	}
	us := MicrosOf(p.Time)
	if us < 0 || us > maxMicros {
		return "", fmt.Errorf("event time %s is outside 1970 to 4253", p.Time.UTC().Format(time.RFC3339))
	}
	var buf [longestKey]byte
	return OrderKey(p.append(buf[:0], us)), nil
}

// longestKey is greater than the length of any key, in bytes.
const longestKey = 128

// append packs the parts, with their time in microseconds.
func (p *Parts) append(b []byte, us Micros) []byte {
	b = append(appendEpoch(b, p.Epoch), p.Version.packed...)
	if p.Run == (Run{}) {
		b = append(b, 0)
	} else {
		b = append(append(b, 1), p.Run[:]...)
	}
	var t [8]byte
	binary.BigEndian.PutUint64(t[:], uint64(us))
	return append(append(b, t[1:]...), p.Digest[:]...)
}

// appendEpoch writes small numbers in one byte. The bytes sort as the numbers do.
func appendEpoch(b []byte, n uint32) []byte {
	if n < 248 {
		return append(b, byte(n))
	}
	var e [4]byte
	binary.BigEndian.PutUint32(e[:], n)
	digits := bytes.TrimLeft(e[:], "\x00")
	return append(append(b, byte(247+len(digits))), digits...)
}

// Parts splits a key into its parts. It returns an error if the bytes are not an order key.
func (k OrderKey) Parts() (Parts, error) {
	p, ok := takeApart(string(k))
	if !ok {
		return Parts{}, fmt.Errorf("%x is not an order key", clip(string(k)))
	}
	return p, nil
}

// Class returns the class of the key's version, 0 if the key cannot be read.
func (k OrderKey) Class() Class {
	p, _ := k.Parts()
	return p.Version.Class()
}

// VersionText returns the upstream's version in the key, as a text for people. It is empty if the
// key cannot be read.
func (k OrderKey) VersionText() string {
	p, _ := k.Parts()
	return p.Version.Text()
}

// takeApart reads the parts of a key that [NewOrderKey] packed.
func takeApart(k string) (p Parts, ok bool) {
	if k == "" {
		return p, false
	}
	more := max(int(k[0])-247, 0) // number of bytes of the epoch after the first byte
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
	var buf [longestKey]byte
	return p, p.Version.packed != "" && string(p.append(buf[:0], MicrosOf(p.Time))) == k
}

// versionSize returns the length of the version at the start of s, in bytes. It is 0 if s does not
// start with a version that [ParseVersion] can return.
func versionSize(s string) int {
	if s == "" {
		return 0
	}
	size := versionEnd(s)
	if len(s) < size || size == 0 || !(Version{s[:size]}).canonical() {
		return 0
	}
	return size
}

// versionEnd returns where the version at the start of s ends. It reads only the class and the
// length.
func versionEnd(s string) int {
	switch (Version{s}).Class() {
	case ClassSeq:
		return 1 + maxHex/2
	case ClassLex:
		return 1 + strings.IndexByte(s, 0)
	}
	return 1 + int(s[0]&31)
}

// Event returns the key of the same event without a resync run. Keys of one event differ only in
// their runs. Event runs for every message, so it parses only what it needs. It returns a key that
// cannot be read unchanged.
func (k OrderKey) Event() OrderKey {
	const behind = 15 // length of time and digest
	if k == "" {
		return k
	}
	version := 1 + max(int(k[0])-247, 0)
	if len(k) <= version {
		return k
	}
	run := version + versionEnd(string(k[version:]))
	if len(k) != run+1+len(Run{})+behind || k[run] != 1 {
		return k
	}
	return k[:run] + "\x00" + k[len(k)-behind:]
}

// String returns the printed form. Printed keys sort as their bytes do:
//
//	e010,i0512345,-,01763654400123456,9f86d081884c7d65
//
// The first parts are the epoch and the version, each after the number of its digits. Then follow
// the run or -, the microseconds, and the digest in hex.
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

// ParseOrderKey parses the printed form.
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

// Floor returns a key below every key of the version in its epoch, and above every key of earlier
// versions. A reset sets committed to a Floor.
func Floor(epoch uint32, v Version) (OrderKey, error) {
	return NewOrderKey(Parts{Epoch: epoch, Version: v})
}

// IsFloor reports whether the key was made by [Floor]. The digest of an event's key is never all
// zeros.
func (k OrderKey) IsFloor() bool {
	p, err := k.Parts()
	return err == nil && p.Run == (Run{}) && p.Time.IsZero() && p.Digest == (Digest{})
}

// LastEpoch is above every epoch of a source, because the settings refuse it. A key with this epoch
// is the tombstone of a forgotten document.
const LastEpoch = math.MaxUint32

// Final returns a key above every key that an event of the document may have. The tombstone of a
// forgotten document has this key. v is the version that the document had.
func Final(v Version) (OrderKey, error) {
	return NewOrderKey(Parts{Epoch: LastEpoch, Version: v, Digest: Digest{7: 1}})
}

// IsFinal reports whether the key was made by [Final].
func (k OrderKey) IsFinal() bool {
	p, err := k.Parts()
	return err == nil && p.Epoch == LastEpoch
}

// FirstVersion returns the lowest version of a class.
func FirstVersion(c Class) (Version, error) { return ParseVersion(c, c.about().first) }

// SameContent reports whether two keys have the same version, run and payload, and differ only in
// event time. Writing the later one then repeats a write ("rewritten").
func SameContent(a, b OrderKey) bool {
	pa, errA := a.Parts()
	pb, errB := b.Parts()
	pa.Time, pb.Time = time.Time{}, time.Time{}
	return errA == nil && errB == nil && a != b && pa == pb
}

// VersionConflict reports whether two keys have the same version and run, but different payloads.
func VersionConflict(a, b OrderKey) bool {
	pa, errA := a.Parts()
	pb, errB := b.Parts()
	return errA == nil && errB == nil && pa.Epoch == pb.Epoch && pa.Version == pb.Version && pa.Run == pb.Run &&
		pa.Digest != pb.Digest
}

// These are the reasons why a version is not written. SameVersion means that the committed key has
// an equal version with another payload or time, and sorts higher.
const (
	NewerVersion = "a newer version is committed"
	SameVersion  = "the same version is committed with other content or at a later time"
)

// Behind returns the reason why k, which is less than the committed key, is not written:
// [NewerVersion] or [SameVersion].
func (k OrderKey) Behind(committed OrderKey) string {
	ours, errOurs := k.Parts()
	theirs, errTheirs := committed.Parts()
	if errOurs == nil && errTheirs == nil && ours.Epoch == theirs.Epoch && ours.Version == theirs.Version {
		return SameVersion
	}
	return NewerVersion
}

// ParseRun parses a ULID: 26 characters of Crockford's base 32, in upper or lower case.
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

// Time returns when the run began, according to its ULID. It is zero if there is no run.
func (r Run) Time() time.Time {
	if r == (Run{}) {
		return time.Time{}
	}
	return ulid.ULID(r).Timestamp().UTC()
}

// String returns the ULID in upper case.
func (r Run) String() string { return ulid.ULID(r).String() }
