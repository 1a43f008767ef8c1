// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgtype"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorded is a stream of PostgreSQL 18.4, as pg_logical_slot_peek_binary_changes returned it. It
// is also the database at that time.
type recorded struct {
	messages []recordedMessage
	types    map[uint32]encoder
	names    map[uint32]string
	keys     map[string][]string // what the catalog says about tables whose log has whole rows
	reads    []string            // the ids that were read again
	now      row                 // the row that is read, nil if it is gone
	at       version
}

type recordedMessage struct {
	at   pglogrepl.LSN
	data []byte
}

func record(t testing.TB) *recorded {
	t.Helper()
	f, err := os.Open("testdata/stream.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := &recorded{types: map[uint32]encoder{}, names: map[uint32]string{}, keys: map[string][]string{"whole": {"id"}}}
	mine := map[string]encoder{"price": number, "mood": quoted, "_mood": arrayOf(quoted)}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		part := strings.Fields(lines.Text())
		if part[0] == "type" {
			oid, err := strconv.ParseUint(part[1], 10, 32)
			if err != nil {
				t.Fatal(err)
			}
			r.types[uint32(oid)] = mine[part[2]]
			continue
		}
		at, err := pglogrepl.ParseLSN(part[1])
		if err != nil {
			t.Fatal(err)
		}
		data, err := hex.DecodeString(part[2])
		if err != nil {
			t.Fatal(err)
		}
		r.messages = append(r.messages, recordedMessage{at, data})
	}
	return r
}

func (r *recorded) table(oid uint32, schema, bare string) *table {
	r.names[oid] = bare
	return &table{oid: oid, schema: schema, bare: bare, name: schema + "." + bare, collection: bare}
}

func (r *recorded) tables(_ context.Context, oid uint32) ([]*table, error) {
	t := &table{}
	for i, name := range r.keys[r.names[oid]] {
		t.columns, t.key = append(t.columns, column{name: name}), append(t.key, i)
	}
	return []*table{t}, nil
}

func (r *recorded) encoder(_ context.Context, oid uint32) (encoder, error) {
	if e := r.types[oid]; e != nil {
		return e, nil
	}
	return encoderOf(oid), nil
}

func (r *recorded) current(_ context.Context, t *table, old row, _ uint32, _ version) (*table, row, version, error) {
	r.reads = append(r.reads, t.id(old))
	return t, r.now, r.at, nil
}

// decoded returns the bodies of the events of each transaction.
func (r *recorded) decoded(t testing.TB, d *decoder) (transactions [][]string, ends []pglogrepl.LSN) {
	t.Helper()
	var bodies []string
	for _, m := range r.messages {
		end, err := d.decode(t.Context(), m.at, m.data, func(e *event) error {
			bodies = append(bodies, string(e.body()))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if end != 0 {
			transactions, ends, bodies = append(transactions, bodies), append(ends, end), nil
		}
	}
	return transactions, ends
}

func TestTheRecordedStream(t *testing.T) {
	t.Parallel()
	r := record(t)
	r.now, r.at = row{[]byte("1"), []byte("read"), []byte("z")}, version{1 << 40, 0}
	d := &decoder{db: r, tables: map[uint32]*table{}}
	got, ends := r.decoded(t, d)
	x := strings.Repeat("x", 3000)
	want := [][]string{
		{`{"type":"doc.changed","collection":"types","subject":"1",DATA:{"id":1,"b":true,"i8":9223372036854775807,` +
			`"f8":"-Infinity","n":12345678901234567890.1234567890,"j":{"a": [1, 2.50]},"jb":{"b": null},` +
			`"by":"3q2+7w==","ts":"2026-11-22T10:00:00.5","tz":"2026-11-22T10:00:00.25Z","d":"2026-11-22",` +
			`"iv":"P1DT2H3M4S","u":"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11","t":"q\"\\\u0009<é>",` +
			`"ta":["a","b,\"c\"",null,"NULL"],"ia":[[1,2],[3,4]],"m":"ok","ma":["bad","ok"],"p":12.50,"nul":null,` +
			`"ch":"ab  ","na":["NaN",1.10]}}`},
		{
			`{"type":"doc.changed","collection":"pages","subject":"1",DATA:{"id":1,"title":"one","blob":"` + x + `"}}`,
			`{"type":"doc.changed","collection":"pages","subject":"2",DATA:{"id":2,"title":"two","blob":"y"}}`,
			`{"type":"doc.changed","collection":"pages","subject":"1",DATA:{"id":1,"title":"read","blob":"z"}}`,
			`{"type":"doc.deleted","collection":"pages","subject":"2"}`,
			`{"type":"doc.changed","collection":"pages","subject":"3",DATA:{"id":3,"title":"two","blob":"y"}}`,
			`{"type":"doc.deleted","collection":"pages","subject":"3"}`,
		},
		{
			`{"type":"doc.changed","collection":"whole","subject":"1",DATA:{"id":1,"title":"one","blob":"` + x + `"}}`,
			`{"type":"doc.changed","collection":"whole","subject":"1",DATA:{"id":1,"title":"uno","blob":"` + x + `"}}`,
			`{"type":"doc.deleted","collection":"whole","subject":"1"}`,
			`{"type":"doc.changed","collection":"whole","subject":"2",DATA:{"id":2,"title":"uno","blob":"` + x + `"}}`,
		},
		{`{"type":"doc.changed","collection":"pair","subject":"x\\|y|7",DATA:{"a":"x|y","b":7,"v":"v"}}`},
		{
			`{"type":"doc.deleted","collection":"pair","subject":"x\\|y|7"}`,
			`{"type":"doc.changed","collection":"pair","subject":"z|7",DATA:{"a":"z","b":7,"v":"v"}}`,
		},
		{`{"type":"doc.deleted","collection":"pair","subject":"z|7"}`},
		nil, // a table without a key
		{
			`{"type":"table.truncated","collection":"pages","subject":"public.pages"}`,
			`{"type":"table.truncated","collection":"whole","subject":"public.whole"}`,
		},
	}
	if len(got) != len(want) {
		t.Fatalf("%d transactions, want %d", len(got), len(want))
	}
	last := ""
	for i, bodies := range got {
		if len(bodies) != len(want[i]) {
			t.Errorf("transaction %d has %d events, want %d: %q", i, len(bodies), len(want[i]), bodies)
			continue
		}
		for j, body := range bodies {
			var e struct{ Sequence, Time string }
			if err := json.Unmarshal([]byte(body), &e); err != nil {
				t.Fatalf("%v: %s", err, body)
			}
			cut := `,"sequence":"` + e.Sequence + `","time":"` + e.Time + `"`
			body = strings.Replace(strings.Replace(body, cut+`,"data":`, ",DATA:", 1), cut, "", 1)
			if body != want[i][j] {
				t.Errorf("transaction %d, event %d\ngot  %s\nwant %s", i, j, body, want[i][j])
			}
			if strings.Contains(body, "read") {
				continue // it has the version of the reading
			}
			if !strings.HasPrefix(e.Time, "2026-11-28T") || len(e.Sequence) != len("66446472")+20 || e.Sequence < last {
				t.Errorf("time %s, version %s after %s", e.Time, e.Sequence, last)
			}
			last = e.Sequence
		}
	}
	for i := 1; i < len(ends); i++ {
		if ends[i] <= ends[i-1] {
			t.Errorf("the ends do not grow: %v", ends)
		}
	}
	if d.counts != (decoderCounts{reads: 1, truncates: 2, keyless: 1}) || len(r.reads) != 1 || r.reads[0] != "1" {
		t.Errorf("counted %+v, read %q", d.counts, r.reads)
	}
}

// A row that lacks a value and is gone has a later change in the stream.
func TestAChangeOfARowThatIsGoneIsLeftOut(t *testing.T) {
	t.Parallel()
	r := record(t)
	got, _ := r.decoded(t, &decoder{db: r, tables: map[uint32]*table{}})
	if len(got[1]) != 5 {
		t.Errorf("got %d events, want 5: %q", len(got[1]), got[1])
	}
}

func TestMessagesThatAreNotPgoutput(t *testing.T) {
	t.Parallel()
	r := record(t)
	for name, data := range map[string][]byte{
		"nothing": {}, "an unknown type": {'?', 1}, "a change outside of a transaction": r.messages[5].data,
	} {
		d := &decoder{db: r, tables: map[uint32]*table{}}
		if _, err := d.decode(t.Context(), 1, data, nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	d := &decoder{db: r, tables: map[uint32]*table{}, commit: 1}
	_, err := d.decode(t.Context(), 1, r.messages[5].data, nil)
	if err == nil || !strings.Contains(err.Error(), "without its columns") {
		t.Errorf("a change of an unknown table: %v", err)
	}
}

// The decoder never panics, and each event is JSON.
func FuzzDecode(f *testing.F) {
	for _, m := range record(f).messages {
		f.Add(m.data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r := &recorded{names: map[uint32]string{}}
		id := column{name: "id", encode: number}
		tables := map[uint32]*table{}
		for _, oid := range []uint32{49327, 49335} {
			tables[oid] = &table{columns: []column{id, {name: "title", encode: quoted}, {name: "blob", encode: encoderOf(pgtype.TextArrayOID)}}, key: []int{0}}
		}
		d := &decoder{db: r, tables: tables, commit: 1}
		_, _ = d.decode(t.Context(), 1, data, func(e *event) error { // errors are expected
			if body := e.body(); !json.Valid(body) {
				t.Errorf("not JSON: %q", body)
			}
			return nil
		})
	})
}
