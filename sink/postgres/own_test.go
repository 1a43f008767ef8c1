// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/postgres"
	"github.com/lullhq/lull/sink/sinktest"
)

// theirs lists the user's tables and views in the schema, with their columns. The query omits the
// table lull-content if lull created that table.
const theirs = `SELECT c.relname, c.relkind, a.attname, format_type(a.atttypid, a.atttypmod)
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
WHERE c.relnamespace = $1::regnamespace AND c.relkind IN ('r', 'v') AND (c.relname <> 'lull-content' OR $2 <> '')
ORDER BY 1, 3`

// mine creates a schema and runs the user's statements in it. S in a statement is replaced by the
// name of the schema.
func mine(change func(*postgres.Options), statements ...string) func(*testing.T) (sink.Sink, func(*testing.T) string) {
	return func(t *testing.T) (sink.Sink, func(*testing.T) string) {
		t.Helper()
		s := real(t, func(o *postgres.Options) { o.Collections = []event.Collection{"content"} })
		had := ""
		for _, statement := range statements {
			if strings.Contains(statement, `"lull-content"`) {
				had = "yes"
			}
			s.Run(t, strings.NewReplacer("S.", s.Schema+".", "SCHEMA S", "SCHEMA "+s.Schema).Replace(statement))
		}
		used := s
		if change != nil {
			o := s.Options
			change(&o)
			var err error
			if used, err = postgres.New(o); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = used.Close() })
		}
		return used, func(t *testing.T) string {
			t.Helper()
			return fmt.Sprint(s.Run(t, strings.NewReplacer("$1", "'"+s.Schema+"'", "$2", "'"+had+"'").Replace(theirs)))
		}
	}
}

func TestTheUsersOwnStays(t *testing.T) {
	t.Parallel()
	const columns = `(id text COLLATE "C" PRIMARY KEY, fence bigint NOT NULL, version text NOT NULL,
  order_key text NOT NULL, indexed_at timestamptz NOT NULL, document json, mine text DEFAULT 'mine',
  search tsvector GENERATED ALWAYS AS (
    json_to_tsvector('simple'::regconfig, document, '["string", "numeric", "boolean"]'::jsonb)) STORED)`
	reader := func(o *postgres.Options) { o.User = "lull_test_reader" }
	sinktest.Own(t, "postgres", map[sinktest.Place]sinktest.Owned{
		sinktest.Empty:     {Open: mine(nil, `CREATE TABLE S."lull-content" `+columns)},
		sinktest.Unmapped:  {None: "a table has its columns from the beginning"},
		sinktest.Templated: {None: "PostgreSQL has no templates of tables"},
		sinktest.Aliased: {Open: mine(nil, `CREATE TABLE S.blue `+columns,
			`CREATE VIEW S."lull-content" AS SELECT * FROM S.blue`), Put: sink.Applied},
		sinktest.Beside: {Open: mine(nil, `CREATE TABLE S."lull-contents" (mine text)`, `CREATE TABLE S."lull-other" (id text)`)},
		sinktest.ReadOnly: {
			Open: mine(reader, `CREATE TABLE S."lull-content" `+columns,
				`DO $$ BEGIN CREATE ROLE lull_test_reader LOGIN; EXCEPTION WHEN OTHERS THEN END $$`,
				`GRANT USAGE ON SCHEMA S TO lull_test_reader`, `GRANT SELECT ON ALL TABLES IN SCHEMA S TO lull_test_reader`),
			Put: sink.Configuration,
		},
	})
}
