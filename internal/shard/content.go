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
	return Content(h.Sum(nil)[:8])
}
