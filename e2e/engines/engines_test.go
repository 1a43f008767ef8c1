// SPDX-License-Identifier: Apache-2.0

//go:build e2eengines

package engines

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lullhq/lull/e2e/ground"
	"github.com/lullhq/lull/internal/proof/tree"
)

// engine is a real search engine, started by e2e/run.sh.
type engine struct {
	server, title string // its names in localstack/start.sh and in the tables
	port          string
	url           string
	sink          string // the argument of `lull dev --sink`
	store
}

// store is what the tests ask an engine about lull's index or table.
type store interface {
	// holds returns the ids that the engine has.
	holds(ctx context.Context, ids []string) []string
	// drop removes the index or the table.
	drop(ctx context.Context) error
	// look makes all documents readable, and reads them.
	look(ctx context.Context) (contents, error)
	// version returns the engine's name and version.
	version(ctx context.Context) (string, error)
}

// contents are the documents of an engine, and the oldest and the newest revision among them.
type contents struct{ documents, oldest, newest int }

// port returns the port of a server. It skips the test if run.sh has not started the server.
func port(t *testing.T, server string) string {
	t.Helper()
	if !slices.Contains(strings.Fields(os.Getenv("LULL_E2E_STARTED")), server) {
		t.Skipf("%s is not installed: make bench-engines installs it", server)
	}
	text, err := os.ReadFile(os.Getenv("LULL_E2E_RUN") + "/" + server + "/port")
	if err != nil {
		t.Fatalf("find the port of %s: %v", server, err)
	}
	return strings.TrimSpace(string(text))
}

func postgres(t *testing.T) engine {
	p := port(t, "postgres")
	url := "postgres://127.0.0.1:" + p + "/postgres"
	return engine{"postgres", "PostgreSQL 18", p, url, url, table{url}}
}

func openSearch(t *testing.T) engine {
	p := port(t, "opensearch")
	url := "http://127.0.0.1:" + p
	return engine{"opensearch", "OpenSearch 2.19", p, url, "opensearch:" + url, index{url}}
}

// table is lull's table in PostgreSQL.
type table struct{ url string }

// query runs a statement, and reads its one row into the given variables.
func (s table) query(ctx context.Context, statement string, into ...any) error {
	c, err := pgx.Connect(ctx, s.url)
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	return c.QueryRow(ctx, statement).Scan(into...)
}

func (s table) holds(ctx context.Context, ids []string) (found []string) {
	c, err := pgx.Connect(ctx, s.url)
	if err != nil {
		return nil
	}
	defer c.Close(ctx)
	rows, err := c.Query(ctx, `SELECT id FROM "lull-content" WHERE id = ANY($1)`, ids)
	if err != nil {
		return nil
	}
	found, _ = pgx.CollectRows(rows, pgx.RowTo[string]) // after an error, the next look reads again
	return found
}

func (s table) drop(ctx context.Context) error {
	c, err := pgx.Connect(ctx, s.url)
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	_, err = c.Exec(ctx, `DROP TABLE IF EXISTS "lull-content"`)
	return err
}

func (s table) look(ctx context.Context) (c contents, err error) {
	err = s.query(ctx, `SELECT count(*), coalesce(min((document->>'revision')::int), 0),
coalesce(max((document->>'revision')::int), 0) FROM "lull-content"`, &c.documents, &c.oldest, &c.newest)
	return c, err
}

func (s table) version(ctx context.Context) (v string, err error) {
	err = s.query(ctx, `SELECT 'PostgreSQL ' || current_setting('server_version')`, &v)
	return v, err
}

// index is lull's index in OpenSearch.
type index struct{ url string }

func (s index) holds(ctx context.Context, ids []string) (found []string) {
	body, _ := json.Marshal(map[string]any{"ids": ids}) // texts always have a JSON form
	var answer struct {
		Docs []struct {
			ID    string `json:"_id"`
			Found bool   `json:"found"`
		} `json:"docs"`
	}
	// A request by id finds documents before the index is refreshed.
	if ask(ctx, http.MethodPost, s.url+"/lull-content/_mget?_source=false", string(body), &answer) != nil {
		return nil
	}
	for _, d := range answer.Docs {
		if d.Found {
			found = append(found, d.ID)
		}
	}
	return found
}

func (s index) drop(ctx context.Context) error {
	return ask(ctx, http.MethodDelete, s.url+"/lull-content?ignore_unavailable=true", "", nil)
}

func (s index) look(ctx context.Context) (contents, error) {
	if err := ask(ctx, http.MethodPost, s.url+"/lull-content/_refresh", "", nil); err != nil {
		return contents{}, err
	}
	type figure struct {
		Value float64 `json:"value"`
	}
	var answer struct {
		Hits struct {
			Total figure `json:"total"`
		} `json:"hits"`
		Aggregations struct{ Oldest, Newest figure } `json:"aggregations"`
	}
	err := ask(ctx, http.MethodPost, s.url+"/lull-content/_search", `{"size": 0, "track_total_hits": true, "aggs": {
"oldest": {"min": {"field": "revision"}}, "newest": {"max": {"field": "revision"}}}}`, &answer)
	a := answer.Aggregations
	return contents{int(answer.Hits.Total.Value), int(a.Oldest.Value), int(a.Newest.Value)}, err
}

func (s index) version(ctx context.Context) (string, error) {
	var answer struct {
		Version struct {
			Number string `json:"number"`
		} `json:"version"`
	}
	err := ask(ctx, http.MethodGet, s.url, "", &answer)
	return "OpenSearch " + answer.Version.Number, err
}

// ask sends a request, with JSON if there is a body. If into is not nil, it decodes the answer into
// it.
func ask(ctx context.Context, method, url, body string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	if body != "" {
		req.Header.Set("content-type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	switch {
	case err != nil:
		return err
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("%s: %s", resp.Status, answer)
	case into == nil:
		return nil
	}
	return json.Unmarshal(answer, into)
}

// lull starts `lull dev` with an engine as the sink, and returns its process and its address.
func lull(t *testing.T, e engine, args ...string) (process *exec.Cmd, address string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ground.Must(t, err)
	address = l.Addr().String()
	ground.Must(t, l.Close())
	return run(t, "LULL_E2E_LULL", append([]string{"dev", "--sink", e.sink, "--listen", address}, args...)...), address
}

// run starts a program, which the environment names. If the test fails, the test prints what the
// program said.
func run(t *testing.T, program string, args ...string) *exec.Cmd {
	log, err := os.Create(t.TempDir() + "/log")
	ground.Must(t, err)
	c := exec.Command(os.Getenv(program), args...)
	c.Stdout, c.Stderr = log, log
	ground.Must(t, c.Start())
	t.Cleanup(func() {
		_ = c.Process.Kill() // fails if the process has already ended
		_ = c.Wait()
		_ = log.Close()
		if text, _ := os.ReadFile(log.Name()); t.Failed() {
			t.Logf("%s said:\n%s", c, text[max(0, len(text)-4000):])
		}
	})
	return c
}

// generate writes a part of a page.
func generate(t *testing.T, page, name, text string) {
	t.Chdir(os.Getenv("LULL_E2E_ROOT") + "/internal/proof/tree") // package tree finds pages from this folder
	tree.Generated(t, page, name, text, true)
}
