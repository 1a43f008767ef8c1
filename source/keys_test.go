// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/source/sourcetest"
)

func TestMissingNegativeNonNumericOrLongVersionIsADeadLetter(t *testing.T) {
	t.Parallel()
	set := newSet(t)
	for name, sequence := range map[string]string{
		"missing": "", "null": `"sequence":null,`, "empty": `"sequence":"",`, "negative": `"sequence":-1,`,
		"negative text": `"sequence":"-1",`,
		"word":          `"sequence":"new",`, "41 digits": `"sequence":` + strings.Repeat("1", 41) + `,`,
		"41 zeros": `"sequence":"` + strings.Repeat("0", 41) + `",`,
		"fraction": `"sequence":1.0,`, "fraction as text": `"sequence":"1.0",`, "exponent": `"sequence":1e3,`,
		"signed": `"sequence":"+1",`, "space": `"sequence":" 1",`,
		"boolean": `"sequence":true,`, "list": `"sequence":[1],`, "hexadecimal": `"sequence":"0x1f",`,
		"other digits": `"sequence":"١٢",`,
	} {
		for _, op := range []string{"doc.changed", "doc.deleted"} {
			f := invalid(t, set, sourcetest.Message("native", `{"type":"`+op+`","subject":"a",`+sequence+`"data":{}}`))
			if f.Reason != event.VersionInvalid || f.Field != "sequence" || f.Doc != "content#a" {
				t.Errorf("%s, %s: got %+v, want version_invalid of sequence of content#a", name, op, f)
			}
			if !strings.Contains(f.Problem, "send ") {
				t.Errorf("%s: the problem %q does not say what to send", name, f.Problem)
			}
		}
	}
	for _, digits := range []string{"0", "1", "9223372036854775808", "18446744073709551616", strings.Repeat("9", 40)} {
		for _, sequence := range []string{digits, `"` + digits + `"`} {
			e := oneEvent(t, set, "native", `{"type":"doc.deleted","subject":"a","sequence":`+sequence+`}`)
			if p, err := e.Key.Parts(); err != nil ||
				p.Version.String() != fmt.Sprintf("i%02d%s", len(digits), digits) || e.Version != digits {
				t.Errorf("version %s: got %s %v (%v), want every digit", sequence, e.Version, p.Version, err)
			}
		}
	}
}

func TestSamePayloadWithLaterTimeIsALaterKey(t *testing.T) {
	t.Parallel()
	set := newSet(t)
	at := func(second int, data string) event.OrderKey {
		return oneEvent(t, set, "native", fmt.Sprintf(
			`{"type":"doc.changed","subject":"a","sequence":"5","time":"2026-11-20T16:00:%02dZ","data":{"n":%s}}`,
			second, data)).Key
	}
	if a, b := at(1, "1"), at(1, "1"); a != b {
		t.Errorf("the same event twice: got %s and %s, want equal keys", a, b)
	}
	if a, b := at(1, "1"), at(2, "1"); !(a < b) || !shard.SameContent(a, b) {
		t.Errorf("same payload, later time: got %s and %s, want a later key of the same content", a, b)
	}
	if a, b := at(2, "1"), at(1, "2"); !(a > b) || !shard.VersionConflict(a, b) {
		t.Errorf("same version, other payload: got %s and %s, want the later time to win, as a conflict", a, b)
	}
	if a, b := at(1, "1"), at(1, "2"); a == b {
		t.Errorf("same version and time, other payload: got %s for both, want one of them to win", a)
	}
}

func TestRaisedEpochIsNewerThanAnyVersionBefore(t *testing.T) {
	t.Parallel()
	set := newSet(t)
	before := oneEvent(t, set, "native", `{"type":"doc.deleted","subject":"a","sequence":"`+strings.Repeat("9", 40)+
		`"}`)
	after := oneEvent(t, set, "native-epoch", `{"type":"doc.deleted","subject":"a","sequence":"1"}`)
	if !(after.Key > before.Key) {
		t.Errorf("got %s after %s, want it to be newer", after.Key, before.Key)
	}
}

func TestResyncOfAnEqualVersionIsANewKeyOncePerRun(t *testing.T) {
	t.Parallel()
	set := newSet(t)
	key := func(more string) event.OrderKey {
		return oneEvent(t, set, "native", `{"type":"doc.changed","subject":"a","sequence":"5","data":{}`+more+`}`).Key
	}
	live := key("")
	first := key(`,"mode":"resync","resyncrun":"01JD2V6Y5T3KQ8Z4M7N9P0R1S2"`)
	again := key(`,"mode":"resync","resyncrun":"01jd2v6y5t3kq8z4m7n9p0r1s2"`)
	second := key(`,"mode":"resync","resyncrun":"01JE2V6Y5T3KQ8Z4M7N9P0R1S2"`)
	if !(live < first && first < second) {
		t.Errorf("got %s, %s, %s, want each to be newer than the one before", live, first, second)
	}
	if first != again {
		t.Errorf("the same run again: got %s, want %s", again, first)
	}
	if more := key(`,"mode":"live","resyncrun":"01JE2V6Y5T3KQ8Z4M7N9P0R1S2"`); more != live {
		t.Errorf("a run in mode live: got %s, want %s", more, live)
	}
}

func TestArrivalCopyIsNotNewerThanItsOriginal(t *testing.T) {
	t.Parallel()
	set := newSet(t)
	original := sourcetest.Message("native-arrival", `{"type":"doc.changed","subject":"a","data":{}}`)
	rapid.Check(t, func(t *rapid.T) {
		m := original
		later := rapid.Int64Range(0, 30*24*3600*1000).Draw(t, "later, ms")
		m.Sent = sourcetest.Sent.Add(time.Duration(later) * time.Millisecond)
		m.Attributes = map[string]queue.Attribute{
			queue.AttrSource:    queue.Text("native-arrival"),
			queue.AttrFirstSent: queue.Text(strconv.FormatInt(sourcetest.Sent.UnixMilli(), 10)),
		}
		copied, first := set.Decode(m)[0].Event, set.Decode(original)[0].Event
		if copied.Key != first.Key || copied.Key == "" {
			t.Fatalf("a copy sent at %s: got %s, want %s", m.Sent, copied.Key, first.Key)
		}
		delete(m.Attributes, queue.AttrFirstSent)
		if next := set.Decode(m)[0].Event; m.Sent.After(sourcetest.Sent) && !(next.Key > first.Key) {
			t.Fatalf("another event sent at %s: got %s, want it to be newer than %s", m.Sent, next.Key, first.Key)
		}
		m.Attributes[queue.AttrFirstSent] = queue.Text(strconv.FormatInt(m.Sent.Add(time.Hour).UnixMilli(), 10))
		if forged := set.Decode(m)[0].Event; forged.Version != m.Sent.Format(time.RFC3339Nano) {
			t.Fatalf("an attribute that makes a message newer: got %s, want %s", forged.Version,
				m.Sent.Format(time.RFC3339Nano))
		}
	})
}

// TestKeysSortAsVersionsDo compares the order of keys with a slow and obvious comparison of the
// versions, for events with any other content.
func TestKeysSortAsVersionsDo(t *testing.T) {
	t.Parallel()
	set := newSet(t)
	digits := rapid.StringMatching(`[0-9]{1,40}`)
	number := func(s string, base int) *big.Int {
		n, ok := new(big.Int).SetString(s, base)
		if !ok {
			t.Errorf("%q is not a number", s)
		}
		return n
	}
	lsn := func(s string) *big.Int {
		high, low, _ := strings.Cut(s, "/")
		return new(big.Int).Or(new(big.Int).Lsh(number(high, 16), 32), number(low, 16))
	}
	classes := []struct {
		source  string
		draw    *rapid.Generator[string]
		compare func(a, b string) int
	}{
		{"native", digits, func(a, b string) int { return number(a, 10).Cmp(number(b, 10)) }},
		{"native-seq", rapid.StringMatching(`[0-9A-Fa-f]{1,32}`), func(a, b string) int {
			pad := func(s string) *big.Int { return number(s+strings.Repeat("0", 32-len(s)), 16) }
			return pad(a).Cmp(pad(b))
		}},
		{"native-time", rapid.Custom(func(t *rapid.T) string {
			zone := time.FixedZone("", rapid.IntRange(-12, 12).Draw(t, "zone")*3600)
			return time.UnixMicro(rapid.Int64Range(0, 1<<52).Draw(t, "us")).In(zone).Format(time.RFC3339Nano)
		}), func(a, b string) int {
			at, _ := time.Parse(time.RFC3339Nano, a)
			bt, _ := time.Parse(time.RFC3339Nano, b)
			return at.Compare(bt)
		}},
		{
			"native-lsn", rapid.StringMatching(`[0-9A-F]{1,8}/[0-9A-F]{1,8}`),
			func(a, b string) int { return lsn(a).Cmp(lsn(b)) },
		},
		{"native-lex", rapid.StringMatching(`[0-9A-Za-z_-]{1,20}`), strings.Compare},
	}
	for _, c := range classes {
		t.Run(c.source, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				draw := func(label string) (string, event.OrderKey) {
					v := c.draw.Draw(t, label)
					body := fmt.Sprintf(`{"type":%q,"subject":"a","sequence":%q,"time":%q,"data":{"n":%d}}`,
						rapid.SampledFrom([]string{"doc.changed", "doc.deleted"}).Draw(t, "type"), v,
						time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "time"), 0).UTC().Format(time.RFC3339),
						rapid.Int().Draw(t, "n"))
					m := sourcetest.Message(c.source, body)
					m.Sent = time.Time{} // without a send time, no version is too far ahead
					r := set.Decode(m)[0]
					if r.Invalid != nil {
						t.Fatalf("decode %s: %v", body, r.Invalid)
					}
					return v, r.Event.Key
				}
				a, ka := draw("a")
				b, kb := draw("b")
				want := c.compare(a, b)
				if want != 0 && strings.Compare(string(ka), string(kb)) != want {
					t.Fatalf("versions %s and %s compare %d, their keys %s and %s do not", a, b, want, ka, kb)
				}
				if want != 0 && strings.Compare(ka.String(), kb.String()) != want {
					t.Fatalf("versions %s and %s compare %d, their printed keys %s and %s do not", a, b, want, ka, kb)
				}
				if back, err := shard.ParseOrderKey(ka.String()); err != nil || back != ka {
					t.Fatalf("print and read back %s: got %s, %v", ka, back, err)
				}
			})
		})
	}
}
