// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// AttrLine is set on every message that lull makes from one line of an object. It holds the line's
// number, the offset of the line's first byte, and the object. It also holds when the object was
// written, in microseconds since 1970.
const AttrLine = "lull-line"

// AttrPart is set on a message that continues reading an object of many documents. It holds how
// many parts of the object lull has read before.
const AttrPart = "lull-part"

// Line identifies the line of an object from which a message was made.
type Line struct {
	Number  int64 // the first line is 1
	Offset  int64 // where the line's first byte is in the object's text
	Written time.Time
	Object  string // s3://bucket/key, the key URL-encoded
}

// ObjectURL returns the URL that lull writes for an object. It has no characters that a queue
// refuses.
func ObjectURL(bucket, key string) string {
	return "s3://" + bucket + "/" + strings.ReplaceAll(url.PathEscape(key), "%2F", "/")
}

// Text returns the value of AttrLine.
func (l Line) Text() string {
	return fmt.Sprintf("%d %d %d %s", l.Number, l.Offset, l.Written.UnixMicro(), l.Object)
}

// LineOf parses AttrLine. It returns false if the attribute is missing, or if lull did not write
// it.
func LineOf(attrs map[string]Attribute) (Line, bool) {
	a, ok := attrs[AttrLine]
	if !ok {
		return Line{}, false
	}
	fields := strings.SplitN(a.String, " ", 4)
	if len(fields) < 4 || !strings.HasPrefix(fields[3], "s3://") {
		return Line{}, false
	}
	var n [3]int64
	for i := range n {
		v, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil || v < 0 || v > 1<<56 {
			return Line{}, false
		}
		n[i] = v
	}
	return Line{n[0], n[1], time.UnixMicro(n[2]).UTC(), fields[3]}, n[0] > 0
}

// PartOf parses AttrPart. It returns 0 if the attribute is missing.
func PartOf(attrs map[string]Attribute) int {
	n, _ := parseNumber(attrs[AttrPart].String)
	return int(n)
}
