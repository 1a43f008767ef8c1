// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/seam/backoff"
)

func TestTheSQLQuotesNames(t *testing.T) {
	t.Parallel()
	sql := Setup{Slot: "lull", Publication: `my"pub`, Role: "lull-role", Tables: []string{"pages", "app.Orders"}}.SQL()
	for _, want := range []string{
		`CREATE ROLE "lull-role" LOGIN REPLICATION;`, `GRANT SELECT ON "public"."pages", "app"."Orders" TO "lull-role";`,
		`GRANT USAGE ON SCHEMA "public", "app" TO`, `CREATE PUBLICATION "my""pub" FOR TABLE "public"."pages", "app"."Orders"`,
		"pg_create_logical_replication_slot('lull', 'pgoutput')",
	} {
		if !strings.Contains(sql, want) {
			t.Errorf("the SQL lacks %s:\n%s", want, sql)
		}
	}
	if strings.Index(sql, "CREATE PUBLICATION") > strings.Index(sql, "pg_create_logical") {
		t.Error("the slot is created before the publication, which it then does not know")
	}
}

func TestTheProgressOfACopyBelongsToItsSlot(t *testing.T) {
	t.Parallel()
	of := progress{System: "7", Database: "shop", Slot: "lull"}
	file := filepath.Join(t.TempDir(), "copy.json")
	p, err := load(file, of)
	if err != nil || p.Tables == nil {
		t.Fatal(p, err)
	}
	p.Tables["public.pages"] = tableDone{Rows: 7, After: []string{"a", "7"}}
	if err := p.save(file); err != nil {
		t.Fatal(err)
	}
	if p, err = load(file, of); err != nil || p.Tables["public.pages"].Rows != 7 {
		t.Errorf("got %+v, %v", p, err)
	}
	for _, other := range []progress{
		{System: "8", Database: "shop", Slot: "lull"},
		{System: "7", Database: "x", Slot: "lull"},
		{System: "7", Database: "shop", Slot: "x"},
	} {
		if _, err := load(file, other); err == nil || !strings.Contains(err.Error(), "name another file") {
			t.Errorf("%+v: %v", other, err)
		}
	}
	if _, err := load("setup_test.go", of); err == nil || !strings.Contains(err.Error(), "not the progress") {
		t.Errorf("another file: %v", err)
	}
}

func TestTablesThatCannotBeSent(t *testing.T) {
	t.Parallel()
	of := func(name, collection string) *table { return &table{name: name, collection: collection, key: []int{0}} }
	for name, tt := range map[string]struct {
		all   []*table
		named map[string]string
		says  string
	}{
		"good":             {[]*table{of("public.pages", "pages")}, nil, ""},
		"no key":           {[]*table{{name: "public.pages", collection: "pages"}}, nil, "public.pages has no primary key"},
		"no collection":    {[]*table{of("public.Pages", "Pages")}, nil, "--collection public.Pages=NAME"},
		"one collection":   {[]*table{of("a.pages", "pages"), of("b.pages", "pages")}, nil, "--collection b.pages=NAME"},
		"both on purpose":  {[]*table{of("a.p", "x"), of("b.p", "x")}, map[string]string{"a.p": "x", "b.p": "x"}, ""},
		"an unknown table": {nil, map[string]string{"public.x": "y"}, "has no such table"},
	} {
		d := Database{Publication: "lull", Collections: tt.named}
		err := d.checkTables(tt.all)
		if tt.says == "" && err != nil || tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says)) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && !backoff.Final(err) {
			t.Errorf("%s: %v is retried", name, err)
		}
	}
}

func TestAPasswordIsFoundAndNeverPrinted(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"postgres://lull@db/shop": false, "postgres://lull:hunter2@db/shop": true, "postgres://db/shop?password=hunter2": true,
		"host=db user=lull": false, "host=db Password = hunter2": true,
	} {
		if got := HasPassword(address); got != want {
			t.Errorf("%s: %t", address, got)
		}
	}
	for _, address := range []string{"postgres://u:hunter2@[x/", "postgres://u:hunter2@h/d?sslmode=x", "host=h password=hunter2 port=x"} {
		if err := new(Database).Parse(address); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", address, err)
		}
	}
	if err := explain("connect", errors.New("x")); backoff.Final(err) {
		t.Error("an unknown error is final")
	}
}
