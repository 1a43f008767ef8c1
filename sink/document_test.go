// SPDX-License-Identifier: Apache-2.0

package sink_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/sink"
)

func TestPlainRefusesWhatNoSinkCanHold(t *testing.T) {
	t.Parallel()
	tests := []struct{ document, want string }{
		{"", "no_document"},
		{"  ", "not_json"},
		{"{", "not_json"},
		{`{"a":secret}`, "not_json"},
		{`{} {}`, "not_json"},
		{"{\"a\":\"\xff\"}", "not_utf8"},
		{`["secret"]`, "not_an_object"},
		{`"secret"`, "not_an_object"},
		{"17", "not_an_object"},
		{"null", "not_an_object"},
		{`{"_lull":1}`, "reserved_field: field _lull"},
		{`{"a":{"b":[1,{"c":"}"}]},"_lull":{"version":"secret"}}`, "reserved_field: field _lull"},
		{`{"_l\u0075ll":1}`, "reserved_field: field _lull"},
		{strings.Repeat(`{"a":`, 20_000) + "1" + strings.Repeat("}", 20_000), "not_json"},
	}
	for _, tt := range tests {
		plain, err := sink.Plain([]byte(tt.document))
		if err == nil {
			t.Errorf("Plain(%.40s) = %s, want an error", tt.document, plain)
			continue
		}
		if got := err.Error(); got != tt.want {
			t.Errorf("Plain(%.40s): %q, want %q", tt.document, got, tt.want)
		}
		if got := err.Outcome(); got != (sink.Outcome{Kind: sink.Rejected, Reason: tt.want}) {
			t.Errorf("outcome of %.40s: %+v", tt.document, got)
		}
	}
}

func TestPlainKeepsEveryDigit(t *testing.T) {
	t.Parallel()
	tests := []struct{ document, want string }{
		{" {\n\t\"n\" : 12345678901234567890.10 ,\r\n \"e\":1E+02}\n", `{"n":12345678901234567890.10,"e":1E+02}`},
		{`{"s":"a  b\u00e4<&>"}`, `{"s":"a  b\u00e4<&>"}`},
		{`{}`, `{}`},
		{
			`{"a":{"_lull":1},"b":["_lull"],"c":"\"_lull\":1","_lull2":0}`,
			`{"a":{"_lull":1},"b":["_lull"],"c":"\"_lull\":1","_lull2":0}`,
		},
	}
	for _, tt := range tests {
		got, err := sink.Plain([]byte(tt.document))
		if err != nil || string(got) != tt.want {
			t.Errorf("Plain(%s) = %s, %v; want %s", tt.document, got, err, tt.want)
		}
	}
}

func TestReasonNamesFieldsThatAreNames(t *testing.T) {
	t.Parallel()
	tests := []struct{ field, want string }{
		{"", "class"},
		{"details.body", "class: field details.body"},
		{"my secret note", "class"},
		{strings.Repeat("a", 65), "class"},
	}
	for _, tt := range tests {
		if got := sink.Reason("class", tt.field); got != tt.want {
			t.Errorf("Reason(%q) = %q, want %q", tt.field, got, tt.want)
		}
	}
}

func TestUnsealFindsMetaWhereverItStands(t *testing.T) {
	t.Parallel()
	const meta = `"_lull":{"version":"007","order_key":"k","fence":9007199254740993,"indexed_at":"2026-11-20T16:00:00.123456Z"}`
	want := sink.Meta{
		Version: "007", Key: "k", Fence: 9007199254740993,
		Indexed: time.Date(2026, 11, 20, 16, 0, 0, 123456000, time.UTC),
	}
	tests := []struct{ sealed, plain string }{
		{`{` + meta + `}`, `{}`},
		{`{` + meta + `,"a":1}`, `{"a":1}`},
		{`{"a":1,` + meta + `}`, `{"a":1}`},
		{`{"a":"}\\\",",` + meta + `, "b":[{"c":2}]}`, `{"a":"}\\\",","b":[{"c":2}]}`},
	}
	for _, tt := range tests {
		m, plain, ok, err := sink.Unseal([]byte(tt.sealed))
		if err != nil || !ok || m != want || string(plain) != tt.plain {
			t.Errorf("Unseal(%s) = %+v, %s, %t, %v", tt.sealed, m, plain, ok, err)
		}
	}
	if _, plain, ok, err := sink.Unseal([]byte(`{"a": 1}`)); ok || err != nil || string(plain) != `{"a":1}` {
		t.Errorf("foreign document: %s, %t, %v", plain, ok, err)
	}
	for _, bad := range []string{"", "[]", `{"_lull":1}`, `{"_lull":{"fence":"x"}}`, "nonsense"} {
		if _, _, ok, err := sink.Unseal([]byte(bad)); err == nil {
			t.Errorf("Unseal(%s): %t, no error", bad, ok)
		}
	}
}

func FuzzSealUnseal(f *testing.F) {
	for _, s := range []string{
		`{}`, `{"a":1.10}`, `{"a":{"_lull":[]},"b":"}\"\\"}`, `{"_l\u0075ll":1}`, `[`,
		"{\"a\":\"\xff\"}",
	} {
		f.Add([]byte(s), "007", int64(1))
	}
	f.Fuzz(func(t *testing.T, document []byte, version string, fence int64) {
		plain, fault := sink.Plain(document)
		if fault != nil {
			if _, _, _, err := sink.Unseal(document); err == nil && fault.Class == sink.NotJSON {
				t.Fatalf("Unseal takes what Plain calls %v", fault)
			}
			return
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, document); err != nil || !bytes.Equal(compact.Bytes(), plain) {
			t.Fatalf("plain %q, want %q (%v)", plain, compact.Bytes(), err)
		}
		op := sink.Op{
			Version: strings.ToValidUTF8(version, ""), At: time.UnixMicro(fence % (1 << 50)),
			Document: document,
		}
		sealed := sink.Seal([]byte("before"), plain, op.Meta())[len("before"):]
		if !json.Valid(sealed) || bytes.ContainsRune(sealed, '\n') {
			t.Fatalf("sealed document is not a line of JSON: %q", sealed)
		}
		m, again, ok, err := sink.Unseal(sealed)
		if err != nil || !ok || m != op.Meta() || !bytes.Equal(again, compact.Bytes()) {
			t.Fatalf("Unseal(%q) = %+v, %q, %t, %v", sealed, m, again, ok, err)
		}
	})
}
