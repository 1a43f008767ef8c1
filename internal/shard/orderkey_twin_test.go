// SPDX-License-Identifier: Apache-2.0

package shard_test

import (
	"bytes"
	"cmp"
	"math/big"
	"regexp"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/lullhq/lull/internal/shard"
)

// plainKey is an order key in plain form: its parts, compared one after the other. It is slow and
// obvious. The packed bytes must sort in the same order.
type plainKey struct {
	epoch  uint32
	class  shard.Class
	number *big.Int // for the classes int, time and lsn
	text   string   // for the classes seq and lex
	run    shard.Run
	micros int64
	digest shard.Digest
}

func (k plainKey) compare(l plainKey) int {
	c := cmp.Compare(k.epoch, l.epoch)
	if c == 0 && k.number != nil {
		c = k.number.Cmp(l.number)
	}
	return cmp.Or(c, strings.Compare(k.text, l.text), bytes.Compare(k.run[:], l.run[:]),
		cmp.Compare(k.micros, l.micros), bytes.Compare(k.digest[:], l.digest[:]))
}

// written is a key in two forms: the parts that the upstream sends, and the plain form.
type written struct {
	parts shard.Parts
	text  string // the upstream's version
	plain plainKey
}

var (
	anULID = regexp.MustCompile(`^[0-7][0-9A-HJKMNP-TV-Za-hjkmnp-tv-z]{25}$`)
	aUUID  = regexp.MustCompile(`^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}$`)
)

// plainVersion parses a valid version in the obvious way.
func plainVersion(c shard.Class, text string) (number *big.Int, canonical string) {
	number = new(big.Int)
	switch c {
	case shard.ClassInt:
		number.SetString(text, 10)
	case shard.ClassTime:
		t, _ := time.Parse(time.RFC3339Nano, text)
		number.SetInt64(t.UnixMicro())
	case shard.ClassLSN:
		high, low, ok := strings.Cut(text, "/")
		if !ok {
			number.SetString(text, 10)
			break
		}
		number.SetString(high, 16)
		l, _ := new(big.Int).SetString(low, 16)
		number.Add(number.Lsh(number, 32), l)
	case shard.ClassSeq:
		return nil, strings.ToLower(text) + strings.Repeat("0", 32-len(text))
	case shard.ClassLex:
		switch {
		case anULID.MatchString(text):
			return nil, strings.ToUpper(text)
		case aUUID.MatchString(text):
			return nil, strings.ToLower(text)
		}
		return nil, text
	}
	return number, ""
}

var classes = []shard.Class{shard.ClassInt, shard.ClassSeq, shard.ClassTime, shard.ClassLSN, shard.ClassLex}

// versionText generates a valid version of a class. Small numbers and equal prefixes are frequent,
// so that keys are often equal or close.
func versionText(c shard.Class) *rapid.Generator[string] {
	switch c {
	case shard.ClassInt:
		return rapid.OneOf(
			rapid.Map(rapid.IntRange(0, 20), func(n int) string { return big.NewInt(int64(n)).String() }),
			rapid.Map(rapid.Uint64(), func(n uint64) string { return new(big.Int).SetUint64(n).String() }),
			rapid.StringMatching(`[0-9]{1,40}`),
			rapid.SampledFrom([]string{
				"007", "7", "9223372036854775807", "9223372036854775808", "18446744073709551615",
				"18446744073709551616", strings.Repeat("9", 40), "255", "256", "16777215", "16777216",
			}),
		)
	case shard.ClassSeq:
		return rapid.OneOf(rapid.StringMatching(`[0-9a-f]{1,3}`), rapid.StringMatching(`[0-9a-fA-F]{1,32}`))
	case shard.ClassTime:
		return rapid.Custom(func(t *rapid.T) string {
			at := time.UnixMicro(rapid.OneOf(rapid.Int64Range(0, 5), rapid.Int64Range(0, 1<<56-1)).Draw(t, "micros"))
			zone := time.FixedZone("", 60*rapid.IntRange(-12*60, 14*60).Draw(t, "zone"))
			return at.In(zone).Format(time.RFC3339Nano)
		})
	case shard.ClassLSN:
		return rapid.OneOf(rapid.StringMatching(`[0-9A-Fa-f]{1,8}/[0-9A-Fa-f]{1,8}`),
			rapid.Map(rapid.Uint64(), func(n uint64) string { return new(big.Int).SetUint64(n).String() }))
	default:
		return rapid.OneOf(
			rapid.StringMatching(`[a-c_-]{1,3}`), rapid.StringMatching(`[0-9A-Za-z_-]{1,64}`),
			rapid.StringMatching(`[0-7][0-9A-HJKMNP-TV-Za-hjkmnp-tv-z]{25}`),
			rapid.StringMatching(`[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-7[0-9A-Fa-f]{3}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}`),
			rapid.StringMatching(`[0-9A-Za-z]{27}`),
		)
	}
}

// anyKey generates a key of a class, with its plain form.
func anyKey(c shard.Class) *rapid.Generator[written] {
	return rapid.Custom(func(t *rapid.T) written {
		w := written{text: versionText(c).Draw(t, "version")}
		v, err := shard.ParseVersion(c, w.text)
		if err != nil {
			t.Fatalf("version %q of class %s: %v", w.text, c, err)
		}
		w.parts = shard.Parts{Version: v, Epoch: rapid.OneOf(rapid.Uint32Range(0, 2), rapid.Uint32Range(240, 300),
			rapid.Uint32()).Draw(t, "epoch")}
		if rapid.Bool().Draw(t, "resync") {
			copy(w.parts.Run[:], rapid.SliceOfN(rapid.ByteRange(0, 2), 16, 16).Draw(t, "run"))
		}
		micros := rapid.OneOf(rapid.Int64Range(0, 3), rapid.Int64Range(0, 1<<56-1)).Draw(t, "time")
		if micros != 0 {
			w.parts.Time = time.UnixMicro(micros).UTC()
		}
		copy(w.parts.Digest[:], rapid.SliceOfN(rapid.ByteRange(0, 1), 8, 8).Draw(t, "digest"))
		w.plain = plainKey{epoch: w.parts.Epoch, class: c, run: w.parts.Run, micros: micros, digest: w.parts.Digest}
		w.plain.number, w.plain.text = plainVersion(c, w.text)
		return w
	})
}
