// SPDX-License-Identifier: Apache-2.0

package shard_test

import (
	"cmp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/lullhq/lull/internal/shard"
)

func pack(t interface{ Fatalf(string, ...any) }, p shard.Parts) shard.OrderKey {
	k, err := shard.NewOrderKey(p)
	if err != nil {
		t.Fatalf("pack %+v: %v", p, err)
	}
	return k
}

func TestPackedAndPrintedKeysSortAsTheirParts(t *testing.T) {
	t.Parallel()
	for _, c := range classes {
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				a, b := anyKey(c).Draw(t, "a"), anyKey(c).Draw(t, "b")
				if rapid.Bool().Draw(t, "same version") { // the later parts of the key then decide
					b.parts.Version, b.parts.Epoch, b.plain.number, b.plain.text, b.plain.epoch = a.parts.Version,
						a.parts.Epoch, a.plain.number, a.plain.text, a.plain.epoch
				}
				ka, kb := pack(t, a.parts), pack(t, b.parts)
				want := a.plain.compare(b.plain)
				if got := cmp.Compare(ka, kb); got != want {
					t.Fatalf("packed %x and %x compare %d, their parts %d", string(ka), string(kb), got, want)
				}
				if got := cmp.Compare(ka.String(), kb.String()); got != want {
					t.Fatalf("printed %s and %s compare %d, their parts %d", ka, kb, got, want)
				}
				if shard.Lowest >= ka {
					t.Fatalf("%x is not above the lowest key", string(ka))
				}
			})
		})
	}
}

func TestKeysComeBackFromBytesAndFromPrint(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := anyKey(rapid.SampledFrom(classes).Draw(t, "class")).Draw(t, "key")
		k := pack(t, w.parts)
		parts, err := k.Parts()
		if err != nil || parts != w.parts {
			t.Fatalf("%x has parts %+v, %v, want %+v", string(k), parts, err, w.parts)
		}
		back, err := shard.ParseOrderKey(k.String())
		if err != nil || back != k {
			t.Fatalf("%s reads as %x, %v, want %x", k, string(back), err, string(k))
		}
		if got := parts.Version.Class(); got != w.plain.class {
			t.Fatalf("class %s, want %s", got, w.plain.class)
		}
	})
}

func TestSameContentAndConflictsLookAtTheirPartsOnly(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SampledFrom([]shard.Class{shard.ClassInt, shard.ClassLex}).Draw(t, "class")
		a, b := anyKey(c).Draw(t, "a"), anyKey(c).Draw(t, "b")
		b.parts.Epoch, b.parts.Version = a.parts.Epoch, a.parts.Version
		for name, same := range map[string]func(){
			"run": func() { b.parts.Run = a.parts.Run }, "time": func() { b.parts.Time = a.parts.Time },
			"digest": func() { b.parts.Digest = a.parts.Digest },
		} {
			if rapid.Bool().Draw(t, name) {
				same()
			}
		}
		ka, kb := pack(t, a.parts), pack(t, b.parts)
		run, digest := a.parts.Run == b.parts.Run, a.parts.Digest == b.parts.Digest
		if got, want := shard.SameContent(ka, kb), run && digest && !a.parts.Time.Equal(b.parts.Time); got != want {
			t.Fatalf("%s and %s: same content %v, want %v", ka, kb, got, want)
		}
		if got, want := shard.VersionConflict(ka, kb), run && !digest; got != want {
			t.Fatalf("%s and %s: conflict %v, want %v", ka, kb, got, want)
		}
		if got := ka.Behind(kb); got != shard.SameVersion {
			t.Fatalf("%s behind %s: %s", ka, kb, got)
		}
		b.parts.Epoch++
		if got := ka.Behind(pack(t, b.parts)); got != shard.NewerVersion {
			t.Fatalf("%s behind another epoch: %s", ka, got)
		}
	})
}

func TestCompactKeysOfCommonVersions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		class shard.Class
		text  string
		bytes int
		print string
	}{
		{shard.ClassInt, "0", 18, "e010,i010,-,00000000000000000,0000000000000000"},
		{shard.ClassInt, "12345", 20, "e010,i0512345,-,00000000000000000,0000000000000000"},
		{shard.ClassInt, "16777215", 21, "e010,i0816777215,-,00000000000000000,0000000000000000"},
		{shard.ClassInt, "1778166900123456", 25, "e010,i161778166900123456,-,00000000000000000,0000000000000000"},
		{
			shard.ClassSeq, "0055aed6dca90281e5", 34,
			"e010,s0055AED6DCA90281E500000000000000,-,00000000000000000,0000000000000000",
		},
		{
			shard.ClassTime, "2026-05-04T12:00:00+02:00", 25,
			"e010,t161777888800000000,-,00000000000000000,0000000000000000",
		},
		{shard.ClassLSN, "16/B374D848", 23, "e010,p1197500059720,-,00000000000000000,0000000000000000"},
		{shard.ClassLSN, "97500059720", 23, "e010,p1197500059720,-,00000000000000000,0000000000000000"},
		{
			shard.ClassLex, "01arz3ndektsv4rrffq69g5fav", 45,
			"e010,l01ARZ3NDEKTSV4RRFFQ69G5FAV,-,00000000000000000,0000000000000000",
		},
	} {
		v, err := shard.ParseVersion(c.class, c.text)
		if err != nil {
			t.Errorf("%s %q: %v", c.class, c.text, err)
			continue
		}
		k := pack(t, shard.Parts{Version: v})
		if got := len(k); got != c.bytes {
			t.Errorf("%s %q: %d bytes, want %d", c.class, c.text, got, c.bytes)
		}
		if got := k.String(); got != c.print {
			t.Errorf("%s %q: printed %s, want %s", c.class, c.text, got, c.print)
		}
	}
}

func TestVersionsThatAreNoneAreRefusedAndNeverCut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		class shard.Class
		texts []string
	}{
		{shard.ClassInt, []string{
			"", "-1", "+1", "1.0", "1e3", " 1", "1 ", "0x10", "1_000", "١",
			strings.Repeat("1", 41),
		}},
		{shard.ClassSeq, []string{"", "g", "0x1", strings.Repeat("0", 33), "12 "}},
		{shard.ClassTime, []string{
			"", "2026-05-04", "2026-05-04T12:00:00", "1777888800", "1969-12-31T23:59:59Z",
			"5000-01-01T00:00:00Z", "2026-13-01T00:00:00Z",
		}},
		{shard.ClassLSN, []string{
			"", "/", "16/", "/1", "G/1", "1/2/3", "123456789/1", "1/123456789", "-1",
			"18446744073709551616", "ff",
		}},
		{shard.ClassLex, []string{"", "a b", "a,b", "a#b", "ä", "a\x00", strings.Repeat("a", 65)}},
		{0, []string{"1"}},
		{'x', []string{"1"}},
	} {
		for _, text := range c.texts {
			if v, err := shard.ParseVersion(c.class, text); err == nil {
				t.Errorf("class %s: %q was read as %s", c.class, text, v)
			}
		}
	}
}

func TestKeysOutsideTheirRangeAreRefused(t *testing.T) {
	t.Parallel()
	v, err := shard.ParseVersion(shard.ClassInt, "1")
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]shard.Parts{
		"no version":             {},
		"event time before 1970": {Version: v, Time: time.UnixMicro(-1)},
		"event time after 4253":  {Version: v, Time: time.UnixMicro(1 << 56)},
	} {
		if k, err := shard.NewOrderKey(p); err == nil {
			t.Errorf("%s: packed as %x", name, string(k))
		}
	}
	if _, err := shard.TimeVersion(time.UnixMicro(-1)); err == nil {
		t.Error("a version before 1970 was read")
	}
}

func TestBytesThatAreNotAKeyAreToldSo(t *testing.T) {
	t.Parallel()
	v, err := shard.ParseVersion(shard.ClassInt, "12345")
	if err != nil {
		t.Fatal(err)
	}
	good := string(pack(t, shard.Parts{Version: v, Epoch: 300, Run: shard.Run{1}, Time: time.UnixMicro(5)}))
	for n := range len(good) {
		if p, err := shard.OrderKey(good[:n]).Parts(); err == nil {
			t.Errorf("cut to %d bytes: %+v", n, p)
		}
	}
	if _, err := shard.OrderKey(good + "\x00").Parts(); err == nil {
		t.Error("a byte more was read")
	}
	const rest = "\x00\x00\x00\x00\x00\x00\x00\x00\x01\x02\x03\x04\x05\x06\x07\x08" // no run, no time, and a digest
	for name, begins := range map[string]string{
		"a character that no version has": "\x00\xa0 \x00",
		"a ULID in lower case":            "\x00\xa001arz3ndektsv4rrffq69g5fav\x00",
		"no text":                         "\x00\xa0\x00",
		"no class":                        "\x00\xc0",
		"a number of 41 digits":           "\x00\x31" + strings.Repeat("\xff", 17),
		"a number with a leading zero":    "\x00\x22\x00\x01",
		"a time after 4253":               "\x00\x68" + strings.Repeat("\xff", 8),
		"a log position of 9 bytes":       "\x00\x89" + strings.Repeat("\xff", 9),
		"a one-byte epoch in two bytes":   "\xf8\x07\x20",
		"an epoch of 33 bits":             "\xfc\x01\x00\x00\x01\x00\x20",
		"a run of zeros":                  "\x00\x20\x01" + strings.Repeat("\x00", 15),
		"two runs":                        "\x00\x20\x02" + strings.Repeat("\x01", 31),
		"a sequencer with a length":       "\x00\x41" + strings.Repeat("\x01", 16),
	} {
		if p, err := shard.OrderKey(begins + rest).Parts(); err == nil {
			t.Errorf("%s was read: %+v", name, p)
		}
	}
	if got := shard.OrderKey("xyz").String(); got != "invalid:78797a" {
		t.Errorf("printed %s", got)
	}
	if got := shard.Lowest.String(); got != "lowest" {
		t.Errorf("printed %s", got)
	}
	if got := shard.OrderKey("").String(); got != "" {
		t.Errorf("printed %s", got)
	}
}

func TestRunsAreULIDs(t *testing.T) {
	t.Parallel()
	const text = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
	r, err := shard.ParseRun(strings.ToLower(text))
	if err != nil || r.String() != text {
		t.Errorf("read as %s, %v, want %s", r, err, text)
	}
	if r[0] != 0x01 || r[1] != 0x56 {
		t.Errorf("bytes %x, want those of the ULID: 0156...", r)
	}
	for _, bad := range []string{
		"", text[1:], text + "0", "81ARZ3NDEKTSV4RRFFQ69G5FAV", "01ARZ3NDEKTSV4RRFFQ69G5FAU",
		strings.Repeat("0", 26),
	} {
		if r, err := shard.ParseRun(bad); err == nil {
			t.Errorf("%q was read as %s", bad, r)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		var r shard.Run
		copy(r[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "run"))
		if back, err := shard.ParseRun(r.String()); r != (shard.Run{}) && (err != nil || back != r) {
			t.Fatalf("%x printed %s reads as %x, %v", r, r, back, err)
		}
	})
}

func TestClassesHaveNames(t *testing.T) {
	t.Parallel()
	for _, c := range classes {
		if got, err := shard.ParseClass(c.String()); err != nil || got != c {
			t.Errorf("%s reads as %s, %v", c, got, err)
		}
	}
	for _, bad := range []string{"", "none", "Int", "i"} {
		if c, err := shard.ParseClass(bad); err == nil {
			t.Errorf("%q was read as %s", bad, c)
		}
	}
}

func TestDocIDsAreCheckedAndTakenApart(t *testing.T) {
	t.Parallel()
	for _, good := range []string{
		"pages#a", "p#" + strings.Repeat("x", shard.MaxIDBytes), "a-1#b#c",
		strings.Repeat("a", 32) + "#1",
	} {
		d, err := shard.ParseDocID(good)
		if err != nil {
			t.Errorf("%.40q: %v", good, err)
			continue
		}
		if got := string(d.Collection()) + "#" + d.ID(); got != good || !d.IsDocument() {
			t.Errorf("%.40q is taken apart as %.40q, a document: %v", good, got, d.IsDocument())
		}
	}
	for _, bad := range []string{
		"", "#", "a", "a#", "#a", "A#b", "-a#b", "a_b#c", "!health#search",
		strings.Repeat("a", 33) + "#b", "p#" + strings.Repeat("x", shard.MaxIDBytes+1),
	} {
		if d, err := shard.ParseDocID(bad); err == nil {
			t.Errorf("%.40q was read as %.40q", bad, d)
		}
	}
	for _, own := range []shard.DocID{shard.HealthRow("search"), shard.RunRow("prune")} {
		if own.IsDocument() {
			t.Errorf("%s counts as a document", own)
		}
	}
}

// Upper and lower case mean the same only in ULIDs and UUIDs.
func TestCaseCountsInWhatIsNotQuiteAUUID(t *testing.T) {
	t.Parallel()
	for text, counts := range map[string]bool{
		"0190163D-8694-739B-AEA5-966C26F8AD9F": false,
		"0190163D-8694-739B-AEA5-966C26F8AD9G": true,
		"0190163D-8694-739B-AEA5-966C26F8A-9F": true,
		"0190163D08694-739B-AEA5-966C26F8AD9F": true,
		"0190163-D869-4739-BAEA-5966C26F8AD9F": true,
		"0190163D-869-4739-BAEA-5966C26F8AD9F": true,
		"0190163D-8694-739-BAEA-5966C26F8AD9F": true,
		"0190163D-8694-739B-AEA-5966C26F8AD9F": true,
		"0190163D-8694-739B-AEA5-966C-26F8-AD": true,
		"01ARZ3NDEKTSV4RRFFQ69G5FAV":           false,
		"01ARZ3NDEKTSV4RRFFQ69G5FAU":           true,
	} {
		upper, err := shard.ParseVersion(shard.ClassLex, text)
		lower, bad := shard.ParseVersion(shard.ClassLex, strings.ToLower(text))
		if err != nil || bad != nil || (upper.Compare(lower) != 0) != counts {
			t.Errorf("%s and its lower-case form: errors %v and %v, two versions: %v", text, err, bad, upper.Compare(lower) != 0)
		}
	}
}
