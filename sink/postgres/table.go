// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// columns lists the columns that lull writes. A table may have more columns, such as generated
// columns.
var columns = []string{"id", "fence", "version", "order_key", "indexed_at", "document"}

// Generated columns, which PostgreSQL computes from the document.
const (
	columnSearch    = "search"
	columnEmbedding = "embedding"
)

// kindsOfText lists the types of values in a document that a search can find.
const kindsOfText = `'["string", "numeric", "boolean"]'::jsonb`

// wordsOf returns the SQL expression for the searchable words in a part of a document.
func (s *Sink) wordsOf(part string) string {
	return "json_to_tsvector(" + literal(s.Language) + "::regconfig, " + part + ", " + kindsOfText + ")"
}

// vectorOf returns the SQL expression for the vector of a document.
func (s *Sink) vectorOf() string {
	return fmt.Sprintf("(document #>> %s)::vector(%d)", path(strings.Split(s.Vector.Field, "/")[1:]), s.Vector.Dimensions)
}

// generatedColumns returns the definitions of the columns that PostgreSQL computes from the
// document.
func (s *Sink) generatedColumns() []string {
	all := []string{columnSearch + " tsvector GENERATED ALWAYS AS (" + s.wordsOf("document") + ") STORED"}
	if s.Vector.Field != "" {
		all = append(all, fmt.Sprintf("%s vector(%d) GENERATED ALWAYS AS (%s) STORED", columnEmbedding,
			s.Vector.Dimensions, s.vectorOf()))
	}
	return all
}

// indexStatements returns the statements that create the indices of a table.
func (s *Sink) indexStatements(table string) []string {
	all := []string{
		"CREATE INDEX ON " + table + " USING gin (" + columnSearch + ")",
		"CREATE INDEX ON " + table + " (indexed_at) WHERE document IS NULL", // see forget
	}
	if s.Vector.Field != "" {
		class := map[string]string{"l2": "vector_l2_ops", "inner": "vector_ip_ops"}[s.Vector.Distance]
		if class == "" {
			class = "vector_cosine_ops"
		}
		all = append(all, "CREATE INDEX ON "+table+" USING hnsw ("+columnEmbedding+" "+class+")")
	}
	return all
}

// Table returns the statements that create the table of an index, for operators who run them
// themselves.
func (s *Sink) Table(index string) []string {
	table := s.table(index)
	return append([]string{
		"CREATE TABLE " + table + ` (
  id text COLLATE "C" PRIMARY KEY,
  fence bigint NOT NULL,
  version text NOT NULL,
  order_key text NOT NULL,
  indexed_at timestamptz NOT NULL,
  document json,
  ` + strings.Join(s.generatedColumns(), ",\n  ") + "\n)",
		"COMMENT ON TABLE " + table + " IS 'written by lull; a row without a document remembers a delete'",
	}, s.indexStatements(table)...)
}

// lockCreation takes a lock in the database. If several programs find that a table is missing, one
// after another tries to create it.
const lockCreation = `SELECT pg_advisory_xact_lock(7811887)`

// create creates a table, unless the table exists.
func (s *Sink) create(ctx context.Context, conn *pgconn.PgConn, index string) error {
	steps := append([]string{"BEGIN", lockCreation}, s.Table(index)...)
	for i, step := range append(steps, "COMMIT") {
		_, err := conn.Exec(ctx, step).ReadAll()
		if err != nil && !conn.IsClosed() {
			_, _ = conn.Exec(ctx, "ROLLBACK").ReadAll()
		}
		if i == 2 && code(err) == "42P07" {
			return nil // another program created the table first
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Prepare creates the tables of the known collections. If the settings name a field for vectors,
// Prepare also creates the extension pgvector. An existing table keeps its contents. If an existing
// table does not fit the settings, the error contains the statement that changes the table. On a
// large table that statement takes long, and blocks all writes.
func (s *Sink) Prepare(ctx context.Context) error {
	conn, err := s.pool.get(ctx)
	if err != nil {
		return s.explain("prepare", err)
	}
	defer s.pool.put(conn)
	if s.Vector.Field != "" {
		if err := s.extend(ctx, conn); err != nil {
			return err
		}
	}
	for _, c := range s.Collections {
		index, ok := s.names.Index(c)
		if !ok {
			continue
		}
		if err := s.checkTable(ctx, conn, index); !errors.Is(err, errNoTable) {
			if err != nil {
				return err
			}
			continue
		}
		if err := s.create(ctx, conn, index); err != nil {
			return s.explain("make the table "+s.table(index), err)
		}
	}
	return nil
}

// Preparation returns the statements that create the tables. Operators can put these statements
// into a migration.
func (s *Sink) Preparation() (string, error) {
	var all []string
	if s.Vector.Field != "" {
		all = append(all, "CREATE EXTENSION IF NOT EXISTS vector")
	}
	for _, c := range s.Collections {
		if index, ok := s.names.Index(c); ok {
			all = append(all, s.Table(index)...)
		}
	}
	return strings.Join(all, ";\n") + ";\n", nil
}

// extend creates the extension pgvector, unless the extension exists.
func (s *Sink) extend(ctx context.Context, conn *pgconn.PgConn) error {
	rows, err := rowsOf(ctx, conn, `SELECT 1 FROM pg_extension WHERE extname = 'vector'`)
	if err == nil && len(rows) == 0 {
		_, err = conn.Exec(ctx, lockCreation+"; CREATE EXTENSION IF NOT EXISTS vector").ReadAll() // one transaction
	}
	if err != nil {
		return s.explain("make the extension vector (pgvector)", err)
	}
	return nil
}

var errNoTable = errors.New("the table does not exist")

// checkTable returns an error if a table does not fit the settings.
func (s *Sink) checkTable(ctx context.Context, conn *pgconn.PgConn, index string) error {
	table := s.table(index)
	rows, err := rowsOf(ctx, conn, `SELECT a.attname, format_type(a.atttypid, a.atttypmod), coalesce(pg_get_expr(d.adbin, d.adrelid), ''), c.relkind
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
  LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE c.oid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped`, table)
	switch {
	case err != nil:
		return s.explain("read the columns of the table "+table, err)
	case len(rows) == 0:
		return errNoTable
	}
	has := func(name, of, expression string) (there, fits bool) {
		at := slices.IndexFunc(rows, func(r [][]byte) bool { return string(r[0]) == name })
		// The catalog has the types of a view's columns, but not their expressions.
		return at >= 0, at >= 0 && string(rows[at][1]) == of &&
			(string(rows[at][3]) == "v" || strings.Contains(string(rows[at][2]), expression))
	}
	for _, name := range columns {
		if there, _ := has(name, "", ""); !there {
			return fmt.Errorf("postgres: the table %s has no column %s, so lull did not create it: choose another name for "+
				"the index",
				table, name)
		}
	}
	for i, want := range []struct{ name, of, expression string }{
		{columnSearch, "tsvector", literal(s.Language) + "::regconfig"},
		{columnEmbedding, fmt.Sprintf("vector(%d)", s.Vector.Dimensions), "document"},
	} {
		if i == 1 && s.Vector.Field == "" {
			continue
		}
		there, fits := has(want.name, want.of, want.expression)
		change := "ADD COLUMN " + s.generatedColumns()[i]
		if there {
			change = "DROP COLUMN " + want.name + ", " + change
		}
		if !fits {
			return fmt.Errorf("postgres: the column %s of %s does not fit the settings: run ALTER TABLE %s %s; %s",
				want.name, table, table, change, s.indexStatements(table)[2*i])
		}
	}
	return nil
}

// table returns the quoted name of an index, with the schema, for statements.
func (s *Sink) table(index string) string { return identifier(s.Schema) + "." + identifier(index) }

func identifier(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// literal quotes a text for a statement. A backslash is an ordinary character, which is
// PostgreSQL's default since 9.1.
func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// path returns the SQL array for the path to a part of a document, from the tokens of a JSON
// pointer.
func path(tokens []string) string {
	quoted := make([]string, len(tokens))
	for i, t := range tokens {
		quoted[i] = literal(strings.NewReplacer("~1", "/", "~0", "~").Replace(t))
	}
	return "ARRAY[" + strings.Join(quoted, ", ") + "]::text[]"
}

// An id may contain U+0000, but a text in PostgreSQL cannot. escape changes only texts with U+0000
// or U+0001. escape keeps the order of all texts, so that Go and PostgreSQL sort ids in the same
// way.
var (
	escaper   = strings.NewReplacer("\x00", "\x01\x01", "\x01", "\x01\x02")
	unescaper = strings.NewReplacer("\x01\x01", "\x00", "\x01\x02", "\x01")
)

func escape(text string) string   { return escaper.Replace(text) }
func unescape(text string) string { return unescaper.Replace(text) }
