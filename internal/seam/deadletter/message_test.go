// SPDX-License-Identifier: Apache-2.0

package deadletter

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

var (
	sent = time.UnixMilli(1_795_000_000_123).UTC()
	died = time.UnixMicro(1_795_000_777_123_456).UTC()
)

func key(t testing.TB, version string) shard.OrderKey {
	t.Helper()
	v, err := shard.ParseVersion(shard.ClassInt, version)
	if err != nil {
		t.Fatal(err)
	}
	k, err := shard.NewOrderKey(shard.Parts{Version: v, Digest: shard.Digest{1, 2, 3}})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// received returns the outgoing message as the dead-letter queue delivers it.
func received(o queue.Outgoing) queue.Message {
	return queue.Message{
		ID: "dlq-1", Receipt: "r", Body: o.Body, Attributes: maps.Clone(o.Attributes), Sent: died,
		ReceiveCount: 1,
	}
}

func attributes(n int) map[string]queue.Attribute {
	m := map[string]queue.Attribute{}
	for i := range n {
		m[fmt.Sprintf("a%02d", i)] = queue.Attribute{Type: "Binary", Binary: []byte(strings.Repeat("\x00\xff", i+1))}
	}
	return m
}

// noise returns bytes that cannot be compressed.
func noise(n int) string {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(' ' + r.IntN(95))
	}
	return string(b)
}

func TestDeadLetterArrivesByteForByte(t *testing.T) {
	t.Parallel()
	ten := attributes(9)
	ten["lull-source"] = queue.Text("govuk")
	copied := attributes(10)
	delete(copied, "a09")
	copied[queue.AttrFirstSent] = queue.Text("1700000000000")
	tests := []struct {
		name   string
		body   string
		attrs  map[string]queue.Attribute
		doc    shard.DocID
		packed bool
	}{
		{"plain", `{"a":1}`, nil, "content#1", false},
		{"empty body", "", nil, "content#1", false},
		{
			"text with every kind of character", "\"\\\n\t\u2028 😀 <&>",
			map[string]queue.Attribute{"x": queue.Text("ä\n😀")},
			"content#ä😀<&>", false,
		},
		{"eight attributes", "b", attributes(8), "content#1", false},
		{"ten attributes", "b", ten, "content#1", false},
		{"a copy with ten attributes", "b", copied, "content#1", false},
		{"an id that is not valid text", "b", nil, "content#\xff\xfe", false},
		{"an undecodable message", "not JSON", attributes(2), "", false},
		{"1 MiB", strings.Repeat("x", queue.MaxBytes), nil, "content#1", true},
		{"1 MiB that packing hardly shrinks", noise(queue.MaxBytes), nil, "content#1", true},
		{"1 MiB that packing hardly shrinks, with attributes", noise(queue.MaxBytes - 400), attributes(10), "content#1", true},
		{"1 MiB with an attribute of the name that lull uses", noise(queue.MaxBytes - 100), map[string]queue.Attribute{
			AttrBody: queue.Text("the sender's"),
		}, "content#1", true},
		{"1 MiB with attributes", strings.Repeat("y", queue.MaxBytes-400), attributes(10), "content#1", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := queue.Message{
				ID: "m-1", Receipt: "r", Body: tt.body, Attributes: tt.attrs, Sent: sent,
				ReceiveCount: 7,
			}
			var k shard.OrderKey
			if tt.doc != "" {
				k = key(t, "12345")
			}
			want := New(m, Refusals, "mapper_parsing_exception: field title", tt.doc, k, 3, died)
			want.Sink, want.Lane, want.Refusals, want.FirstError, want.LastError = "search", "bulk", 5, "first", "last"
			out, err := want.Message()
			if err != nil {
				t.Fatalf("Message() = %v", err)
			}
			if n := queue.Bytes(out.Body, out.Attributes); n > queue.MaxBytes {
				t.Errorf("message has %d bytes, SQS accepts %d", n, queue.MaxBytes)
			}
			if n := len(out.Attributes); n > queue.MaxAttributes {
				t.Errorf("message has %d attributes, SQS accepts %d", n, queue.MaxAttributes)
			}
			if got := out.Body != tt.body; got != tt.packed {
				t.Errorf("body packed: got %t, want %t", got, tt.packed)
			}
			for i, b := range []byte(out.Attributes[AttrLetter].String) {
				if b < ' ' || b > '~' {
					t.Fatalf("byte %d of %s is %#x, want only characters that SQS accepts", i, AttrLetter, b)
				}
			}
			got, err := Read(received(out))
			if err != nil {
				t.Fatalf("Read() = %v", err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got\n%+v\nwant\n%+v", got.Facts, want.Facts)
			}
		})
	}
}

func TestDeadLetterTooLargeForSQSIsRefusedNotCut(t *testing.T) {
	t.Parallel()
	filler := make([]byte, queue.MaxBytes-100)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(filler)
	m := queue.Message{Body: "b", Attributes: map[string]queue.Attribute{"x": {Type: "Binary", Binary: filler}}, Sent: sent}
	if _, err := New(m, Contract, "", "content#1", key(t, "1"), 0, died).Message(); !errors.Is(err, queue.ErrTooLarge) {
		t.Errorf("got %v, want ErrTooLarge", err)
	}
}

// Older code would judge a dead letter of the new schema as a broken one, and lose its facts.
func TestOnlyADeadLetterWithItsBodyInAnAttributeIsOfTheNewSchema(t *testing.T) {
	t.Parallel()
	for body, schema := range map[string]string{
		"b": `"schema":1`, strings.Repeat("x", queue.MaxBytes): `"schema":1`, noise(queue.MaxBytes): `"schema":2`,
	} {
		m := queue.Message{Body: body, Sent: sent}
		out, err := New(m, Contract, "", "content#1", key(t, "1"), 0, died).Message()
		if err != nil || !strings.Contains(out.Attributes[AttrLetter].String, schema) {
			t.Errorf("%d bytes: %s, %v, want %s", len(body), out.Attributes[AttrLetter].String, err, schema)
		}
	}
}

func TestDeadLetterOfADeadLetterIsNotNested(t *testing.T) {
	t.Parallel()
	m := queue.Message{Body: "b", Sent: sent}
	l := New(m, Contract, "", "content#1", key(t, "1"), 0, died)
	for range 5 {
		out, err := l.Message()
		if err != nil {
			t.Fatal(err)
		}
		again := received(out)
		if n := len(again.Attributes); n != 2 {
			t.Fatalf("message has %d attributes, want 2", n)
		}
		l = New(again, Contract, "", "content#1", key(t, "1"), 0, died)
		if got := l.FirstSent; !got.Equal(sent) {
			t.Fatalf("first sent %s, want %s", got, sent)
		}
	}
}

func TestReadRefusesAMessageThatIsNotADeadLetter(t *testing.T) {
	t.Parallel()
	with := func(json string) queue.Message {
		return queue.Message{Body: "b", Attributes: map[string]queue.Attribute{AttrLetter: queue.Text(json)}}
	}
	moved := with(`{"schema":1,"reason":"rejected"}`)
	moved.MovedFrom = "live"
	broken := errors.New("any other error")
	tests := []struct {
		name string
		m    queue.Message
		want error
	}{
		{"no attribute", queue.Message{Body: "b"}, ErrNoLetter},
		{"moved by SQS, with a forged attribute", moved, ErrNoLetter},
		{"newer schema with other types", with(`{"schema":3,"reason":{"word":"rejected"}}`), ErrSchema},
		{"no JSON", with(`rejected`), broken},
		{"no schema", with(`{"reason":"rejected"}`), broken},
		{"unknown reason", with(`{"schema":1,"reason":"whatever"}`), broken},
		{"no order key", with(`{"schema":1,"reason":"rejected","key":"e010"}`), broken},
		{"unknown encoding", with(`{"schema":1,"reason":"rejected","encoding":"zstd"}`), broken},
		{"body not packed", with(`{"schema":1,"reason":"rejected","encoding":"gzip+base64"}`), broken},
		{"good", with(`{"schema":1,"reason":"rejected"}`), nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := Read(tt.m)
			switch {
			case tt.want == nil && err != nil:
				t.Errorf("got error %v, want none", err)
			case errors.Is(tt.want, broken) && (err == nil || errors.Is(err, ErrNoLetter) || errors.Is(err, ErrSchema)):
				t.Errorf("got %v, want another error than ErrNoLetter and ErrSchema", err)
			case tt.want != nil && !errors.Is(tt.want, broken) && !errors.Is(err, tt.want):
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

func TestUnpackRefusesABodyLargerThanAnyMessage(t *testing.T) {
	t.Parallel()
	bomb, err := pack(strings.Repeat("0", queue.MaxBytes+1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := unpack(bytes.NewReader(bomb)); err == nil {
		t.Error("got no error, want one")
	}
}

// FuzzLetter packs any message and reads it back.
func FuzzLetter(f *testing.F) {
	f.Add("body", "content#1", []byte("\x00\x20\x00"), "name", "String", "value", []byte{0, 1}, "detail", 3)
	f.Add("", "", []byte{}, "lull-letter", "String", "{}", []byte{}, "\xff", 0)
	f.Add("\x00\xff", "c#\xff", []byte("x"), queue.AttrFirstSent, "String", "12", []byte{}, strings.Repeat("ä", 200),
		12)
	f.Fuzz(func(t *testing.T, body, doc string, k []byte, name, typ, text string, binary []byte, detail string, n int) {
		if name == "" || !utf8.ValidString(name) || !utf8.ValidString(typ) {
			return // SQS accepts only ASCII here
		}
		m := queue.Message{ID: "m", Body: body, Sent: sent, Attributes: map[string]queue.Attribute{}}
		for i := range n & 15 {
			m.Attributes[fmt.Sprint(name, i)] = queue.Attribute{Type: typ, String: text}
		}
		a := queue.Attribute{Type: typ, String: text}
		if len(binary) > 0 {
			a.Binary = binary
		}
		m.Attributes[name] = a
		want := New(m, Contract, detail, shard.DocID(doc), shard.OrderKey(k), n, died)
		out, err := want.Message()
		if err != nil {
			if !errors.Is(err, queue.ErrTooLarge) {
				t.Fatalf("Message() = %v", err)
			}
			return
		}
		if len(out.Attributes) > queue.MaxAttributes || queue.Bytes(out.Body, out.Attributes) > queue.MaxBytes {
			t.Fatalf("SQS would refuse %d attributes, %d bytes", len(out.Attributes),
				queue.Bytes(out.Body, out.Attributes))
		}
		got, err := Read(received(out))
		if err != nil {
			t.Fatalf("Read() = %v", err)
		}
		want.Attributes = maps.Clone(want.Attributes)
		delete(want.Attributes, AttrLetter)
		if len(want.Attributes) == 0 {
			want.Attributes = nil
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("got\n%+v\nwant\n%+v", got, want)
		}
	})
}

// FuzzRead reads any bytes as facts. The result is an error or a dead letter, never a panic. If it
// is a dead letter, it can be packed again.
func FuzzRead(f *testing.F) {
	f.Add("b",
		`{"schema":1,"reason":"rejected","key":"e010,i011,-,00000000000000000,0102030000000000","attributes":{"a":{"type":"String","string":"eA=="}}}`)
	f.Add("H4sIAAAAAAAA/wEAAP//AAAAAAAAAAA=",
		`{"schema":1,"reason":"contract","encoding":"gzip+base64","docBytes":"/w==","keyBytes":"/w=="}`)
	f.Add("b", `{"schema":9}`)
	f.Fuzz(func(t *testing.T, body, facts string) {
		m := queue.Message{
			Body: body, Sent: sent,
			Attributes: map[string]queue.Attribute{AttrLetter: queue.Text(facts)},
		}
		l, err := Read(m)
		if err != nil {
			return
		}
		if l.ID == "" || len(l.Detail) > MaxDetail || !l.Reason.Known() {
			t.Fatalf("dead letter without an id, with a long detail or of an unknown reason: %+v", l.Facts)
		}
		if _, err := l.Message(); err != nil && !errors.Is(err, queue.ErrTooLarge) {
			t.Fatalf("pack it again: %v", err)
		}
	})
}
