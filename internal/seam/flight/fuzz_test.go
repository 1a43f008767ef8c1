// SPDX-License-Identifier: Apache-2.0

package flight_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"testing"

	"github.com/klauspost/compress/s2"

	"github.com/lullhq/lull/internal/seam/flight"
)

// FuzzDecode gives any bytes to the decoder: as a whole manifest, and as a block with the right
// checksum.
func FuzzDecode(f *testing.F) {
	for _, m := range []*flight.Manifest{sample(), {}} {
		b, err := flight.Encode(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, false)
		plain, err := s2.Decode(nil, b[len("LULL")+1+4:])
		if err != nil {
			f.Fatal(err)
		}
		f.Add(plain, true)
	}
	f.Add([]byte("\x00\x00\x00\x00\xff\xff\xff\xff\x7f"), true)
	f.Fuzz(func(t *testing.T, b []byte, sealed bool) {
		if sealed {
			block := s2.Encode(nil, b)
			b = binary.LittleEndian.AppendUint32([]byte("LULL\x01"),
				crc32.Checksum(block, crc32.MakeTable(crc32.Castagnoli)))
			b = append(b, block...)
		}
		m, err := flight.Decode(b)
		if err != nil {
			return
		}
		again, err := flight.Encode(m)
		if err != nil {
			t.Fatalf("encode the decoded manifest: %v", err)
		}
		if sealed && !bytes.Equal(again, b) {
			t.Errorf("decoded %x, and encoded the manifest as %x", b, again)
		}
	})
}
