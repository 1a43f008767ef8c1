// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"bufio"
	"errors"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/s2"
)

// chunk is the number of bytes of text that are handled at once.
const chunk = 32 << 10

// stream reads the text of an object, chunk by chunk.
type stream interface {
	// next returns the next chunk, which is valid until the following call of next. The chunk may
	// be empty. After the last chunk the error is io.EOF.
	next() ([]byte, error)
	// mark returns the position after n bytes of the last chunk.
	mark(n int) Position
}

// Position is a place in an object where reading can continue.
type Position struct {
	// From is the first byte of the object that is needed to continue.
	From int64 `json:"from,omitempty"`
	// Pass is the number of bytes of text after From that were already read.
	Pass int `json:"pass,omitempty"`
	// Gzip is set within a compressed object.
	Gzip *Gzip `json:"gzip,omitempty"`
}

// Gzip is a place within a gzip object.
type Gzip struct {
	block
	Bit    uint   `json:"bit,omitempty"`    // number of the bit within the byte Position.From
	Body   bool   `json:"body,omitempty"`   // the position is after the header of a member
	Member int64  `json:"member,omitempty"` // number of members that were read to their end
	CRC    uint32 `json:"crc,omitempty"`
	Size   uint32 `json:"size,omitempty"`   // bytes of text that were read of the current member
	Before []byte `json:"before,omitempty"` // the text that distances may still refer to, compressed
}

// magic starts every member of gzip (RFC 1952).
const magic = "\x1f\x8b"

// open continues to read at a position. The reader in gives the object from the byte Position.From
// on. The first bytes decide whether an object is compressed, because names and headers are often
// wrong.
func open(in io.Reader, p Position) (stream, error) {
	if p.Gzip != nil {
		return resume(in, p)
	}
	whole := bufio.NewReaderSize(in, ahead)
	if p.From == 0 {
		head, err := whole.Peek(len(magic))
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if string(head) == magic {
			return resume(whole, Position{Gzip: &Gzip{}})
		}
	}
	return &plainText{in: whole, at: p.From}, nil
}

// ahead is the number of bytes of an object that are read at once.
const ahead = 16 << 10

// plainText reads an object that is not compressed.
type plainText struct {
	in    io.Reader
	buf   [chunk]byte
	at    int64
	begun int64
}

func (s *plainText) next() ([]byte, error) {
	s.begun = s.at
	n, err := io.ReadFull(s.in, s.buf[:])
	s.at += int64(n)
	if n > 0 {
		err = nil // the next call returns the error
	}
	return s.buf[:n], err
}

func (s *plainText) mark(n int) Position { return Position{From: s.begun + int64(n)} }

// gzipped reads a gzip object: one member after the other.
type gzipped struct {
	inflater
	base   int64  // offset of the first bit of in, in bytes of the object
	other  []byte // the second buffer, which out does not use
	now    Gzip   // the state without Before
	begun  Gzip   // the state at the start of the chunk
	from   int64  // the bit in the object where the chunk starts
	start  int    // index in out where the chunk starts
	pass   int    // number of bytes of text still to skip, because they were read before
	passed int    // number of bytes of the chunk that were skipped
	failed error  // the error after the chunk
}

func resume(in io.Reader, p Position) (stream, error) {
	s := &gzipped{base: p.From, now: *p.Gzip, pass: p.Pass}
	s.bits = &bits{in: bufio.NewReaderSize(in, ahead)}
	s.block = p.Gzip.block
	s.out, s.other = make([]byte, 0, window+chunk+maxLength), make([]byte, 0, window+chunk+maxLength)
	if p.Gzip.Before != nil {
		before, err := s2.Decode(nil, p.Gzip.Before)
		if err != nil || len(before) > window {
			return nil, corrupt("the text before the position cannot be read")
		}
		s.out = append(s.out, before...)
	}
	s.now.Before = nil
	if s.Lengths != nil {
		if err := s.codes(); err != nil {
			return nil, err
		}
	}
	s.take(p.Gzip.Bit)
	return s, s.bad
}

func (s *gzipped) next() ([]byte, error) {
	text, err := s.chunk()
	s.passed = min(s.pass, len(text))
	s.pass -= s.passed
	return text[s.passed:], err
}

// chunk decompresses the next chunk. If the object has no text there, chunk reads at most as many
// compressed bytes as a chunk has. A chunk belongs to one member.
func (s *gzipped) chunk() ([]byte, error) {
	if s.failed != nil {
		return nil, s.failed
	}
	s.now.block = s.block
	s.begun, s.from = s.now, s.base*8+s.at()
	// The text before the chunk moves to the front of the other buffer.
	before := s.out[max(len(s.out)-window, 0):]
	s.out, s.other = append(s.other[:0], before...), s.out
	s.start = len(s.out)
	if !s.now.Body {
		if s.failed = s.head(); s.failed != nil {
			return nil, s.failed
		}
	}
	ended, err := s.inflate(s.start+chunk, s.at()+8*chunk)
	text := s.out[s.start:]
	s.now.CRC = crc32.Update(s.now.CRC, crc32.IEEETable, text)
	s.now.Size += uint32(len(text))
	if ended && err == nil {
		err = s.tail()
	}
	if s.failed = err; len(text) > 0 {
		err = nil // the next call returns the error
	}
	return text, err
}

// head reads the header of a member (RFC 1952, section 2.3). If there is no other member, the
// error is io.EOF.
func (s *gzipped) head() error {
	if s.fill(); s.have == 0 && errors.Is(s.err, io.EOF) {
		return io.EOF
	}
	var head [10]byte
	for i := range head {
		head[i] = byte(s.take(8))
	}
	flags := head[3]
	switch {
	case string(head[:2]) != magic:
		return s.fail(corrupt("the data after a member is not a member"))
	case head[2] != 8 || flags&0xe0 != 0:
		return s.fail(corrupt("a member is of an unknown kind"))
	}
	if flags&4 != 0 {
		for range s.take(16) {
			s.take(8)
		}
	}
	for _, named := range []byte{8, 16} {
		for n := 0; flags&named != 0 && s.take(8) != 0; n++ {
			if n == maxName {
				return corrupt("the name in the head of a member is too long")
			}
		}
	}
	if flags&2 != 0 {
		s.take(16)
	}
	if s.bad != nil {
		return s.bad
	}
	s.block, s.out, s.start = block{}, s.out[:0], 0 // a member cannot refer to text of an earlier member
	s.now = Gzip{Body: true, Member: s.now.Member}
	return nil
}

// maxName bounds the name and the comment in the header of a member, so that a slice always
// ends.
const maxName = 32 << 10

// tail reads the end of a member and compares its checksum and size with the text.
func (s *gzipped) tail() error {
	s.align()
	sum, size := s.take(32), s.take(32)
	if s.bad != nil || sum != s.now.CRC || size != s.now.Size {
		return s.fail(corrupt("the checksum does not fit the text"))
	}
	s.block = block{}
	s.now = Gzip{Member: s.now.Member + 1}
	return nil
}

func (s *gzipped) mark(n int) Position {
	g, from, before := s.begun, s.from, s.out[:s.start]
	p := Position{Pass: s.passed + n}
	if s.start+p.Pass == len(s.out) && s.failed == nil {
		// Continue after the chunk. Otherwise lull would read a part of the object without text
		// again and again.
		g, from, before, p.Pass = s.now, s.base*8+s.at(), s.out[max(len(s.out)-window, 0):], 0
		g.block = s.block
	}
	g.Bit, p.From, p.Gzip = uint(from%8), from/8, &g
	if g.Body && len(before) > 0 {
		g.Before = s2.Encode(nil, before)
	}
	return p
}
