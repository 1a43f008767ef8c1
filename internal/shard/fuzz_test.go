// SPDX-License-Identifier: Apache-2.0

package shard_test

import (
	"math/big"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/lullhq/lull/internal/shard"
)

func FuzzParseOrderKey(f *testing.F) {
	for _, s := range []string{
		"", "lowest", "e010,i0512345,-,01763654400123456,9f86d081884c7d65",
		"e03300,s0055AED6DCA90281E500000000000000,01ARZ3NDEKTSV4RRFFQ69G5FAV,00000000000000000,0000000000000000",
		"e010,t161777888800000000,-,00000000000000000,0000000000000000",
		"e010,p1197500059720,-,00000000000000000,0000000000000000", "e010,la-b_C,-,00000000000000000,FFFFFFFFFFFFFFFF",
		"e010,i020,-,0,0", "e009,i011,-,00000000000000000,0000000000000000",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		k, err := shard.ParseOrderKey(s)
		if err != nil {
			return
		}
		if back, err := shard.ParseOrderKey(k.String()); err != nil || back != k {
			t.Errorf("%q is %x, which prints as %s and reads as %x, %v", s, string(k), k, string(back), err)
		}
		if _, err := k.Parts(); err != nil {
			t.Errorf("%q is %x: %v", s, string(k), err)
		}
	})
}

func FuzzOrderKeyParts(f *testing.F) {
	for _, s := range []string{
		"", "\x00", "\x00\x22\x30\x39\x00\x00\x00\x00\x00\x00\x00\x00\x01\x02\x03\x04\x05\x06\x07\x08",
		"\xf8\xff\x20\x01\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x00\x00\x00\x00\x00\x00\x05\x01\x02\x03\x04\x05\x06\x07\x08",
		"\x00\xa0abc\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x02\x03\x04\x05\x06\x07\x08",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		k := shard.OrderKey(b)
		p, err := k.Parts()
		if err != nil {
			return
		}
		if back, err := shard.NewOrderKey(p); err != nil || back != k {
			t.Errorf("%x has parts %+v, which pack as %x, %v", b, p, string(back), err)
		}
		if back, err := shard.ParseOrderKey(k.String()); err != nil || back != k {
			t.Errorf("%x prints as %s, which reads as %x, %v", b, k, string(back), err)
		}
	})
}

func FuzzParseVersion(f *testing.F) {
	for _, s := range []string{
		"0", "007", "16/B374D848", "2026-05-04T12:00:00.123456Z", "0055aed6dca90281e5",
		"01arz3ndektsv4rrffq69g5fav", "99999999999999999999999999999999999999999",
	} {
		for c := range classes {
			f.Add(byte(c), s)
		}
	}
	f.Fuzz(func(t *testing.T, n byte, text string) {
		c := classes[int(n)%len(classes)]
		v, err := shard.ParseVersion(c, text)
		if err != nil {
			return
		}
		if v.Class() != c {
			t.Errorf("%q of class %s has class %s", text, c, v.Class())
		}
		k, err := shard.NewOrderKey(shard.Parts{Version: v})
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		p, err := k.Parts()
		if err != nil || p.Version != v {
			t.Errorf("%q packs as %x, which has version %s, %v", text, string(k), p.Version, err)
		}
		// plainVersion must read every text that the parser accepts.
		number, canonical := plainVersion(c, text)
		one := big.NewInt(1)
		if number == nil || number.Cmp(new(big.Int).Exp(big.NewInt(10), big.NewInt(40), nil)) >= 0 {
			if canonical == "" {
				t.Errorf("%q of class %s is out of range and was read as %s", text, c, v)
			}
			return
		}
		if c != shard.ClassInt {
			return
		}
		next, err := shard.ParseVersion(c, new(big.Int).Add(number, one).String())
		if err != nil {
			return // 40 nines have no successor
		}
		after, err := shard.NewOrderKey(shard.Parts{Version: next})
		if err != nil || after <= k {
			t.Errorf("%q is not below its successor %s", text, next)
		}
	})
}

func FuzzParseDocID(f *testing.F) {
	for _, s := range []string{"pages#a", "#", "a-1#b#c", "!run#prune", "A#b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := shard.ParseDocID(s)
		if err != nil {
			return
		}
		if string(d) != s || !d.IsDocument() {
			t.Errorf("%q was read as %q, a document: %v", s, d, d.IsDocument())
		}
		if strings.ContainsFunc(s, shard.Control) || !utf8.ValidString(s) {
			return // an earlier build accepted such ids in events, and their rows can still be read
		}
		if back, err := shard.NewDocID(d.Collection(), d.ID()); err != nil || back.In(d.Sink()) != d {
			t.Errorf("the parts of %q make %q, %v", s, back, err)
		}
	})
}
