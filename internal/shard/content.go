package shard

import (
	"crypto/sha256"
	"encoding/binary"
)

// Content recognises the bytes of a committed document in its sink: 8 bytes. A row whose document
// may differ from them has none.
type Content string

// ContentOf is the content of a document that was put into a sink as version k. The generation says
// which sink that is, so that one which was made anew has nothing to recognise. The version is part
// of it. So what an older build of lull commits, which leaves the attribute as it is, is never
// taken for these bytes.
func ContentOf(generation string, k OrderKey, document []byte) Content {
	h := sha256.New()
	for _, part := range []string{generation, string(k)} {
		h.Write(binary.AppendUvarint(nil, uint64(len(part))))
		h.Write([]byte(part))
	}
	h.Write(document)
	c := h.Sum(nil)[:8]
	of := sha256.Sum256([]byte(generation))
	c[0], c[1] = of[0], of[1]&0xf0|c[1]&0x0f
	return Content(c)
}

// From reports whether the content is from this generation, by its first 12 bits: other bytes then
// mean another document. One other generation in 4,096 is taken for this one.
func (c Content) From(generation string) bool {
	same := ContentOf(generation, "", nil)
	return len(c) == len(same) && c[0] == same[0] && c[1]&0xf0 == same[1]&0xf0
}
