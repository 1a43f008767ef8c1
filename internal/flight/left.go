package flight

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
)

// Left is a set of entries by their number in the manifest: a bitmap, base64 in JSON. The 10,000
// messages of the largest batch take 1.7 KB, and no six megabytes of messages hold so many events
// that a state comes near its 256 KB. The zero Left is empty.
type Left struct{ bits []byte }

// AllLeft is the set 0 to n-1.
func AllLeft(n int) Left {
	l := Left{make([]byte, (n+7)/8)}
	for i := range n {
		l.bits[i/8] |= 1 << (i % 8)
	}
	return l
}

// Has reports whether entry i is left.
func (l Left) Has(i int) bool { return i/8 < len(l.bits) && l.bits[i/8]&(1<<(i%8)) != 0 }

// Drop takes entry i out. It changes the receiver's bits: use Clone first to keep a copy.
func (l Left) Drop(i int) {
	if i/8 < len(l.bits) {
		l.bits[i/8] &^= 1 << (i % 8)
	}
}

// Clone is an independent copy.
func (l Left) Clone() Left { return Left{append([]byte(nil), l.bits...)} }

// Empty reports whether nothing is left.
func (l Left) Empty() bool {
	for _, b := range l.bits {
		if b != 0 {
			return false
		}
	}
	return true
}

// Count is how many entries are left.
func (l Left) Count() int {
	n := 0
	for _, b := range l.bits {
		for ; b != 0; b &= b - 1 {
			n++
		}
	}
	return n
}

// MarshalJSON writes base64.
func (l Left) MarshalJSON() ([]byte, error) {
	bits := l.bits
	for len(bits) > 0 && bits[len(bits)-1] == 0 {
		bits = bits[:len(bits)-1]
	}
	return json.Marshal(base64.RawURLEncoding.EncodeToString(bits))
}

// UnmarshalJSON reads base64.
func (l *Left) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("read left: %w", err)
	}
	bits, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return fmt.Errorf("read left: %w", err)
	}
	l.bits = bits
	return nil
}
