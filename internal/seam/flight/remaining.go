// SPDX-License-Identifier: Apache-2.0

package flight

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math/bits"
	"slices"
)

// Remaining is a set of entries by their number in the manifest. It is a bitmap, in base64 in JSON.
// The largest batch has 10,000 messages, and its bitmap takes 1.7 KB. Six megabytes of messages
// cannot hold enough events to fill the 256 KB of a state. The zero Remaining is empty.
type Remaining struct{ bits []byte }

// AllRemaining returns the set of the entries 0 to n-1.
func AllRemaining(n int) Remaining {
	r := Remaining{make([]byte, (n+7)/8)}
	for i := range n {
		r.bits[i/8] |= 1 << (i % 8)
	}
	return r
}

// Has reports whether entry i remains.
func (r Remaining) Has(i int) bool { return i/8 < len(r.bits) && r.bits[i/8]&(1<<(i%8)) != 0 }

// Drop removes entry i. It changes the bits of the receiver: call Clone first to keep a copy.
func (r Remaining) Drop(i int) {
	if i/8 < len(r.bits) {
		r.bits[i/8] &^= 1 << (i % 8)
	}
}

// Put adds entry i. It changes the bits of the receiver: call Clone first to keep a copy.
func (r *Remaining) Put(i int) {
	if more := i/8 + 1 - len(r.bits); more > 0 {
		r.bits = append(r.bits, make([]byte, more)...)
	}
	r.bits[i/8] |= 1 << (i % 8)
}

// Clone returns an independent copy.
func (r Remaining) Clone() Remaining { return Remaining{slices.Clone(r.bits)} }

// Empty reports whether no entry remains.
func (r Remaining) Empty() bool {
	return len(bytes.TrimLeft(r.bits, "\x00")) == 0
}

// Count returns how many entries remain.
func (r Remaining) Count() int {
	n := 0
	for _, b := range r.bits {
		n += bits.OnesCount8(b)
	}
	return n
}

// MarshalText writes base64, without zero bytes at the end.
func (r Remaining) MarshalText() ([]byte, error) {
	return base64.RawURLEncoding.AppendEncode(nil, bytes.TrimRight(r.bits, "\x00")), nil
}

// UnmarshalText reads base64.
func (r *Remaining) UnmarshalText(text []byte) (err error) {
	if r.bits, err = base64.RawURLEncoding.AppendDecode(nil, text); err != nil {
		return fmt.Errorf("read remaining: %w", err)
	}
	return nil
}
