package queue

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// AttrLine is set on every message that lull makes of a line of an object: the line's number, the
// offset of its first byte, when the object was written in microseconds since 1970, and the object.
const AttrLine = "lull-line"

// AttrPart is set on a message about an object of many documents that goes on where an earlier one
// ended: how many parts were read before it.
const AttrPart = "lull-part"

// Line says which line of which object a message is.
type Line struct {
	Number  int64 // from 1
	Offset  int64 // of its first byte in the text
	Written time.Time
	Object  string // s3://bucket/key, the key URL-encoded
}

// ObjectURL is how lull writes the place of an object: without characters that a queue refuses.
func ObjectURL(bucket, key string) string {
	return "s3://" + bucket + "/" + strings.ReplaceAll(url.PathEscape(key), "%2F", "/")
}

// Text is the value of AttrLine.
func (l Line) Text() string {
	return fmt.Sprintf("%d %d %d %s", l.Number, l.Offset, l.Written.UnixMicro(), l.Object)
}

// LineOf reads AttrLine. It is false where there is none, or one that lull did not write.
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

// PartOf reads AttrPart, 0 where there is none.
func PartOf(attrs map[string]Attribute) int {
	n, _ := parseNumber(attrs[AttrPart].String)
	return int(n)
}
