// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"encoding/json"
	"testing"

	"github.com/jackc/pgx/v5/pgtype"
)

func TestValues(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		oid        uint32
		text, want string
	}{
		{pgtype.BoolOID, "t", "true"},
		{pgtype.BoolOID, "f", "false"},
		{pgtype.BoolOID, "x", `"x"`},
		{pgtype.Int8OID, "-9223372036854775808", "-9223372036854775808"},
		{pgtype.Float8OID, "1e+20", "1e+20"},
		{pgtype.Float8OID, "NaN", `"NaN"`},
		{pgtype.Float4OID, "Infinity", `"Infinity"`},
		{pgtype.NumericOID, "0.10", "0.10"},
		{pgtype.NumericOID, " 1", `" 1"`},
		{pgtype.NumericOID, "", `""`},
		{pgtype.JSONOID, ` {"a" : 1}`, ` {"a" : 1}`},
		{pgtype.JSONOID, "{\"a\":\"\ufffe\"}", `{"a":"\ufffe"}`},
		{pgtype.JSONOID, `{`, `"{"`},
		{pgtype.JSONBOID, `null`, `null`},
		{pgtype.ByteaOID, `\x`, `""`},
		{pgtype.ByteaOID, `\x00ff`, `"AP8="`},
		{pgtype.ByteaOID, `\xabc`, `"\\xabc"`},
		{pgtype.TimestamptzOID, "2026-11-22 10:00:00+00", `"2026-11-22T10:00:00Z"`},
		{pgtype.TimestamptzOID, "0044-03-15 10:00:00+00 BC", `"0044-03-15 10:00:00+00 BC"`},
		{pgtype.TimestampOID, "infinity", `"infinity"`},
		{pgtype.TextOID, "\x7f\ufffe\uffff\xff\u2028", "\"\x7f\\ufffe\\uffff\ufffd\u2028\""},
		{pgtype.Int4ArrayOID, "{}", "[]"},
		{pgtype.Int4ArrayOID, "[0:1]={1,NULL}", "[1,null]"},
		{pgtype.Int4ArrayOID, "{1,", `"{1,"`},
		{pgtype.Int4ArrayOID, "{1}x", `"{1}x"`},
		{pgtype.TextArrayOID, `{{"a\"b"},{"c\\d"}}`, `[["a\"b"],["c\\d"]]`},
		{pgtype.ByteaArrayOID, `{"\\x00ff"}`, `["AP8="]`},
		{pgtype.JSONBArrayOID, `{"{\"a\": 1}"}`, `[{"a": 1}]`},
		{pgtype.BoxArrayOID, `{(1,1),(0,0);(2,2),(1,1)}`, `"{(1,1),(0,0);(2,2),(1,1)}"`},
		{pgtype.InetOID, "10.0.0.0/8", `"10.0.0.0/8"`},
	} {
		if got := string(encoderOf(tt.oid)([]byte("x"), []byte(tt.text))); got != "x"+tt.want {
			t.Errorf("type %d, %q: got %s, want %s", tt.oid, tt.text, got[1:], tt.want)
		}
	}
}

func FuzzValues(f *testing.F) {
	for _, s := range []string{"{}", `{"a\"",NULL,{1}}`, "[0:1]={1,2}", "1e5", `\x00`, "2026-11-22 10:00:00+00", "{\"a\":1}"} {
		f.Add(s)
	}
	kinds := []uint32{
		pgtype.NumericArrayOID, pgtype.TextArrayOID, pgtype.JSONBArrayOID, pgtype.ByteaOID,
		pgtype.TimestamptzOID, pgtype.BoolOID,
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, oid := range kinds {
			if got := encoderOf(oid)(nil, []byte(text)); !json.Valid(got) {
				t.Errorf("type %d, %q: not JSON: %q", oid, text, got)
			}
		}
	})
}
