// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	bitwise "math/bits"
	"slices"
)

// errCorrupt says that a compressed object is broken, so that a retry cannot help.
var errCorrupt = errors.New("the gzip data is broken")

func corrupt(what string) error { return fmt.Errorf("%w: %s", errCorrupt, what) }

// bits reads a stream bit by bit, and knows its position in the stream.
type bits struct {
	in   *bufio.Reader
	acc  uint64 // bits that were read and not yet taken; the lowest bit is the next one
	have uint
	read int64 // number of bytes read from in
	err  error // why no more bytes can be read
	// bad is the first error of the stream. Bits that are taken after this error are 0 and mean
	// nothing, so a caller must check bad after it has taken bits.
	bad error
}

// at returns the position of the next bit.
func (b *bits) at() int64 { return b.read*8 - int64(b.have) }

// fill reads until at least 48 bits are ready, unless the stream has ended.
func (b *bits) fill() {
	for b.have <= 48 && b.err == nil {
		var next byte
		if next, b.err = b.in.ReadByte(); b.err == nil {
			b.acc |= uint64(next) << b.have
			b.read++
			b.have += 8
		}
	}
}

// fail records an error, unless there was an earlier one, and returns the first error.
func (b *bits) fail(err error) error {
	b.bad = cmp.Or(b.bad, err)
	return b.bad
}

// short records that the stream has fewer bits than needed.
func (b *bits) short() error {
	if errors.Is(b.err, io.EOF) {
		return b.fail(corrupt("it ends too early"))
	}
	return b.fail(b.err)
}

// take returns up to 32 bits and removes them from the stream.
func (b *bits) take(count uint) uint32 {
	if b.have < count {
		if b.fill(); b.have < count {
			_ = b.short() // recorded in bad
			return 0
		}
	}
	v := uint32(b.acc & (1<<count - 1))
	b.acc >>= count
	b.have -= count
	return v
}

// align skips the remaining bits of a byte.
func (b *bits) align() {
	b.acc >>= b.have % 8
	b.have -= b.have % 8
}

// Limits of RFC 1951, section 3.2: the longest code, and the numbers of codes.
const (
	longest   = 15
	maxLits   = 286
	maxDists  = 30
	endOf     = 256
	window    = 32 << 10
	lookup    = 10 // number of bits of an index into code.fast
	maxLength = 258
)

// code is a Huffman code.
type code struct {
	fast   [1 << lookup]uint16 // symbol<<4 | length; 0 for a code of more bits than lookup
	count  [longest + 1]uint16
	symbol [maxLits + 2]uint16
}

// build makes the code with the given length for each symbol. An incomplete code is accepted only
// if it has a single symbol.
func (c *code) build(lengths []byte) error {
	*c = code{}
	for _, l := range lengths {
		c.count[l]++
	}
	var next, from [longest + 2]uint16
	left := 1
	for l := 1; l <= longest; l++ {
		if left = left<<1 - int(c.count[l]); left < 0 {
			return corrupt("a code has too many symbols")
		}
		from[l+1] = from[l] + c.count[l]
		next[l+1] = (next[l] + c.count[l]) << 1
	}
	if used := len(lengths) - int(c.count[0]); left > 0 && used > 1 {
		return corrupt("a code has too few symbols")
	}
	c.count[0] = 0
	for sym, l := range lengths {
		if l == 0 {
			continue
		}
		c.symbol[from[l]] = uint16(sym)
		from[l]++
		reversed := int(bitwise.Reverse16(next[l]) >> (16 - l))
		next[l]++
		if l > lookup {
			continue
		}
		for at := reversed; at < 1<<lookup; at += 1 << l {
			c.fast[at] = uint16(sym)<<4 | uint16(l)
		}
	}
	return nil
}

// next reads one symbol of the code from b.
func (c *code) next(b *bits) int {
	if b.have < longest {
		b.fill()
	}
	if e := c.fast[b.acc&(1<<lookup-1)]; e != 0 && uint(e&15) <= b.have {
		b.acc >>= e & 15
		b.have -= uint(e & 15)
		return int(e >> 4)
	}
	code, first, index := 0, 0, 0
	for l := uint(1); l <= longest; l++ {
		if l > b.have {
			_ = b.short() // recorded in bad
			return 0
		}
		code |= int(b.acc >> (l - 1) & 1)
		n := int(c.count[l])
		if code-n < first {
			b.acc >>= l
			b.have -= l
			return int(c.symbol[index+code-first])
		}
		index += n
		first = (first + n) << 1
		code <<= 1
	}
	_ = b.fail(corrupt("a code is not known"))
	return 0
}

// These tables of lengths and distances are those of RFC 1951, section 3.2.5.
var (
	lengthBase = [...]uint16{
		3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227,
		258,
	}
	lengthBits = [...]uint8{
		0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0,
	}
	distBase = [...]uint16{
		1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097,
		6145, 8193, 12289, 16385, 24577,
	}
	distBits = [...]uint8{
		0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13,
	}
	lengthOrder = [...]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}
)

// block is the state of the block that is being read. With this state, reading can continue in the
// middle of the block.
type block struct {
	Last    bool   `json:"last,omitempty"`
	Stored  int    `json:"stored,omitempty"`  // remaining bytes of a block that is not compressed
	Lits    int    `json:"lits,omitempty"`    // how many of Lengths are code lengths of literals and lengths
	Lengths []byte `json:"lengths,omitempty"` // code lengths; empty outside a compressed block
}

func (k *block) inside() bool { return k.Stored > 0 || k.Lengths != nil }

// inflater decompresses DEFLATE (RFC 1951) chunk by chunk. It can continue where another inflater
// ended, even within a block. Other libraries cannot do that (ADR 0068).
type inflater struct {
	*bits
	block
	lits, dists code
	out         []byte // the text that distances may refer to, and after it the chunk
}

// begin reads the head of a block.
func (f *inflater) begin() error {
	head := f.take(3)
	f.block = block{Last: head&1 == 1}
	switch head >> 1 {
	case 0:
		f.align()
		n, check := f.take(16), f.take(16)
		if n != ^check&0xffff {
			return f.fail(corrupt("a block has no length"))
		}
		f.Stored = int(n)
		return f.bad
	case 1:
		f.Lits, f.Lengths = maxLits+2, fixed
		return f.codes()
	case 2:
		if err := f.dynamic(); err != nil {
			return err
		}
		return f.codes()
	}
	return corrupt("a block is of no known kind")
}

// fixed has the code lengths of a block without its own codes: first the code lengths of literals
// and lengths, then the code lengths of distances.
var fixed = slices.Concat(bytes.Repeat([]byte{8}, 144), bytes.Repeat([]byte{9}, 112), bytes.Repeat([]byte{7}, 24),
	bytes.Repeat([]byte{8}, 8), bytes.Repeat([]byte{5}, maxDists+2))

// dynamic reads the code lengths of a block with its own codes.
func (f *inflater) dynamic() error {
	head := f.take(14)
	lits, dists, n := int(head&31)+257, int(head>>5&31)+1, int(head>>10)+4
	if lits > maxLits || dists > maxDists {
		return corrupt("a code has too many symbols")
	}
	var own [len(lengthOrder)]byte
	for _, sym := range lengthOrder[:n] {
		own[sym] = byte(f.take(3))
	}
	if err := f.lits.build(own[:]); err != nil { // at this point lits is the code of the code lengths
		return f.fail(err)
	}
	lengths := make([]byte, 0, lits+dists)
	for len(lengths) < lits+dists {
		sym := f.lits.next(f.bits)
		if sym < 16 {
			lengths = append(lengths, byte(sym))
			continue
		}
		repeat := [...]struct {
			bits uint
			base int
		}{{2, 3}, {3, 3}, {7, 11}}[sym-16]
		times := int(f.take(repeat.bits)) + repeat.base
		value := byte(0)
		if sym == 16 {
			if len(lengths) == 0 {
				return f.fail(corrupt("a length repeats none"))
			}
			value = lengths[len(lengths)-1]
		}
		if len(lengths)+times > lits+dists {
			return f.fail(corrupt("there are too many lengths"))
		}
		lengths = append(lengths, bytes.Repeat([]byte{value}, times)...)
	}
	if lengths[endOf] == 0 {
		return f.fail(corrupt("a block has no end"))
	}
	f.Lits, f.Lengths = lits, lengths
	return f.bad
}

// codes builds the two codes from the code lengths of the block.
func (f *inflater) codes() error {
	if f.Lits < 1 || f.Lits > maxLits+2 || f.Lits > len(f.Lengths) || len(f.Lengths)-f.Lits > maxDists+2 ||
		slices.Max(f.Lengths) > longest {
		return corrupt("the code lengths are out of range")
	}
	if err := f.lits.build(f.Lengths[:f.Lits]); err != nil {
		return err
	}
	return f.dists.build(f.Lengths[f.Lits:])
}

// inflate appends text to out until out has room bytes, or until the compressed stream is past the
// position until. It reports whether the last block has ended.
func (f *inflater) inflate(room int, until int64) (ended bool, err error) {
	for len(f.out) < room && f.at() < until {
		switch {
		case f.Stored > 0:
			err = f.copyStored(room)
		case f.Lengths != nil:
			err = f.symbols(room, until)
		case f.Last:
			return true, nil
		default:
			err = f.begin()
		}
		if err != nil {
			return false, err
		}
	}
	return f.Last && !f.inside(), nil
}

func (f *inflater) copyStored(room int) error {
	for f.Stored > 0 && len(f.out) < room {
		b := f.take(8)
		if f.bad != nil {
			return f.bad
		}
		f.out = append(f.out, byte(b))
		f.Stored--
	}
	return nil
}

func (f *inflater) symbols(room int, until int64) error {
	for len(f.out) < room && f.at() < until {
		sym := f.lits.next(f.bits)
		switch {
		case f.bad != nil:
			return f.bad
		case sym < endOf:
			f.out = append(f.out, byte(sym))
			continue
		case sym == endOf:
			f.block = block{Last: f.Last}
			return nil
		case sym-endOf > len(lengthBase):
			return corrupt("a length is not known")
		}
		sym -= endOf + 1
		length := int(lengthBase[sym]) + int(f.take(uint(lengthBits[sym])))
		if sym = f.dists.next(f.bits); sym >= len(distBase) {
			return corrupt("a distance is not known")
		}
		from := len(f.out) - int(distBase[sym]) - int(f.take(uint(distBits[sym])))
		if f.bad != nil || from < 0 {
			return f.fail(corrupt("a distance reaches too far back"))
		}
		for i := range length { // copy byte by byte, because the source may overlap the copy
			f.out = append(f.out, f.out[from+i])
		}
	}
	return nil
}
