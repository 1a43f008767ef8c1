// SPDX-License-Identifier: Apache-2.0

package flight_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden files")

// sample returns a manifest that uses every field. It includes hard cases: an empty body, a binary
// attribute, no attributes, and several events.
func sample() *flight.Manifest {
	at := time.Date(2026, 5, 4, 10, 0, 0, 123_456_789, time.UTC)
	return &flight.Manifest{
		Schema: 1, Flight: "01JV0000000000000000000000", Sink: "search", Lane: flight.Live, Received: at,
		Records: []flight.Record{
			{
				Message: queue.Message{
					ID: "m-1", Receipt: "r-1", Body: `{"payload_version":12345,"title":"A \"quoted\" title"}`,
					Attributes: map[string]queue.Attribute{
						queue.AttrSource:    queue.Text("govuk"),
						queue.AttrFirstSent: {Type: "Number", String: "1777888800000"},
						"trace":             {Type: "Binary.x", Binary: []byte{0, 1, 255}},
					},
					Sent: at.Truncate(time.Millisecond).Add(-time.Second), FirstReceived: at.Truncate(time.Millisecond),
					ReceiveCount: 1,
				},
				Events: []flight.Entry{
					{
						Index: 0, Doc: "pages#a", Key: "\x00\x22\x30\x39\x00", Class: shard.ClassInt, Op: shard.Put,
						Due: 1_777_888_805_000_000, Admitted: 1_777_888_800_500_000,
					},
					{
						Index: 2, Doc: "pages#b", Key: "\x00\x22\x30\x40\x00", Class: shard.ClassInt, Op: shard.Delete,
						Due: 1_777_888_805_000_000, Admitted: 1_777_888_800_500_000,
					},
				},
			},
			{Message: queue.Message{
				ID: "m-2", Receipt: "r-2", Body: "", ReceiveCount: 298,
				MovedFrom: "arn:aws:sqs:eu-west-1:000000000000:live",
			}},
		},
	}
}

func TestAManifestComesBackAsItWas(t *testing.T) {
	t.Parallel()
	for name, m := range map[string]*flight.Manifest{
		"every field": sample(),
		"empty":       {Schema: 1},
		"one empty record": {
			Schema: 1, Records: []flight.Record{{}},
		},
	} {
		b, err := flight.Encode(m)
		if err != nil {
			t.Fatalf("%s: encode: %v", name, err)
		}
		got, err := flight.Decode(b)
		if err != nil {
			t.Fatalf("%s: decode: %v", name, err)
		}
		if !reflect.DeepEqual(got, m) {
			t.Errorf("%s: got %+v, want %+v", name, got, m)
		}
	}
}

func TestAnyManifestComesBackAsItWas(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := anyManifest().Draw(t, "manifest")
		b, err := flight.Encode(m)
		if err != nil {
			t.Fatalf("encode: %v", err)
		}
		got, err := flight.Decode(b)
		if err != nil {
			t.Fatalf("decode: %v", err)
		}
		if !reflect.DeepEqual(got, m) {
			t.Fatalf("got %+v, want %+v", got, m)
		}
		again, err := flight.Encode(got)
		if err != nil || !bytes.Equal(again, b) {
			t.Fatalf("encoded again: %x (%v), want %x", again, err, b)
		}
	})
}

func anyTime() *rapid.Generator[time.Time] {
	return rapid.Custom(func(t *rapid.T) time.Time {
		if rapid.Bool().Draw(t, "none") {
			return time.Time{}
		}
		return time.Unix(rapid.Int64Range(-1<<40, 1<<40).Draw(t, "s"),
			rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).UTC()
	})
}

func anyManifest() *rapid.Generator[*flight.Manifest] {
	text := rapid.OneOf(rapid.String(), rapid.Just(""),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 300), func(b []byte) string { return string(b) }))
	attribute := rapid.Custom(func(t *rapid.T) queue.Attribute {
		a := queue.Attribute{Type: text.Draw(t, "type"), String: text.Draw(t, "string")}
		if b := rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "binary"); len(b) > 0 {
			a.Binary = b
		}
		return a
	})
	entry := rapid.Custom(func(t *rapid.T) flight.Entry {
		return flight.Entry{
			Index: rapid.Int().Draw(t, "index"), Doc: shard.DocID(text.Draw(t, "doc")),
			Key:   shard.OrderKey(text.Draw(t, "key")),
			Class: shard.Class(rapid.Byte().Draw(t, "class")), Op: shard.Operation(text.Draw(t, "op")),
			Due: shard.Micros(rapid.Int64().Draw(t, "due")), Admitted: shard.Micros(rapid.Int64().Draw(t, "admitted")),
		}
	})
	record := rapid.Custom(func(t *rapid.T) flight.Record {
		r := flight.Record{Message: queue.Message{
			ID: text.Draw(t, "id"), Receipt: text.Draw(t, "receipt"), Body: text.Draw(t, "body"),
			Sent: anyTime().Draw(t, "sent"), FirstReceived: anyTime().Draw(t, "first"),
			ReceiveCount: rapid.Int().Draw(t, "count"), MovedFrom: text.Draw(t, "moved"),
		}}
		if attrs := rapid.MapOfN(text, attribute, 0, 4).Draw(t, "attributes"); len(attrs) > 0 {
			r.Message.Attributes = attrs
		}
		if entries := rapid.SliceOfN(entry, 0, 4).Draw(t, "events"); len(entries) > 0 {
			r.Events = entries
		}
		return r
	})
	return rapid.Custom(func(t *rapid.T) *flight.Manifest {
		m := &flight.Manifest{
			Schema: 1, Flight: flight.ID(text.Draw(t, "flight")), Sink: text.Draw(t, "sink"),
			Lane: flight.Lane(text.Draw(t, "lane")), Received: anyTime().Draw(t, "received"),
		}
		if records := rapid.SliceOfN(record, 0, 5).Draw(t, "records"); len(records) > 0 {
			m.Records = records
		}
		return m
	})
}

func TestTheEncodingOfSchema1NeverChanges(t *testing.T) {
	t.Parallel()
	path := filepath.Join("testdata", "manifest.v1.hex")
	b, err := flight.Encode(sample())
	if err != nil {
		t.Fatal(err)
	}
	if *rewrite {
		if err := os.WriteFile(path, []byte(fold(hex.EncodeToString(b))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := hex.DecodeString(strings.ReplaceAll(string(text), "\n", ""))
	if err != nil {
		t.Fatal(err)
	}
	// Flights that an older build wrote must stay readable. How bytes are packed may change.
	got, err := flight.Decode(stored)
	if err != nil {
		t.Fatalf("decode the golden file: %v", err)
	}
	if want := sample(); !reflect.DeepEqual(got, want) {
		t.Errorf("golden file holds %+v, want %+v", got, want)
	}
}

func fold(s string) string {
	var b strings.Builder
	for len(s) > 64 {
		b.WriteString(s[:64] + "\n")
		s = s[64:]
	}
	return b.String() + s + "\n"
}

func TestANewerSchemaIsRecognised(t *testing.T) {
	t.Parallel()
	m := sample()
	m.Schema = flight.SchemaVersion + 1
	b, err := flight.Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := flight.Decode(b); !errors.Is(err, flight.ErrSchema) {
		t.Errorf("decode: %v, want ErrSchema", err)
	}
	if _, err := flight.Decode(append([]byte("LULL\x02"), "whatever a newer build writes"...)); !errors.Is(err,
		flight.ErrSchema) {
		t.Errorf("decode: %v, want ErrSchema", err)
	}
}

func TestDamagedManifestsAreRefused(t *testing.T) {
	t.Parallel()
	good, err := flight.Encode(sample())
	if err != nil {
		t.Fatal(err)
	}
	for i := range good {
		if _, err := flight.Decode(good[:i]); err == nil || errors.Is(err, flight.ErrSchema) {
			t.Errorf("cut to %d bytes: %v, want another error than ErrSchema", i, err)
		}
	}
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 0x81
		if _, err := flight.Decode(bad); err == nil {
			t.Errorf("byte %d changed: decoded without an error", i)
		}
	}
	if _, err := flight.Decode(append(bytes.Clone(good), 0)); err == nil {
		t.Error("a byte more: decoded without an error")
	}
	for _, b := range []string{"", "LULL", "LULL\x00", "{}", "LULL\x01\x00\x00\x00\x00"} {
		if _, err := flight.Decode([]byte(b)); err == nil {
			t.Errorf("%q: decoded without an error", b)
		}
	}
}

func TestATooLargeManifestIsRefused(t *testing.T) {
	t.Parallel()
	m := &flight.Manifest{Records: []flight.Record{
		{Message: queue.Message{Body: strings.Repeat("x", flight.MaxManifestBytes)}},
	}}
	if _, err := flight.Encode(m); err == nil {
		t.Error("a manifest that is too large was encoded")
	}
	if _, err := flight.Encode(&flight.Manifest{Schema: -1}); err == nil {
		t.Error("a negative schema was encoded")
	}
}

func BenchmarkCodec(b *testing.B) {
	m := &flight.Manifest{Schema: 1, Flight: "01JV0000000000000000000000", Sink: "search", Lane: flight.Live}
	dice := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		id := fmt.Sprintf("%016x%016x", dice.Uint64(), dice.Uint64())
		receipt := make([]byte, 300) // SQS's receipt handles look like 400 random characters
		for i := range receipt {
			receipt[i] = byte(dice.Uint32())
		}
		m.Records = append(m.Records, flight.Record{
			Message: queue.Message{
				ID: id, Receipt: base64.StdEncoding.EncodeToString(receipt), Body: `{"specversion":"1.0","id":"` + id +
					`","data":{"text":"` + strings.Repeat("lorem ipsum ", 100) + `"}}`,
				Sent: time.UnixMilli(1_777_888_800_000).UTC(), FirstReceived: time.UnixMilli(1_777_888_800_000).UTC(),
				ReceiveCount: 1,
			},
			Events: []flight.Entry{{
				Doc: shard.DocID("pages#" + id), Key: shard.OrderKey(id[:21]),
				Class: shard.ClassInt, Op: shard.Put,
			}},
		})
	}
	packed, err := flight.Encode(m)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			if _, err := flight.Encode(m); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*1000), "ns/message")
		b.ReportMetric(float64(len(packed))/1000, "bytes/message")
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			if _, err := flight.Decode(packed); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*1000), "ns/message")
	})
}
