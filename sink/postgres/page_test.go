// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"os"
	"strings"
	"testing"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/sink/postgres"
)

// The test runs the statements that `lull index install-template --print` shows, and then those of
// the page. The result must be what the page promises.
func TestAMigrationMakesTheTableAndTheViewOfThePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/sinks/postgres.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "### Without what was deleted, and as jsonb\n")
	_, rest, _ = strings.Cut(rest, "```sql\n")
	statements, _, closed := strings.Cut(rest, "```\n")
	if !found || !closed {
		t.Fatal("the page has no such statements")
	}
	s := real(t, func(o *postgres.Options) { o.Collections = []event.Collection{"content"} })
	made, err := s.Preparation()
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range strings.Split(made+statements, ";\n") {
		// The connection may have another search_path from an earlier statement.
		s.Run(t, "SELECT set_config('search_path', '"+s.Schema+"', false)", statement)
	}
	if err := s.Prepare(t.Context()); err != nil {
		t.Errorf("the sink is not content with the tables: %v", err)
	}
	applied(t, s, put("content#a", 1, `{"title":"Vienna", "n":1.50}`), put("content#b", 2, `{"title":"Graz"}`))
	gone := put("content#b", 3, "")
	gone.Kind, gone.Document = event.Delete, nil
	applied(t, s, gone)
	rows := s.Run(t, `SELECT id, title, document FROM `+s.Schema+`."lull-content-live" WHERE document @> '{"n": 1.5}' OR id = 'b'`)
	if len(rows) != 1 || strings.Join(rows[0], "|") != `a|Vienna|{"n": 1.50, "title": "Vienna"}` {
		t.Errorf("the view has %q", rows)
	}
}
