// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
)

// Class says how versions of a source are compared. Each source has one fixed class. The row stores
// the class, and ADMIT refuses another class.
type Class byte

// These are the five classes of docs/events.md. The printed form of a version begins with this
// byte.
const (
	ClassInt  Class = 'i' // numeric, 1 to 40 digits: payload_version, Kafka offsets, DynamoDB Streams SequenceNumber
	ClassSeq  Class = 's' // hex, right-padded to 32 digits: S3 sequencer
	ClassTime Class = 't' // an instant in UTC, microseconds
	ClassLSN  Class = 'p' // Postgres "16/B374D848": (high<<32) or low
	ClassLex  Class = 'l' // bytewise text: ULID, UUIDv7, KSUID
)

// about has the properties in which the classes differ.
type about struct {
	class Class
	// three bits that identify the class; the order of the tags means nothing, because a document
	// has only one class
	tag    byte
	name   string // the name in the settings
	first  string // the lowest version
	widest int    // greatest length of a number in bytes
}

var classes = []about{
	{ClassInt, 1, "int", "0", 17},
	{ClassSeq, 2, "seq", "0", 0},
	{ClassTime, 3, "time", "1970-01-01T00:00:00Z", 7},
	{ClassLSN, 4, "lsn", "0", 8},
	{ClassLex, 5, "lex", "-", 0},
}

func (c Class) about() about {
	for _, known := range classes {
		if known.class == c {
			return known
		}
	}
	return about{name: "none"}
}

// ParseClass parses the name of a class in the settings: int, seq, time, lsn, lex.
func ParseClass(name string) (Class, error) {
	for _, c := range classes {
		if c.name == name {
			return c.class, nil
		}
	}
	return 0, fmt.Errorf("version class %q: want int, seq, time, lsn or lex", clip(name))
}

// String returns the name of the class in the settings.
func (c Class) String() string { return c.about().name }

// Version is an upstream version in canonical form: packed bytes that sort as the class defines.
// The zero Version means that there is no version.
type Version struct{ packed string }

const (
	maxDigits = 40 // longer integers are refused, never truncated
	maxHex    = 32
	maxLex    = 64
	maxMicros = 1<<56 - 1 // a time has seven bytes, so the greatest time is in the year 4253

	digits   = "0123456789"
	lower    = "abcdefghijklmnopqrstuvwxyz"
	capitals = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

// ParseVersion parses an upstream version of the given class. Numbers are never converted to
// floats: "1.0", "1e3", signs and spaces are refused.
func ParseVersion(c Class, text string) (Version, error) {
	if text == "" {
		return Version{}, fmt.Errorf("version is missing")
	}
	switch c {
	case ClassInt:
		return parseInt(text)
	case ClassSeq:
		return parseSeq(text)
	case ClassTime:
		t, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			return Version{}, fmt.Errorf("version %q is not an RFC 3339 time", clip(text))
		}
		return TimeVersion(t)
	case ClassLSN:
		return parseLSN(text)
	case ClassLex:
		return parseLex(text)
	}
	return Version{}, fmt.Errorf("version class %q is unknown", string(rune(c)))
}

// TimeVersion returns the version of class time for an instant, cut to microseconds. It refuses
// instants before 1970 and after 4253.
func TimeVersion(t time.Time) (Version, error) {
	us := t.UnixMicro()
	if us < 0 || us > maxMicros {
		return Version{}, fmt.Errorf("version time %s is outside 1970 to 4253", t.UTC().Format(time.RFC3339))
	}
	return numeric(ClassTime, uint64(us)), nil
}

// consists reports whether a text has only characters of the set. strings.Trim is slower, because
// it prepares its set each time.
func consists(text, of string) bool {
	for i := range len(text) {
		if strings.IndexByte(of, text[i]) < 0 {
			return false
		}
	}
	return true
}

func parseInt(text string) (Version, error) {
	if !consists(text, digits) {
		return Version{}, fmt.Errorf("version %q is not a non-negative integer", clip(text))
	}
	if len(text) > maxDigits {
		return Version{}, fmt.Errorf("version has %d digits, at most %d are allowed", len(text), maxDigits)
	}
	// the fast path, because nearly all versions are such numbers
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		return numeric(ClassInt, n), nil
	}
	n, _ := new(big.Int).SetString(text, 10)
	return magnitude(ClassInt, n.Bytes()), nil
}

func parseLSN(text string) (Version, error) {
	high, low, ok := strings.Cut(text, "/")
	if !ok { // Debezium gives the same position as one decimal number
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return Version{}, fmt.Errorf("version %q is not a log sequence number (want 16/B374D848 or a decimal)",
				clip(text))
		}
		return numeric(ClassLSN, n), nil
	}
	h, errH := strconv.ParseUint(high, 16, 32)
	l, errL := strconv.ParseUint(low, 16, 32)
	if errH != nil || errL != nil {
		return Version{}, fmt.Errorf("version %q is not a log sequence number (want 16/B374D848)", clip(text))
	}
	return numeric(ClassLSN, h<<32|l), nil
}

func parseSeq(text string) (Version, error) {
	if len(text) > maxHex {
		return Version{}, fmt.Errorf("sequencer has %d hex digits, at most %d are allowed", len(text), maxHex)
	}
	var b [1 + maxHex/2]byte
	b[0] = ClassSeq.about().tag << 5
	padded := text + strings.Repeat("0", maxHex-len(text)) // pad with zeros on the right, as today's S3 guide says
	if _, err := hex.Decode(b[1:], []byte(padded)); err != nil {
		return Version{}, fmt.Errorf("sequencer %q is not hexadecimal", clip(text))
	}
	return Version{string(b[:])}, nil
}

func parseLex(text string) (Version, error) {
	if len(text) > maxLex {
		return Version{}, fmt.Errorf("version has %d characters, at most %d are allowed", len(text), maxLex)
	}
	if !consists(text, digits+capitals+lower+"_-") {
		return Version{}, fmt.Errorf("version %q: only 0-9, A-Z, a-z, _ and - are allowed", clip(text))
	}
	return Version{string([]byte{ClassLex.about().tag << 5}) + foldLex(text) + "\x00"}, nil
}

// foldLex writes ULIDs in upper case and UUIDs in lower case, because producers write them
// differently. It does not change other texts, for example a KSUID (27 characters, base62).
func foldLex(text string) string {
	switch {
	case len(text) == 26 && isULID(text):
		return strings.ToUpper(text)
	case len(text) == 36 && isUUID(text):
		return strings.ToLower(text)
	}
	return text
}

func isULID(s string) bool {
	_, err := ulid.ParseStrict(s)
	return err == nil
}

func isUUID(s string) bool {
	parts := strings.Split(s, "-")
	_, err := hex.DecodeString(strings.Join(parts, ""))
	return err == nil && len(parts) == 5 && len(parts[0]) == 8 && len(parts[1]) == 4 && len(parts[2]) == 4 &&
		len(parts[3]) == 4
}

func numeric(c Class, n uint64) Version {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], n)
	return magnitude(c, b[:])
}

// magnitude packs a number: three bits for the class, five bits for the length, then the bytes. So
// a longer number sorts higher.
func magnitude(c Class, b []byte) Version {
	b = bytes.TrimLeft(b, "\x00")
	return Version{string(append([]byte{c.about().tag<<5 | byte(len(b))}, b...))}
}

// Class returns the class of the version, 0 if there is no version.
func (v Version) Class() Class {
	if v.packed == "" {
		return 0
	}
	for _, known := range classes {
		if known.tag == v.packed[0]>>5 {
			return known.class
		}
	}
	return 0
}

// canonical reports whether [ParseVersion] can return the version. It runs for every message, so it
// prints and parses only versions that are not usual numbers.
func (v Version) canonical() bool {
	const usual = 16 // length in bytes; a longer number can have 41 digits
	c, number := v.Class(), v.packed[1:]
	if (c == ClassInt || c == ClassTime || c == ClassLSN) && len(number) <= usual {
		return len(number) <= c.about().widest && (number == "" || number[0] != 0)
	}
	again, err := parsePrinted(v.String())
	return err == nil && again.packed == v.packed
}

// String returns the printed form: a character for the class and, for numbers, a two-digit length.
// Printed versions sort as packed versions do. Example: i0512345.
func (v Version) String() string {
	if v.packed == "" {
		return ""
	}
	c := v.Class()
	body := v.packed[1:]
	switch c {
	case ClassSeq:
		return string(rune(c)) + strings.ToUpper(hex.EncodeToString([]byte(body)))
	case ClassLex:
		return string(rune(c)) + strings.TrimSuffix(body, "\x00")
	default:
		digits := new(big.Int).SetBytes([]byte(body)).String()
		return fmt.Sprintf("%c%02d%s", c, len(digits), digits)
	}
}

// parsePrinted parses the form that String returns.
func parsePrinted(s string) (Version, error) {
	if s == "" {
		return Version{}, fmt.Errorf("version is missing")
	}
	c, body := Class(s[0]), s[1:]
	switch c {
	case ClassSeq, ClassLex:
		return ParseVersion(c, body)
	case ClassInt, ClassTime, ClassLSN:
		if len(body) < 3 {
			return Version{}, fmt.Errorf("printed version %q is too short", clip(s))
		}
		if n, err := strconv.Atoi(body[:2]); err != nil || n != len(body)-2 || body[2] == '0' && n > 1 {
			return Version{}, fmt.Errorf("printed version %q has a wrong length", clip(s))
		}
		v, err := parseInt(body[2:])
		if err != nil {
			return Version{}, err
		}
		packed := v.packed[1:]
		if len(packed) > c.about().widest {
			return Version{}, fmt.Errorf("printed version %q is too large", clip(s))
		}
		return magnitude(c, []byte(packed)), nil
	}
	return Version{}, fmt.Errorf("printed version %q has no known class", clip(s))
}

// Text returns the version as a text for people: the digits, the text, the padded sequencer, or a
// time.
func (v Version) Text() string {
	s := v.String()
	switch v.Class() {
	case ClassInt, ClassLSN:
		return s[3:]
	case ClassTime:
		us := new(big.Int).SetBytes([]byte(v.packed[1:])).Int64()
		return time.UnixMicro(us).UTC().Format(time.RFC3339Nano)
	case ClassSeq, ClassLex:
		return s[1:]
	}
	return ""
}

// Compare returns a negative number if v is older than w, zero if they are equal, and a positive
// number if v is newer. Versions of different classes cannot be compared.
func (v Version) Compare(w Version) int { return strings.Compare(v.packed, w.packed) }
