// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"
)

// pack compresses each part as a separate member.
func pack(t testing.TB, level int, parts ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	for i, part := range parts {
		w, err := gzip.NewWriterLevel(&b, level)
		if err != nil {
			t.Fatal(err)
		}
		if i%2 == 1 {
			w.Name, w.Comment, w.Extra = "part", "of several", []byte("extra")
		}
		if _, err = io.WriteString(w, part); err == nil {
			err = w.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// sample returns text like that of exports, with some parts that do not compress.
func sample(seed uint64, lines int) string {
	r := rand.New(rand.NewPCG(seed, 1))
	var b strings.Builder
	for i := range lines {
		fmt.Fprintf(&b, `{"id":"%d","title":"page %d","price":%d.50,"tags":["a","b"]}`+"\n", i, r.IntN(1000), r.IntN(99))
		if r.IntN(50) == 0 {
			for range r.IntN(2000) {
				b.WriteByte(byte(r.Uint32()))
			}
		}
	}
	return b.String()
}

// whole reads a stream to its end. If again is not 0, the reader ends every again chunks, and
// another reader continues at a random place in the last chunk.
func whole(data []byte, again int, dice *rand.Rand) (string, error) {
	var p Position
	var text strings.Builder
	for {
		s, err := open(bytes.NewReader(data[p.From:]), p)
		if err != nil {
			return text.String(), err
		}
		for n := 1; ; n++ {
			part, err := s.next()
			if errors.Is(err, io.EOF) {
				return text.String(), nil
			}
			if err != nil {
				return text.String(), err
			}
			if n == again {
				part = part[:dice.IntN(len(part)+1)]
				kept, err := Parse(Progress{At: s.mark(len(part))}.String()) // as a row keeps the progress
				if err != nil {
					return "", err
				}
				p = kept.At
			}
			if text.Write(part); n == again {
				break
			}
		}
	}
}

func TestAnObjectIsReadOnFromAnyPlace(t *testing.T) {
	t.Parallel()
	text := sample(1, 5000)
	for name, tt := range map[string]struct {
		data []byte
		want string
	}{
		"plain": {[]byte(text), text}, "gzip": {pack(t, gzip.DefaultCompression, text), text},
		"fast": {pack(t, gzip.BestSpeed, text), text}, "stored": {pack(t, gzip.NoCompression, text), text},
		"huffman": {pack(t, gzip.HuffmanOnly, text), text}, "nothing": {nil, ""}, "one byte": {[]byte("x"), "x"},
		"members":      {pack(t, gzip.BestCompression, text[:100], "", text[100:7000], text[7000:]), text},
		"empty member": {pack(t, gzip.BestSpeed, ""), ""},
	} {
		for _, again := range []int{0, 1, 2, 7} {
			dice := rand.New(rand.NewPCG(uint64(again), 2))
			if got, err := whole(tt.data, again, dice); err != nil || got != tt.want {
				t.Errorf("%s, another reader every %d chunks: got %d bytes, error %v; want the %d bytes that were written", name, again,
					len(got), err, len(tt.want))
			}
		}
	}
}

func TestABrokenObjectIsReadAsFarAsItGoes(t *testing.T) {
	t.Parallel()
	text := sample(2, 5000)
	data := pack(t, gzip.BestSpeed, text)
	for name, broken := range map[string][]byte{
		"cut":                        data[:len(data)*3/4],
		"checksum":                   append(bytes.Clone(data[:len(data)-8]), 0, 0, 0, 0, 0, 0, 0, 0),
		"text after the last member": append(bytes.Clone(data), "and more"...),
		"no end":                     data[:len(data)-3],
	} {
		got, err := whole(broken, 3, rand.New(rand.NewPCG(1, 1)))
		if !errors.Is(err, errCorrupt) || !strings.HasPrefix(text, got) || len(got) < len(text)/2 {
			t.Errorf("%s: got %d bytes of %d, error %v; want most of the text, and an error about the rest", name, len(got), len(text),
				err)
		}
	}
}

// If the connection breaks, the object is not reported as broken.
func TestAConnectionThatEndsAnywhereMayBeTriedAgain(t *testing.T) {
	t.Parallel()
	for _, data := range [][]byte{
		pack(t, gzip.NoCompression, "{}", `{"a":1}`), pack(t, gzip.BestCompression, sample(5, 30)),
		pack(t, gzip.HuffmanOnly, "aab"),
	} {
		for n := range data {
			part := io.MultiReader(bytes.NewReader(data[:n]), iotest.ErrReader(io.ErrUnexpectedEOF))
			s, err := open(part, Position{})
			for err == nil {
				_, err = s.next()
			}
			if errors.Is(err, errCorrupt) || !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("after %d bytes of %d: error %v; want the error of the connection, which a retry can fix", n, len(data), err)
			}
		}
	}
}

// FuzzInflate compares the decompression with compress/flate: both return the same text, or both an
// error.
func FuzzInflate(f *testing.F) {
	for level := flate.HuffmanOnly; level <= flate.BestCompression; level++ {
		var b bytes.Buffer
		w, err := flate.NewWriter(&b, level)
		if err != nil {
			f.Fatal(err)
		}
		_, _ = io.WriteString(w, sample(3, 200))
		_ = w.Close()
		f.Add(b.Bytes())
	}
	f.Add([]byte{0x01, 0x00, 0x00, 0xff, 0xff})
	f.Add([]byte{0x4b, 0x04, 0x00})
	f.Fuzz(func(t *testing.T, data []byte) {
		const most = 1 << 20
		want, bad := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(data)), most))
		i := &inflater{bits: &bits{in: bufio.NewReader(bytes.NewReader(data))}}
		ended, err := i.inflate(most, 1<<40)
		if len(want) == most {
			return
		}
		if (bad == nil) != (err == nil && ended) {
			t.Fatalf("compress/flate returns %v, but inflate returns %v (ended: %v)", bad, err, ended)
		}
		if bad == nil && !bytes.Equal(i.out, want) {
			t.Fatalf("got %d bytes, want %d", len(i.out), len(want))
		}
	})
}

func BenchmarkGunzip(b *testing.B) {
	text := sample(4, 200_000)
	data := pack(b, gzip.DefaultCompression, text)
	b.Run("this", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			if got, err := whole(data, 0, nil); err != nil || len(got) != len(text) {
				b.Fatal(len(got), err)
			}
		}
	})
	b.Run("compress-gzip", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			r, err := gzip.NewReader(bytes.NewReader(data))
			if err != nil {
				b.Fatal(err)
			}
			if n, err := io.Copy(io.Discard, r); err != nil || n != int64(len(text)) { //nolint:gosec // text of our own
				b.Fatal(n, err)
			}
		}
	})
}
