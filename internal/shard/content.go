// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"crypto/sha256"
	"encoding/binary"
)

// Content is a short hash, 8 bytes, that recognises the bytes of a committed document in its sink.
// If the document in the sink may have other bytes, the row has no Content.
type Content string

// ContentOf returns the content of a document that was put into a sink as version k. The generation
// names the index in the sink. So the contents do not match after the index was created again. The
// hash includes the version, because an older build of lull commits a version without changing the
// attribute. The old attribute then does not match the new version.
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

// From reports whether the content is from this generation, by its first 12 bits. If it is, another
// content means other bytes. One in 4,096 other generations is mistaken for this one.
func (c Content) From(generation string) bool {
	same := ContentOf(generation, "", nil)
	return len(c) == len(same) && c[0] == same[0] && c[1]&0xf0 == same[1]&0xf0
}
