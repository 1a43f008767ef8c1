// SPDX-License-Identifier: Apache-2.0

//go:build e2eupstreams

package upstreams

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lullhq/lull/e2e/ground"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

// database is one database of the PostgreSQL of these tests.
type database struct{ port, name string }

func (d database) psql(t testing.TB) *exec.Cmd {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(variable(t, "LULL_E2E"), "postgres", "*", "pginstall18", "bin", "psql"))
	if err != nil || len(found) != 1 {
		t.Fatalf("want one psql, found %q (%v)", found, err)
	}
	return exec.Command(found[0], "-h", "127.0.0.1", "-p", d.port, "-U", "postgres", "-d", d.name, "-qAt", "-v",
		"ON_ERROR_STOP=1")
}

// run runs SQL statements. Each statement has its own transaction, unless the statements begin one.
func (d database) run(t testing.TB, sql string) string {
	t.Helper()
	c := d.psql(t)
	c.Stdin = strings.NewReader(sql)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("psql: %v\n%s", err, out)
	}
	return string(out)
}

// java starts a program from the jars of Kafka.
func java(t testing.TB, folder string, args ...string) (*process, io.ReadCloser) {
	t.Helper()
	jars := variable(t, "LULL_E2E")
	c := exec.Command(filepath.Join(jars, "lib", "java", "21", "bin", "java"), append([]string{
		"-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
		"-cp", filepath.Join(jars, "kafka", "*"),
	}, args...)...)
	p := &process{c, &output{}}
	c.Dir, c.Stderr = folder, p.out
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	ground.Must(t, err)
	p.cleanup(t, args[0])
	return p, out
}

// connect is a process of Kafka Connect. It has a Debezium connector for each form of messages.
type connect struct {
	folder, rest string
	files        []string
	*process
}

func newConnect(t testing.TB, d database, kafka string, prefixes map[string]string) *connect {
	t.Helper()
	c := &connect{folder: t.TempDir(), rest: freeAddress(t)}
	write := func(name string, lines ...string) string {
		file := filepath.Join(c.folder, name+".properties")
		ground.Must(t, os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600))
		return file
	}
	const converter = "org.apache.kafka.connect.json.JsonConverter"
	c.files = []string{
		write("worker", "bootstrap.servers="+kafka, "key.converter="+converter, "value.converter="+converter,
			"offset.storage.file.filename="+filepath.Join(c.folder, "offsets"), "offset.flush.interval.ms=2000",
			"listeners=http://"+c.rest, "plugin.discovery=only_scan"),
	}
	for schemas, prefix := range prefixes {
		c.files = append(c.files, write(prefix, "name="+prefix,
			"connector.class=io.debezium.connector.postgresql.PostgresConnector", "plugin.name=pgoutput",
			"database.hostname=127.0.0.1", "database.port="+d.port, "database.user=postgres", "database.password=none",
			"database.dbname="+d.name, "topic.prefix="+prefix, "slot.name="+prefix, "publication.name="+prefix,
			"publication.autocreate.mode=filtered", "table.include.list=public.pages",
			"signal.data.collection=public.signals", "decimal.handling.mode=string", "time.precision.mode=isostring",
			"provide.transaction.metadata=true", "key.converter="+converter, "key.converter.schemas.enable="+schemas,
			"value.converter="+converter, "value.converter.schemas.enable="+schemas))
	}
	return c
}

// pastSnapshot reports whether each connector has stored a position after its first snapshot. A
// connector that is killed before that makes another snapshot, which does not show deletes.
func (c *connect) pastSnapshot() bool {
	text, err := os.ReadFile(filepath.Join(c.folder, "offsets"))
	return err == nil && bytes.Count(text, []byte(`"lsn"`)) == len(c.files)-1 && !bytes.Contains(text, []byte("snapshot"))
}

func (c *connect) start(t testing.TB) {
	t.Helper()
	process, out := java(t, c.folder, append([]string{"org.apache.kafka.connect.cli.ConnectStandalone"}, c.files...)...)
	c.process = process
	go func() { _, _ = io.Copy(process.out, out) }() // stops when the process ends
	until(t, "both connectors run", 2*time.Minute, func() bool {
		for _, file := range c.files[1:] {
			name := strings.TrimSuffix(filepath.Base(file), ".properties")
			res, err := http.Get("http://" + c.rest + "/connectors/" + name + "/status") //nolint:noctx // this machine
			if err != nil {
				return false
			}
			text, err := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if err != nil || strings.Count(string(text), `"RUNNING"`) != 2 { // one for the connector, one for its task
				return false
			}
		}
		return true
	})
}

// pipedTopic publishes the records of a Kafka topic in the form of EventBridge Pipes, until the
// test ends.
type pipedTopic struct {
	incremental, last atomic.Bool
	records           atomic.Int64
}

func pipe(t testing.TB, kafka, topic string, api operate.API) *pipedTopic {
	t.Helper()
	p := &pipedTopic{}
	_, out := java(t, t.TempDir(), "org.apache.kafka.tools.consumer.ConsoleConsumer", "--bootstrap-server", kafka,
		"--topic", topic, "--from-beginning", "--property", "print.key=true", "--property", "print.offset=true",
		"--property", "print.partition=true", "--property", "print.timestamp=true")
	go func() {
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			body, key, value, err := record(topic, lines.Text())
			if err == nil {
				m := []queue.Outgoing{{Body: body}}
				_, err = api.Publish(t.Context(), operate.Publication{Messages: m, Unchecked: true})
			}
			if t.Context().Err() != nil {
				return
			}
			if err != nil {
				t.Errorf("%s: %v", topic, err)
			}
			p.records.Add(1)
			if strings.Contains(value, `"snapshot":"incremental"`) {
				p.incremental.Store(true)
			}
			if strings.Contains(key, strconv.Itoa(sentinel)) {
				p.last.Store(true)
			}
		}
	}()
	return p
}

// record reads a record from a line of Kafka's console consumer.
func record(topic, line string) (body, key, value string, err error) {
	f := strings.SplitN(line, "\t", 5)
	if len(f) != 5 {
		return "", "", "", fmt.Errorf("a line has %d fields", len(f))
	}
	number := func(s string) int64 {
		_, digits, _ := strings.Cut(s, ":")
		n, bad := strconv.ParseInt(digits, 10, 64)
		err = errors.Join(err, bad)
		return n
	}
	r := map[string]any{
		"eventSource": "SelfManagedKafka", "bootstrapServers": "127.0.0.1:9092", "eventSourceKey": topic + "-0",
		"topic":     topic,
		"timestamp": number(f[0]), "timestampType": "CREATE_TIME", "partition": number(f[1]), "offset": number(f[2]),
		"key": base64.StdEncoding.EncodeToString([]byte(f[3])), "headers": []any{},
	}
	if f[4] != "null" {
		r["value"] = base64.StdEncoding.EncodeToString([]byte(f[4]))
	}
	text, bad := json.Marshal(r)
	return string(text), f[3], f[4], errors.Join(err, bad)
}

// sentinel is the id of the last row that is written.
const sentinel = 987654

// rows is the number of ids that the changes use. An update of the key adds further ids.
const rows = 30

// randomChanges returns transactions with random inserts, updates and deletes.
func randomChanges(r *rand.Rand, n int) string {
	var sql strings.Builder
	// some values are TOAST
	text := func() string { return fmt.Sprintf("repeat(md5('%d'), %d)", r.Uint32(), 1+r.IntN(300)) }
	for range n {
		sql.WriteString("begin;\n")
		for range 1 + r.IntN(4) {
			id := 1 + r.IntN(rows)
			switch r.IntN(7) {
			case 0:
				fmt.Fprintf(&sql, "delete from pages where id = %d;\n", id)
			case 1: // the primary key changes
				fmt.Fprintf(&sql, "update pages set id = id + 1000 where id = %d and not exists "+
					"(select 1 from pages where id = %d);\n", id, id+1000)
			case 2, 3:
				fmt.Fprintf(&sql, "update pages set title = 'title %d', price = price + 0.01 where id = %d;\n",
					r.Uint32(), id)
			default:
				fmt.Fprintf(
					&sql,
					"insert into pages values (%d, 'new %d', %s, %d.50, '2026-11-22 10:00:00.5') on conflict (id) do "+
						"update set body = excluded.body;\n",
					id,
					r.Uint32(),
					text(),
					r.IntN(1000),
				)
			}
		}
		if r.IntN(10) == 0 {
			sql.WriteString("rollback;\n")
		} else {
			sql.WriteString("commit;\n")
		}
	}
	return sql.String()
}

func TestDocumentsEqualTheTableBehindDebezium(t *testing.T) {
	name := fmt.Sprintf("shop%d", time.Now().Unix()) // a new name, because slots of an earlier run block its database
	d := database{variable(t, "LULL_E2E_POSTGRES"), "postgres"}
	d.run(t, "create database "+name)
	d.name = name
	d.run(t, `create table pages (id int primary key, title text, body text, price numeric(10,2), at timestamp);
		alter table pages replica identity full;
		create table signals (id varchar(64) primary key, type varchar(32), data varchar(2048));
		insert into pages select i, 'page ' || i, repeat(md5(i::text), 200), i, '2026-11-22 10:00:00'
		from generate_series(1, 20) i;`)
	kafka := "127.0.0.1:" + variable(t, "LULL_E2E_KAFKA")
	prefixes := map[string]string{"false": "plain" + name, "true": "schemas" + name}
	settings := "stack: search\nsources:\n"
	for _, p := range prefixes {
		settings += fmt.Sprintf(
			"  %s: {kind: debezium, class: int, debezium: {sequence: true}, collection: %s, match: [{topic: %s}]}\n",
			p, p, p+".public.pages")
	}
	_, api := dev(t, settings+fmt.Sprintf(`defaultSource: %s
collections: {%[1]s: {}, %[2]s: {}}
sinks:
  search: {kind: opensearch, url: "https://search.example.org", index: "lull-{collection}"}
`, prefixes["false"], prefixes["true"]))
	c := newConnect(t, d, kafka, prefixes)
	c.start(t)
	var pipes []*pipedTopic
	for _, p := range prefixes {
		pipes = append(pipes, pipe(t, kafka, p+".public.pages", api))
	}
	each := func(what string, holds func(*pipedTopic) bool) {
		t.Helper()
		for _, p := range pipes {
			until(t, what, time.Minute, func() bool { return holds(p) })
		}
	}
	each("the first snapshot is in Kafka", func(p *pipedTopic) bool { return p.records.Load() >= 20 })
	r := rand.New(rand.NewPCG(7, 0))
	d.run(t, randomChanges(r, 150))
	each("changes are in Kafka", func(p *pipedTopic) bool { return p.records.Load() >= 50 })
	until(t, "both connectors have stored a position after the first snapshot", time.Minute, c.pastSnapshot)
	c.kill()
	d.run(t, randomChanges(r, 150))
	c.start(t)

	// While a transaction is open, a snapshot reads the row that the transaction has changed.
	open := d.psql(t)
	in, err := open.StdinPipe()
	if err == nil {
		err = open.Start()
	}
	if err == nil {
		_, err = io.WriteString(
			in,
			"begin;\ninsert into pages values (7777, 'old') on conflict (id) do nothing;\ncommit;\n"+
				"begin;\nupdate pages set title = 'changed while the snapshot read it' where id = 7777;\n",
		)
	}
	ground.Must(t, err)
	until(t, "the transaction is open", time.Minute, func() bool {
		return strings.TrimSpace(d.run(t, "select count(*) from pg_stat_activity where state = 'idle in transaction' "+
			"and query like 'update pages%' and datname = current_database()")) == "1"
	})
	d.run(
		t,
		`insert into signals values ('s1', 'execute-snapshot', `+
			`'{"data-collections":["public.pages"],"type":"incremental"}')`,
	)
	each("an incremental snapshot is in Kafka", func(p *pipedTopic) bool { return p.incremental.Load() })
	if _, err := io.WriteString(in, "commit;\n"); err != nil {
		t.Fatal(err)
	}
	ground.Must(t, errors.Join(in.Close(), open.Wait()))
	d.run(t, randomChanges(r, 50)+fmt.Sprintf("insert into pages values (%d, 'the last', '', 1, '2026-11-22 10:00:00');",
		sentinel))
	each("the last change is in Kafka", func(p *pipedTopic) bool { return p.last.Load() })

	type row struct {
		ID          int
		Title, Body *string
		Price       *json.Number
	}
	want := map[int]row{}
	var table []row
	all := d.run(t, "select json_agg(p) from (select id, title, body, price from pages) p")
	ground.Must(t, json.Unmarshal([]byte(all), &table))
	for _, p := range table {
		want[p.ID] = p
	}
	if len(want) < 10 || *want[7777].Title != "changed while the snapshot read it" {
		t.Fatalf("the table has %d rows, and %v", len(want), want[7777].Title)
	}
	differs := func(prefix string) (what []string) {
		for id := range 10_000 {
			if id > 1000+rows && id != 7777 || id > rows && id < 1000 {
				continue
			}
			doc, err := api.Get(t.Context(), shard.DocID(fmt.Sprintf("%s#%d", prefix, id)))
			p, there := want[id]
			if !there {
				if !errors.Is(err, operate.ErrNotFound) {
					what = append(what, fmt.Sprintf("%d is there, or not known: %v", id, err))
				}
				continue
			}
			var got struct {
				Title, Body, Price *string
				At                 *string
			}
			same := err == nil && json.Unmarshal(doc.Document, &got) == nil && equal(got.Title, p.Title) &&
				equal(got.Body, p.Body) && equal(got.Price, (*string)(p.Price))
			if !same || got.At != nil && !strings.HasPrefix(*got.At, "2026-11-22T10:00:00") {
				what = append(what, fmt.Sprintf("%d is %.200s, want %+v: %v", id, doc.Document, p, err))
			}
		}
		return what
	}
	for _, prefix := range prefixes {
		deadline := time.Now().Add(time.Minute)
		what := differs(prefix)
		for ; len(what) > 0 && time.Now().Before(deadline); what = differs(prefix) {
			<-time.After(time.Second)
		}
		for _, line := range what {
			t.Errorf("%s: %s", prefix, line)
		}
	}
	if letters, err := api.Letters(t.Context(), operate.LetterFilter{}); err != nil || len(letters) > 0 {
		t.Errorf("%d dead letters (%v), such as %+v", len(letters), err, letters[:min(1, len(letters))])
	}
	t.Logf("%d rows; %d and %d records", len(want), pipes[0].records.Load(), pipes[1].records.Load())
}

func equal(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }
