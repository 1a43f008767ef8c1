// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"testing"
)

// again repeats a text a number of times, without keeping the result in memory.
func again(text []byte, times int) io.Reader {
	one := bytes.Repeat(text, 1000)
	all := make([]io.Reader, times/1000)
	for i := range all {
		all[i] = bytes.NewReader(one)
	}
	return io.MultiReader(all...)
}

// Even within a line, empty blocks or members must not keep a slice from ending.
func TestALineThatNeverGoesOnEndsTheSlice(t *testing.T) {
	t.Parallel()
	more := pack(t, gzip.NoCompression, "{}\n{")[:10+5+4] // one block of four bytes
	more[10] = 0                                          // the block is not the last one
	for name, tt := range map[string]struct{ begins, hollow []byte }{
		"empty members": {pack(t, gzip.BestSpeed, "{}\n{"), pack(t, gzip.BestSpeed, "")},
		"empty blocks":  {more, []byte{0, 0, 0, 0xff, 0xff}},
	} {
		var p Progress
		var err error
		asked := 0
		for range 2 {
			in := io.MultiReader(bytes.NewReader(tt.begins), again(tt.hollow, 20_000_000))
			_, _ = io.CopyN(io.Discard, in, p.At.From)
			p, err = Read(in, p, Limits{
				Lines: 1000, MaxLine: 1 << 20, MaxText: 1 << 30, Stop: func() bool { asked++; return true },
			}, func([]Line) (map[int]string, error) { return nil, nil })
		}
		if !errors.Is(err, errCorrupt) || asked > maxHollow+10 || p.Sent != 1 || p.Lines != 1 {
			t.Errorf("%s: error %v after %d chunks, %+v; want one line, and soon an error about the rest", name, err, asked, p)
		}
	}
}
