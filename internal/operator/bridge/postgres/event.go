// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pglogrepl"

	"github.com/lullhq/lull/internal/operator/bridge"
	"github.com/lullhq/lull/source"
)

// version orders the states of a row: see the package's documentation.
type version struct{ commit, place pglogrepl.LSN }

// String returns the version as one number. The second part has as many digits as a position of 64
// bits can have.
func (v version) String() string { return fmt.Sprintf("%d%020d", uint64(v.commit), uint64(v.place)) }

// row is the values of a row in PostgreSQL's text format, in the order of the table's columns. NULL
// is nil.
type row [][]byte

// The types of lull's events. The last is none: lull makes a dead letter of it.
const (
	changed   = "doc.changed"
	deleted   = "doc.deleted"
	truncated = "table.truncated"
)

// event is a change of one document.
type event struct {
	kind    string
	table   *table
	id      string
	version version
	at      time.Time // when the transaction committed, or zero
	row     row       // of a put
}

// body returns the event in lull's own format.
func (e *event) body() []byte {
	out := make([]byte, 0, 256+e.row.size()*5/4)
	out = append(out, `{"type":"`+e.kind+`","collection":`...)
	out = quoted(out, []byte(e.table.collection))
	out = append(out, `,"subject":`...)
	out = quoted(out, []byte(e.id))
	out = append(out, `,"sequence":"`+e.version.String()+`"`...)
	if !e.at.IsZero() {
		out = append(out, `,"time":"`+e.at.UTC().Format(time.RFC3339Nano)+`"`...)
	}
	if e.kind == changed {
		out = append(out, `,"data":`...)
		out = e.table.document(out, e.row)
	}
	return append(out, '}')
}

// message returns the event for the bridge.
func (e *event) message() bridge.Message {
	return bridge.Message{
		Body: e.body(), About: []any{"table", e.table.name, "key", e.id, "version", e.version.String()},
	}
}

func (r row) size() (n int) {
	for _, v := range r {
		n += len(v)
	}
	return n
}

// document appends a row as a JSON object.
func (t *table) document(dst []byte, r row) []byte {
	dst = append(dst, '{')
	for i, c := range t.columns {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(quoted(dst, []byte(c.name)), ':')
		if r[i] == nil {
			dst = append(dst, "null"...)
		} else {
			dst = c.encode(dst, r[i])
		}
	}
	return append(dst, '}')
}

// id returns the document's id: the values of the key, joined as [source.JoinKey] says.
func (t *table) id(r row) string {
	columns := make(map[string]string, len(t.key))
	for _, i := range t.key {
		text := t.columns[i].encode(nil, r[i])
		var s string
		if json.Unmarshal(text, &s) != nil { // a number or a boolean
			s = string(text)
		}
		columns[t.columns[i].name] = s
	}
	return source.JoinKey(columns)
}
