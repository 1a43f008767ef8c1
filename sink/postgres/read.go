// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/sink"
)

// pageSize is how many documents All and Range keep in memory at a time.
const pageSize = 100

// Ping asks the server whether it accepts writes.
func (s *Sink) Ping(ctx context.Context) error {
	rows, err := s.query(ctx, `SELECT current_setting('transaction_read_only')`)
	switch {
	case err != nil:
		return s.explain("ping", err)
	case string(rows[0][0]) == "on":
		return &Error{Doing: "ping", Reason: "the server is read-only, perhaps a replica: check the url"}
	}
	return nil
}

// query runs one statement and returns its rows.
func (s *Sink) query(ctx context.Context, statement string, values ...string) ([][][]byte, error) {
	conn, err := s.pool.get(ctx)
	if err != nil {
		return nil, err
	}
	defer s.pool.put(conn)
	return rowsOf(ctx, conn, statement, values...)
}

// rowsOf runs one statement on a connection and returns its rows.
func rowsOf(ctx context.Context, conn *pgconn.PgConn, statement string, values ...string) ([][][]byte, error) {
	args, formats := make([][]byte, len(values)), make([]int16, len(values))
	for i, v := range values {
		args[i] = []byte(v)
		if strings.HasPrefix(v, "\x00") { // an array in binary format: no text begins with this byte
			formats[i] = 1
		}
	}
	result := conn.ExecParams(ctx, statement, args, nil, formats, nil).Read()
	return result.Rows, result.Err
}

// hints says what an operator can do about errors whose text does not explain that.
var hints = map[string]string{
	"28P01": "the user or the password is wrong: check the sink's auth",
	"28000": "this user may not connect from here, or only with encryption: check the sink's auth, tls and pg_hba.conf",
	"3D000": "the database does not exist: check the url",
	"3F000": "the schema does not exist: create it, or check the option schema",
	"42501": "the user lacks a right: see docs/sinks/postgres.md",
	"42704": "the type, extension or text search configuration does not exist",
	"53300": "the server has no free connection",
	"58P01": "the server does not have the extension: install pgvector there",
	"0A000": "the server does not have the extension: install pgvector there",
}

// Error says that a request other than a write failed. An Error never quotes a document.
type Error struct {
	Doing  string
	Reason string
	Err    error
}

// Error returns a text that says what failed, why, and what an operator can do.
func (e *Error) Error() string { return e.Doing + ": postgres: " + e.Reason }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// explain returns an error for operators. The server's text about a statement may quote a document,
// so the error only names the error code.
func (s *Sink) explain(doing string, err error) error {
	var e *pgconn.PgError
	text := err.Error()
	if errors.As(err, &e) {
		text = reason(e)
		if hint := hints[e.Code]; hint != "" {
			text += ": " + hint
		}
	} else if o := notConnected(context.Background(), err); o.Reason == classNotPostgres {
		text += ": check the url, and the options tls and caFile"
	}
	return &Error{Doing: doing, Reason: text, Err: err}
}

// documentColumns lists the columns that reads of documents select.
const documentColumns = `id, version, order_key, fence, (extract(epoch FROM indexed_at) * 1000000)::bigint, document`

// stored converts a row of documentColumns into a document.
func stored(c event.Collection, row [][]byte) (sink.Stored, error) {
	fence, err := strconv.ParseInt(string(row[3]), 10, 64)
	at, err2 := strconv.ParseInt(string(row[4]), 10, 64)
	doc := event.DocID(string(c) + "#" + unescape(string(row[0])))
	if err = cmp.Or(err, err2); err != nil {
		return sink.Stored{}, fmt.Errorf("read %s: %w", doc, err)
	}
	m := sink.Meta{
		Version: unescape(string(row[1])), Key: unescape(string(row[2])), Fence: event.Fence(fence),
		Indexed: time.UnixMicro(at).UTC(),
	}
	return m.Stored(doc, row[5]), nil
}

// Get returns the document, or false.
func (s *Sink) Get(ctx context.Context, doc event.DocID) (sink.Stored, bool, error) {
	found, err := s.Documents(ctx, []event.DocID{doc})
	if err != nil || found[0].Doc == "" {
		return sink.Stored{}, false, err
	}
	return found[0], true, nil
}

// Found is Get without the document: a statement that begins later finds each write.
func (s *Sink) Found(ctx context.Context, doc event.DocID) (sink.Stored, bool, error) {
	found, err := s.Marks(ctx, []event.DocID{doc})
	if err != nil || found[0].Doc == "" {
		return sink.Stored{}, false, err
	}
	return found[0], true, nil
}

// Documents returns documents with their content, in one statement for each collection.
func (s *Sink) Documents(ctx context.Context, docs []event.DocID) ([]sink.Stored, error) {
	return s.pick(ctx, documentColumns, docs)
}

// Marks returns the metadata that lull wrote with the documents, without the documents.
func (s *Sink) Marks(ctx context.Context, docs []event.DocID) ([]sink.Stored, error) {
	return s.pick(ctx, strings.TrimSuffix(documentColumns, "document")+"NULL", docs)
}

func (s *Sink) pick(ctx context.Context, what string, docs []event.DocID) ([]sink.Stored, error) {
	ids := map[event.Collection][]*string{}
	for _, doc := range docs {
		id := escape(doc.ID())
		ids[doc.Collection()] = append(ids[doc.Collection()], &id)
	}
	found := map[event.DocID]sink.Stored{}
	for c, of := range ids {
		index, ok := s.names.Index(c)
		if !ok {
			continue
		}
		all, err := s.documents(ctx, c, `SELECT `+what+` FROM `+s.table(index)+` WHERE id = ANY ($1) AND document IS NOT NULL`,
			string(textArray(of)))
		if err != nil && !isMissingTable(err) {
			return nil, s.explain("get documents of "+string(c), err)
		}
		for _, d := range all {
			found[d.Doc] = d
		}
	}
	out := make([]sink.Stored, len(docs))
	for i, doc := range docs {
		out[i] = found[doc]
	}
	return out, nil
}

// documents runs a statement that selects documentColumns, and returns the documents.
func (s *Sink) documents(ctx context.Context, c event.Collection, statement string, values ...string) ([]sink.Stored,
	error,
) {
	rows, err := s.query(ctx, statement, values...)
	found := make([]sink.Stored, len(rows))
	for i := 0; i < len(rows) && err == nil; i++ {
		found[i], err = stored(c, rows[i])
	}
	return found, err
}

// All calls f for each document, sorted by collection and id. All reads pages by id, and may miss
// documents that are written in the meantime.
func (s *Sink) All(ctx context.Context, f func(sink.Stored) error) error {
	tables, err := s.tables(ctx)
	if err != nil {
		return err
	}
	for _, c := range tables {
		if err := s.Range(ctx, c, "", f); err != nil {
			return err
		}
	}
	return nil
}

// Range calls f for each document of one collection, from the first id after the given one.
func (s *Sink) Range(ctx context.Context, c event.Collection, after string, f func(sink.Stored) error) error {
	index, ok := s.names.Index(c)
	if !ok {
		return nil
	}
	statement := fmt.Sprintf(`SELECT %s FROM %s WHERE id > $1 AND document IS NOT NULL ORDER BY id LIMIT %d`, documentColumns,
		s.table(index), pageSize)
	for more := true; more; {
		page, err := s.documents(ctx, c, statement, escape(after))
		if err != nil && !isMissingTable(err) {
			return s.explain("read "+string(c), err)
		}
		for _, d := range page {
			if err := f(d); err != nil {
				return err
			}
			after = d.Doc.ID()
		}
		more = len(page) == pageSize
	}
	return nil
}

// tables returns the collections with a table that has lull's columns, sorted.
func (s *Sink) tables(ctx context.Context) ([]event.Collection, error) {
	rows, err := s.query(ctx, `SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = $1 AND c.relkind IN ('r', 'p', 'v') AND (SELECT count(*) FROM pg_attribute a
  WHERE a.attrelid = c.oid AND NOT a.attisdropped AND a.attname = ANY ($2::text[])) = $3::int`,
		s.Schema, "{"+strings.Join(columns, ",")+"}", fmt.Sprint(len(columns)))
	if err != nil {
		return nil, s.explain("list tables", err)
	}
	var found []event.Collection
	for _, row := range rows {
		if c, ok := s.names.Collection(string(row[0])); ok {
			found = append(found, c)
		}
	}
	slices.Sort(found)
	return found, nil
}

// Search finds documents that contain every word of the text, in one field or in any field, best
// first. Search ignores words that the text search configuration omits, such as stop words.
func (s *Sink) Search(ctx context.Context, q sink.Query) ([]sink.Stored, error) {
	whole, beginning := q.Parts()
	if q.Limit <= 0 || whole == "" && beginning == "" {
		return nil, nil
	}
	text, _ := sink.Query{Text: q.Text}.Parts()
	begins := ""
	if beginning != "" {
		begins = literal(beginning) + ":*" // contains only letters and digits: see Parts
	}
	in, narrowed := columnSearch, "true"
	if q.Field != "" {
		in = s.wordsOf("document #> " + path(strings.Split(q.Field, ".")))
		narrowed = columnSearch + " @@ asked" // the index finds candidates, and then their field is compared
	}
	tables, err := s.tables(ctx)
	if err != nil {
		return nil, err
	}
	type hit struct {
		sink.Stored
		rank float64
	}
	var hits []hit
	for _, c := range tables {
		if q.Collection != "" && q.Collection != c {
			continue
		}
		index, _ := s.names.Index(c)
		language := literal(s.Language) + "::regconfig"
		rows, err := s.query(ctx, fmt.Sprintf(`SELECT %s, ts_rank(%s, asked, 1) AS rank FROM %s,
  LATERAL (SELECT plainto_tsquery(%s, $1) || (plainto_tsquery(%[4]s, $2) && to_tsquery(%[4]s, $3)) AS asked) AS query
WHERE document IS NOT NULL AND %[5]s AND %[2]s @@ asked ORDER BY rank DESC, id LIMIT %[6]d`,
			documentColumns, in, s.table(index), language, narrowed, q.Limit), text, whole, begins)
		if err != nil {
			return nil, s.explain("search "+string(c), err)
		}
		for _, row := range rows {
			d, err := stored(c, row)
			if err != nil {
				return nil, err
			}
			rank, _ := strconv.ParseFloat(string(row[6]), 64)
			hits = append(hits, hit{d, rank})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(b.rank, a.rank) })
	var found []sink.Stored
	for _, h := range hits[:min(len(hits), q.Limit)] {
		found = append(found, h.Stored)
	}
	return found, nil
}

// Sample returns the id of a document of the collection.
func (s *Sink) Sample(ctx context.Context, c event.Collection) (event.DocID, bool, error) {
	index, ok := s.names.Index(c)
	if !ok {
		return "", false, nil
	}
	rows, err := s.query(ctx, `SELECT id FROM `+s.table(index)+` WHERE document IS NOT NULL LIMIT 1`)
	switch {
	case isMissingTable(err), err == nil && len(rows) == 0:
		return "", false, nil
	case err != nil:
		return "", false, s.explain("name a document of "+string(c), err)
	}
	return event.DocID(string(c) + "#" + unescape(string(rows[0][0]))), true, nil
}

// generationQuery returns a text that identifies a table: the database system, the timeline, and
// the number and file of the table. A restored backup has another timeline, and TRUNCATE makes a
// new file. The query returns no row for an unlogged table, which a crash empties. The query also
// returns no row for a table in which a trigger or rule may change documents.
const generationQuery = `SELECT concat_ws('/', system.system_identifier, history.timeline_id, c.oid, pg_relation_filenode(c.oid))
FROM pg_class c, pg_control_system() AS system, pg_control_checkpoint() AS history
WHERE c.oid = to_regclass($1) AND c.relkind = 'r' AND c.relpersistence = 'p' AND NOT c.relhasrules
  AND NOT EXISTS (SELECT 1 FROM pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal AND t.tgtype::int & 2 <> 0)`

// Generation returns a text that identifies the collection's current table.
func (s *Sink) Generation(ctx context.Context, c event.Collection) (string, error) {
	index, ok := s.names.Index(c)
	if !ok {
		return "", nil
	}
	rows, err := s.query(ctx, generationQuery, s.table(index))
	switch {
	case slices.Contains([]string{"42501", "42883", "0A000"}, code(err)):
		return "", nil // the service does not permit the query, so the table cannot be recognised
	case err != nil:
		return "", s.explain("read which table "+index+" is", err)
	case len(rows) == 0:
		return "", nil
	}
	return string(rows[0][0]), nil
}
