// SPDX-License-Identifier: Apache-2.0

//go:build e2eupstreams

package upstreams

import (
	"bytes"
	"crypto/md5" //nolint:gosec // compares long values
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lullhq/lull/e2e/ground"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/shard"
)

// The tables that the bridge sends. Large values of pages are outside of its rows (TOAST), and
// PostgreSQL does not send them if they did not change. The log of parts has whole rows. rev grows
// with each change.
const shopTables = `
create sequence revs;
create table pages (id bigint primary key, rev bigint not null, title text, blob text, tags text[], price numeric);
alter table pages alter blob set storage external;
create table parts (a text, b int, rev bigint not null, blob text, primary key (a, b));
alter table parts alter blob set storage external, replica identity full;
insert into pages select i, nextval('revs'), 'page ' || i,
  repeat(md5(i::text), case when i %% 20 = 0 then 100 else 1 end), array['a', 'b "c"', null], i + 0.10
  from generate_series(1, %d) i;
insert into parts select 'a|' || i %% 7, i, nextval('revs'), repeat('y', 3000) from generate_series(1, 300) i;
`

const shopSettings = `
stack: search
debounce: {quiet: 5s}
collections: {pages: {}, parts: {}}
sinks:
  search: {kind: opensearch, url: "https://search.example.org", index: "lull-{collection}"}
`

// transaction returns a random transaction of a writer. Only this writer deletes its rows and
// changes their keys. All writers update the rows from 1 to 9.
func transaction(r *rand.Rand, writer, writers int) string {
	var sql strings.Builder
	add := func(format string, args ...any) { fmt.Fprintf(&sql, format+";\n", args...) }
	own := func() int { return 10 + r.IntN(40)*writers + writer }
	change := func() {
		switch id := own(); r.IntN(9) {
		case 0:
			add("delete from pages where id = %d", id)
		case 1: // the key changes, there and back
			add("update pages set id = id + 1000000, rev = nextval('revs') where id = %d and not exists "+
				"(select from pages where id = %[1]d + 1000000)", id)
			if r.IntN(2) == 0 {
				add("update pages set id = id - 1000000, rev = nextval('revs') where id = %d + 1000000 and not exists "+
					"(select from pages where id = %[1]d)", id)
			}
		case 2:
			add("update pages set blob = repeat(md5(random()::text), 100), rev = nextval('revs') where id = %d", id)
		case 3, 4: // the large value does not change
			add("update pages set title = 'title ' || random(), rev = nextval('revs') where id = %d", id)
		case 5:
			add("update pages set title = 'shared ' || random(), rev = nextval('revs') where id = %d", 1+r.IntN(9))
		case 6:
			add("update parts set rev = nextval('revs') where b = %d", 1+id%300)
		default:
			add("insert into pages values (%d, nextval('revs'), 'new', repeat(md5(random()::text), %d), '{}', 'NaN') "+
				"on conflict (id) do update set title = excluded.title, rev = excluded.rev", id, 1+r.IntN(150))
		}
	}
	add("begin")
	for range 1 + r.IntN(5) {
		if r.IntN(4) > 0 {
			change()
			continue
		}
		add("savepoint one")
		change()
		if r.IntN(2) == 0 {
			add("rollback to one")
		} else {
			add("release one")
		}
	}
	if r.IntN(12) == 0 {
		add("select pg_sleep(%f)", 2*r.Float64())
	}
	add([]string{"commit", "commit", "commit", "rollback"}[r.IntN(4)])
	return sql.String()
}

// publishing is a proxy in front of `lull dev`. It fails calls, loses answers, and records each
// message.
type publishing struct {
	to     string
	faulty bool

	mu   sync.Mutex
	r    *rand.Rand
	sent int
	revs map[string]map[string]map[int64]bool // by document and version; -1 for a delete
}

func (p *publishing) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	p.mu.Lock()
	fault := 99
	if p.faulty && req.Method == http.MethodPost {
		fault = p.r.IntN(30)
	}
	p.record(body)
	p.mu.Unlock()
	if fault == 0 {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	at := p.to + req.URL.RequestURI()
	//nolint:gosec // the address is the test's own
	out, err := http.NewRequestWithContext(req.Context(), req.Method, at, bytes.NewReader(body))
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	out.Header = req.Header
	res, err := http.DefaultClient.Do(out) //nolint:gosec // a test
	if err != nil || fault == 1 {          // no answer, or the answer is lost
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer res.Body.Close()
	w.WriteHeader(res.StatusCode)
	_, _ = io.Copy(w, res.Body) // the client may be gone
}

func (p *publishing) record(body []byte) {
	var in operate.Publication
	if json.Unmarshal(body, &in) != nil {
		return
	}
	for _, m := range in.Messages {
		var e struct {
			Type, Collection, Subject, Sequence string
			Data                                struct{ Rev int64 }
		}
		if json.Unmarshal([]byte(m.Body), &e) != nil {
			continue
		}
		p.sent++
		if e.Type == "doc.deleted" {
			e.Data.Rev = -1
		}
		key, version := e.Collection+"#"+e.Subject, fmt.Sprintf("%040s", e.Sequence)
		if p.revs[key] == nil {
			p.revs[key] = map[string]map[int64]bool{}
		}
		if p.revs[key][version] == nil {
			p.revs[key][version] = map[int64]bool{}
		}
		p.revs[key][version][e.Data.Rev] = true
	}
}

// check reports versions that do not order the states of a row as its changes did. Then lull would
// write an older state over a newer one.
func (p *publishing) check(t testing.TB) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	several := 0
	for key, versions := range p.revs {
		last := int64(0)
		all := make([]string, 0, len(versions))
		for v := range versions {
			all = append(all, v)
		}
		slices.Sort(all)
		for _, v := range all {
			if len(versions[v]) > 1 {
				t.Errorf("%s: version %s has several states: %v", key, v, versions[v])
			}
			for rev := range versions[v] {
				if rev >= 0 && rev < last {
					t.Errorf("%s: version %s has rev %d, a smaller version has %d", key, v, rev, last)
				}
				last = max(last, rev)
			}
		}
		if len(all) > 1 {
			several++
		}
	}
	t.Logf("%d messages were sent, about %d documents, %d of them with several versions", p.sent, len(p.revs), several)
}

// A random workload runs while the tables are copied. The bridge, PostgreSQL and `lull dev` are
// killed at random. In the end the sink equals the tables, and no version has an older state than a
// smaller version.
func TestDocumentsEqualTheTablesBehindTheBridge(t *testing.T) {
	rows, kills, seed := 100_000, 12, uint64(time.Now().UnixNano())
	if testing.Short() {
		rows, kills = 5_000, 6
	}
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	d := database{variable(t, "LULL_E2E_POSTGRES"), "postgres"}
	name := fmt.Sprintf("bridged%d", time.Now().UnixNano())
	d.run(t, "create database "+name)
	d.name = name
	d.run(t, fmt.Sprintf(shopTables, rows))
	setup := lull(t, nil, "bridge", "postgres", "setup", "pages", "parts", "--slot", name, "--role", name)
	_ = setup.cmd.Wait()
	var sql []string
	for line := range strings.Lines(setup.out.String()) {
		if !strings.HasPrefix(line, `\password`) {
			sql = append(sql, line)
		}
	}
	d.run(t, strings.Join(sql, ""))
	t.Cleanup(func() { // or the slot keeps the log
		until(t, "the slot is dropped", time.Minute, func() bool {
			c := d.psql(t)
			c.Stdin = strings.NewReader("select pg_drop_replication_slot('" + name + "');")
			return c.Run() == nil
		})
	})

	address, data := freeAddress(t), filepath.Join(t.TempDir(), "data")
	url := "http://" + address
	startDev := func() *process {
		p := lull(t, nil, "dev", "--local", "--config", ground.File(t, "lull.yaml", shopSettings), "--listen", address,
			"--data", data)
		until(t, "lull dev listens", time.Minute, func() bool { return strings.Contains(p.out.String(), url) })
		return p
	}
	dev := startDev()
	api := (&operate.Client{Base: url, HTTP: http.DefaultClient}).API()
	proxy := &publishing{
		to: url, faulty: true, r: rand.New(rand.NewPCG(seed, 1)), revs: map[string]map[string]map[int64]bool{},
	}
	front := httptest.NewServer(proxy)
	defer front.Close()
	progress, listen := filepath.Join(t.TempDir(), "copy.json"), freeAddress(t)
	startBridge := func() *process {
		return lull(t, []string{"PGPASSWORD=unused"}, "bridge", "postgres", "--url",
			fmt.Sprintf("postgres://%s@127.0.0.1:%s/%s", name, d.port, name), "--dev", front.URL, "--slot", name,
			"--copy", progress, "--listen", listen, "--drain", "5s")
	}
	began := time.Now()
	bridge := startBridge()

	const writers = 3
	stop := make(chan struct{})
	var writing errgroup.Group
	var committed [writers]int
	for w := range writers {
		r := rand.New(rand.NewPCG(seed, uint64(10+w)))
		writing.Go(func() error {
			for {
				select {
				case <-stop:
					return nil
				default:
				}
				c := d.psql(t)
				var sql strings.Builder
				for range 30 {
					sql.WriteString(transaction(r, w, writers))
				}
				c.Stdin = strings.NewReader(sql.String())
				if c.Run() == nil { // otherwise PostgreSQL was killed, or ended a deadlock
					committed[w] += 30
				}
			}
		})
	}
	copied := func() bool { return copyDone(progress) }
	for kill := 0; kill < kills || !copied(); kill++ {
		if time.Since(began) > 8*time.Minute {
			t.Fatalf("the copy has not ended: %s", bridge.out)
		}
		<-time.After(time.Duration(1000+r.IntN(3000)) * time.Millisecond)
		if kill >= kills {
			continue
		}
		switch kill % 3 {
		case 0:
			bridge.kill()
			bridge = startBridge()
		case 1:
			killBackend(t, d)
		case 2:
			dev.kill()
			<-time.After(time.Duration(r.IntN(1500)) * time.Millisecond)
			dev = startDev()
		}
	}
	t.Logf("the copy of %d rows ended %s after the start", rows+300, time.Since(began).Round(time.Second))
	<-time.After(3 * time.Second)
	close(stop)
	ground.Must(t, writing.Wait())
	proxy.mu.Lock()
	proxy.faulty = false
	before := proxy.sent
	proxy.mu.Unlock()
	large := time.Now()
	d.run(t, "begin; update pages set price = 7, rev = nextval('revs'); update pages set title = 'half' where id % 2 = 0; "+
		"insert into pages values (5000000, nextval('revs'), 'the last'); commit;")
	until(t, "the last row is in the sink", 6*time.Minute, func() bool {
		_, err := api.Get(t.Context(), "pages#5000000")
		return err == nil
	})
	took := time.Since(large)
	proxy.mu.Lock()
	t.Logf("one transaction with %d changes was in the sink %s after its begin, %.0f rows a second", proxy.sent-before,
		took.Round(time.Second), float64(proxy.sent-before)/took.Seconds())
	proxy.mu.Unlock()
	t.Logf("the bridge has used at most %s", highWater(t, bridge.cmd.Process.Pid))
	want := tableStates(t, d)
	var differs []string
	deadline := time.Now().Add(3 * time.Minute)
	for again := true; again; again = len(differs) > 0 && time.Now().Before(deadline) {
		<-time.After(time.Second)
		differs = proxy.compare(t, api, want)
	}
	for _, line := range differs[:min(20, len(differs))] {
		t.Error(line)
	}
	if letters, err := api.Letters(t.Context(), operate.LetterFilter{}); err != nil || len(letters) > 0 {
		t.Errorf("%d dead letters (%v), such as %+v", len(letters), err, letters[:min(1, len(letters))])
	}
	proxy.check(t)
	res, err := http.Get("http://" + listen + "/healthz") //nolint:noctx // this machine
	ground.Must(t, err)
	health, err := io.ReadAll(res.Body)
	ground.Must(t, errors.Join(err, res.Body.Close()))
	t.Logf("%d kills, %d rows, %v transactions; health %s", kills, len(want), committed, health)
	if code := bridge.stop(t); code != 0 || strings.Contains(bridge.out.String(), "unused") {
		t.Errorf("the bridge ended with %d, or printed the password", code)
	}
}

// highWater returns the most memory that a process has used, as the kernel writes it.
func highWater(t testing.TB, pid int) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	ground.Must(t, err)
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	line, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(line)
}

func copyDone(file string) bool {
	text, err := os.ReadFile(file)
	return err == nil && bytes.Count(text, []byte(`"done": true`)) == 2
}

// killBackend kills a process of PostgreSQL. PostgreSQL then ends all others, and recovers as after
// a crash.
func killBackend(t testing.TB, d database) {
	t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(d.run(t, "select pg_backend_pid()")))
	ground.Must(t, err)
	pid, err = strconv.Atoi(strings.TrimSpace(d.run(t, fmt.Sprintf("select pid from pg_stat_activity where "+
		"datname = current_database() and pid not in (%d, pg_backend_pid()) order by random() limit 1", pid))))
	if err != nil {
		t.Fatalf("no process to kill: %v", err)
	}
	ground.Must(t, syscall.Kill(pid, syscall.SIGKILL))
	until(t, "PostgreSQL has recovered", time.Minute, func() bool {
		c := d.psql(t)
		c.Stdin = strings.NewReader("select 1")
		return c.Run() == nil
	})
}

// state is what a document must have.
type state struct{ rev, title, blob string }

func stateOf(rev, title, blob string) state {
	return state{rev, title, fmt.Sprintf("%x", md5.Sum([]byte(blob)))} //nolint:gosec // no secret
}

// tableStates returns the states of all rows, by the keys of their documents.
func tableStates(t testing.TB, d database) map[string]state {
	t.Helper()
	want := map[string]state{}
	for line := range strings.Lines(d.run(t, `
select 'pages#' || id, rev, title, md5(coalesce(blob, '')) from pages;
select 'parts#' || replace(a, '|', '\|') || '|' || b, rev, '', md5(blob) from parts;`)) {
		line = strings.TrimSuffix(line, "\n")
		at := strings.Index(line, "|")
		if strings.HasPrefix(line, "parts#") { // the key contains two separators more
			at += 1 + strings.Index(line[at+1:], "|")
			at += 1 + strings.Index(line[at+1:], "|")
		}
		f := strings.Split(line[at+1:], "|")
		want[line[:at]] = state{f[0], f[1], f[2]}
	}
	return want
}

// compare compares the documents that were ever sent with the tables.
func (p *publishing) compare(t testing.TB, api operate.API, want map[string]state) (differs []string) {
	t.Helper()
	p.mu.Lock()
	keys := make([]string, 0, len(p.revs))
	for key := range p.revs {
		keys = append(keys, key)
	}
	p.mu.Unlock()
	if len(keys) < len(want) {
		return []string{fmt.Sprintf("%d documents were sent, and the tables have %d rows", len(keys), len(want))}
	}
	var mu sync.Mutex
	var asking errgroup.Group
	asking.SetLimit(8)
	for _, key := range keys {
		asking.Go(func() error {
			doc, err := api.Get(t.Context(), shard.DocID(key))
			w, there := want[key]
			var got struct {
				Rev         json.Number
				Title, Blob string
			}
			same := errors.Is(err, operate.ErrNotFound)
			if there {
				same = err == nil && json.Unmarshal(doc.Document, &got) == nil &&
					stateOf(string(got.Rev), got.Title, got.Blob) == w
			}
			if !same {
				mu.Lock()
				defer mu.Unlock()
				differs = append(differs, fmt.Sprintf("%s is %.80s (%v), want %+v, there %t", key, doc.Document, err, w, there))
			}
			return nil
		})
	}
	ground.Must(t, asking.Wait())
	return differs
}
