// SPDX-License-Identifier: Apache-2.0

//go:build e2eupstreams

package upstreams

import (
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/shard"
)

// prepared creates a database with tables, a publication and a slot, which all have the same name.
func prepared(t testing.TB, sql, published string) database {
	t.Helper()
	d := database{variable(t, "LULL_E2E_POSTGRES"), "postgres"}
	name := fmt.Sprintf("slot%d", time.Now().UnixNano())
	d.run(t, "create database "+name)
	d.name = name
	d.run(t, sql+"; create publication lull for table "+published+" with (publish_via_partition_root = true); "+
		"select pg_create_logical_replication_slot('"+name+"', 'pgoutput');")
	t.Cleanup(func() { // or the slot keeps the log
		until(t, "the slot is dropped", time.Minute, func() bool {
			c := d.psql(t)
			c.Stdin = strings.NewReader("select pg_drop_replication_slot(slot_name) from pg_replication_slots where " +
				"slot_name = '" + name + "'")
			return c.Run() == nil
		})
	})
	return d
}

// bridge starts the bridge from a database to a `lull dev`.
func (d database) bridge(t testing.TB, dev string, more ...string) *process {
	t.Helper()
	return lull(t, nil, append([]string{
		"bridge", "postgres", "--url", fmt.Sprintf("postgres://postgres@127.0.0.1:%s/%s", d.port, d.name), "--dev", dev,
		"--slot", d.name, "--drain", "1s",
	}, more...)...)
}

// value returns what a query returns.
func (d database) value(t testing.TB, sql string) string {
	t.Helper()
	return strings.TrimSpace(d.run(t, sql))
}

// Large values that did not change, rows that leave the publication, new columns, partitions,
// another key than the primary key, and TRUNCATE.
func TestRowsThatPostgresSendsInOtherWays(t *testing.T) {
	d := prepared(t, `
create table wide (id int primary key, state text, blob text);
alter table wide alter blob set storage external;
create table parted (day date, id int, v text, primary key (id, day)) partition by range (day);
create table parted_1 partition of parted for values from ('2026-01-01') to ('2026-07-01');
create table parted_2 partition of parted for values from ('2026-07-01') to ('2027-01-01');
create table coded (id int primary key, code text not null unique, v text);
alter table coded replica identity using index coded_code_key;
create table emptied (id int primary key);
insert into wide select i, 'on', repeat('x', 3000) from generate_series(1, 5) i;
insert into parted values ('2026-02-01', 1, 'first half');
insert into coded values (1, 'a', 'v');
insert into emptied values (1)`, "wide where (id < 100), parted, coded, emptied")
	url, api := dev(t, `
stack: search
collections: {wide: {}, parted: {}, coded: {}, emptied: {}}
sinks:
  search: {kind: opensearch, url: "https://search.example.org", index: "lull-{collection}"}
`)
	p := d.bridge(t, url, "--copy", filepath.Join(t.TempDir(), "copy.json"))
	is := func(key, what string) {
		t.Helper()
		until(t, key+" is "+what, time.Minute, func() bool {
			doc, err := api.Get(t.Context(), shard.DocID(key))
			if what == "" {
				return err != nil && strings.Contains(err.Error(), "deleted by version")
			}
			return err == nil && strings.Contains(string(doc.Document), what)
		})
	}
	is("wide#1", `"state":"on"`)
	is("parted#2026-02-01|1", "first half")
	is("coded#a", `"id":1`)
	is("emptied#1", `{"id":1}`)
	p.kill()
	// The bridge reads these rows when they have changed again.
	d.run(t, `
update wide set state = 'first' where id = 1;
update wide set id = 200 where id = 2;
begin; savepoint s; update wide set state = 'inner' where id = 3; release s; commit;
update wide set state = 'first' where id = 4; delete from wide where id = 4;
alter table wide add more text;
update wide set more = 'more', state = 'second' where id = 1;
update parted set day = '2026-08-01', v = 'second half';
update coded set code = 'b', id = 2`)
	p = d.bridge(t, url)
	is("wide#1", `"blob":"`+strings.Repeat("x", 3000)+`","more":"more"`)
	is("wide#2", "")
	is("wide#3", `"state":"inner","blob":"x`)
	is("wide#4", "")
	is("parted#2026-02-01|1", "")
	is("parted#2026-08-01|1", "second half")
	is("coded#a", "")
	is("coded#b", `"id":2`)
	if letters, err := api.Letters(t.Context(), operate.LetterFilter{}); err != nil || len(letters) > 0 {
		t.Errorf("%d dead letters (%v), such as %+v", len(letters), err, letters[:min(1, len(letters))])
	}
	d.run(t, "truncate emptied")
	until(t, "the TRUNCATE is a dead letter", time.Minute, func() bool {
		letters, err := api.Letters(t.Context(), operate.LetterFilter{})
		return err == nil && len(letters) == 1 && strings.Contains(fmt.Sprintf("%+v", letters[0]), "table.truncated")
	})
	if !strings.Contains(p.out.String(), "a table was truncated") {
		t.Errorf("the log does not say it: %s", p.out)
	}
	if code := p.stop(t); code != 0 {
		t.Errorf("the bridge ended with %d", code)
	}
}

// While lull's queue is away, the bridge keeps its connection and confirms nothing. If PostgreSQL
// then removes the log, the bridge ends and says what to do.
func TestASlotWhileTheQueueIsAway(t *testing.T) {
	d := prepared(t, "create table pages (id int primary key, v text)", "pages")
	t.Cleanup(func() {
		for _, name := range []string{"wal_sender_timeout", "max_slot_wal_keep_size"} {
			d.run(t, "alter system reset "+name)
		}
		d.run(t, "select pg_reload_conf()")
	})
	d.run(t, "alter system set wal_sender_timeout = '3s'")
	d.run(t, "select pg_reload_conf()")
	down := httptest.NewServer(nil) // answers 404
	defer down.Close()
	p := d.bridge(t, down.URL, "--prefetch", "50")
	const walsender = "select pid from pg_stat_replication where application_name = 'lull bridge'"
	until(t, "the bridge reads the slot", time.Minute, func() bool { return d.value(t, walsender) != "" })
	before := d.value(t, walsender)
	confirmed := "select confirmed_flush_lsn from pg_replication_slots where slot_name = '" + d.name + "'"
	d.run(t, "insert into pages select i, repeat('x', 1000) from generate_series(1, 20000) i")
	until(t, "rows wait", time.Minute, func() bool { return strings.Contains(p.out.String(), "trying again") })
	d.run(t, "select pg_sleep(2)") // the bridge reports what it had confirmed before each second
	at := d.value(t, confirmed)
	d.run(t, "select pg_sleep(8)")
	if now := d.value(t, walsender); now != before || d.value(t, confirmed) != at {
		t.Errorf("process %s reads the slot, want %s; confirmed %s, want %s", now, before, d.value(t, confirmed), at)
	}
	d.run(t, "alter system set max_slot_wal_keep_size = '1MB'")
	d.run(t, "select pg_reload_conf()")
	for range 6 {
		d.run(t, fmt.Sprintf("select pg_logical_emit_message(false, 'x', repeat('%d', 1000000)); select pg_switch_wal(); checkpoint",
			rand.IntN(10)))
	}
	ended := make(chan struct{})
	go func() {
		_ = p.cmd.Wait() // the exit code shows the error
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(2 * time.Minute):
		t.Fatalf("the bridge still runs, and the slot is %s", d.value(t, "select wal_status from pg_replication_slots"))
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(p.out.String(), "is lost") ||
		!strings.Contains(p.out.String(), "--copy and a new FILE") {
		t.Errorf("the bridge ended with %d: %s", code, p.out)
	}
	d.run(t, "select pg_drop_replication_slot('"+d.name+"')")
	p = d.bridge(t, down.URL)
	_ = p.cmd.Wait() // the exit code shows the error
	if code := p.cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(p.out.String(), "has no slot "+d.name) {
		t.Errorf("without the slot, the bridge ended with %d: %s", code, p.out)
	}
}
