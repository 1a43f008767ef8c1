// SPDX-License-Identifier: Apache-2.0

//go:build e2eoutages

package outages

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lullhq/lull/e2e/ground"
	"github.com/lullhq/lull/internal/proof/tree"
)

var (
	write   = flag.Bool("write", false, "write the table of docs/lifecycles.md")
	lengths = flag.String("away", "30s,90s,5m", "for how long the engines are away")
)

// engine is a search engine that the test kills.
type engine struct {
	server, title string // its names in localstack/start.sh and in the table
	port          string
	sink          string                                           // the argument of `lull dev --sink`
	holds         func(ctx context.Context, ids []string) []string // returns the ids that the engine has
}

const (
	sentEvery = time.Second // the time between two documents, each of which is sent once
	before    = 15 * time.Second
	after     = time.Minute
	patience  = 8 * time.Minute // the limit from the restart until all documents are written
	lookEvery = 250 * time.Millisecond
)

// TestOutages measures how late documents are. It fails only if it cannot measure, or if a document
// is missing.
func TestOutages(t *testing.T) {
	var away []time.Duration
	for _, text := range strings.Split(*lengths, ",") {
		d, err := time.ParseDuration(text)
		ground.Must(t, err)
		away = append(away, d)
	}
	rows := make([][]string, 2)
	t.Run("engines", func(t *testing.T) {
		for i, e := range []engine{postgres(t), openSearch(t)} {
			t.Run(e.server, func(t *testing.T) {
				t.Parallel()
				for n, d := range away {
					rows[i] = append(rows[i], e.outage(t, n, d))
				}
			})
		}
	})
	var table strings.Builder
	table.WriteString("| engine | away | sent after the return: written after, median | longest | " +
		"waited: written after the return, median | longest |\n|---|---:|---:|---:|---:|---:|\n")
	for _, row := range slices.Concat(rows...) {
		table.WriteString(row)
	}
	t.Logf("\n%s", table.String())
	if *write && !t.Failed() {
		t.Chdir(os.Getenv("LULL_E2E_ROOT") + "/internal/proof/tree") // package tree finds pages from this folder
		tree.Generated(t, "docs/lifecycles.md", "outages", table.String(), true)
	}
}

func port(t *testing.T, server string) string {
	t.Helper()
	text, err := os.ReadFile(os.Getenv("LULL_E2E_RUN") + "/" + server + "/port")
	if err != nil {
		t.Fatalf("find the port of %s: %v: run make bench-outage", server, err)
	}
	return strings.TrimSpace(string(text))
}

func postgres(t *testing.T) engine {
	p := port(t, "postgres")
	url := "postgres://127.0.0.1:" + p + "/postgres"
	return engine{"postgres", "PostgreSQL 18", p, url, func(ctx context.Context, ids []string) (found []string) {
		c, err := pgx.Connect(ctx, url)
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
	}}
}

func openSearch(t *testing.T) engine {
	p := port(t, "opensearch")
	url := "http://127.0.0.1:" + p
	return engine{"opensearch", "OpenSearch 2.19", p, "opensearch:" + url, func(ctx context.Context, ids []string) (found []string) {
		body, err := json.Marshal(map[string]any{"ids": ids})
		ground.Must(t, err)
		var answer struct {
			Docs []struct {
				ID    string `json:"_id"`
				Found bool   `json:"found"`
			} `json:"docs"`
		}
		// A request by id finds documents before the index is refreshed.
		if post(ctx, url+"/lull-content/_mget?_source=false", string(body), &answer) != nil {
			return nil
		}
		for _, d := range answer.Docs {
			if d.Found {
				found = append(found, d.ID)
			}
		}
		return found
	}}
}

// post sends JSON. If into is not nil, it decodes the answer into it.
func post(ctx context.Context, url, body string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("content-type", "application/json")
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

// lull starts `lull dev` with an engine as the sink, and returns the address of `lull dev`.
func lull(t *testing.T, e engine) (url string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ground.Must(t, err)
	address := l.Addr().String()
	ground.Must(t, l.Close())
	log, err := os.Create(t.TempDir() + "/log")
	ground.Must(t, err)
	c := exec.Command(os.Getenv("LULL_E2E_LULL"), "dev", "--sink", e.sink, "--listen", address)
	c.Stdout, c.Stderr = log, log
	ground.Must(t, c.Start())
	t.Cleanup(func() {
		_ = c.Process.Kill() // fails if the process has already ended
		_ = c.Wait()
		_ = log.Close()
		if text, _ := os.ReadFile(log.Name()); t.Failed() {
			t.Logf("lull dev said:\n%s", text[max(0, len(text)-4000):])
		}
	})
	for deadline := time.Now().Add(time.Minute); ; <-time.After(lookEvery) {
		if c, err := net.Dial("tcp", address); err == nil {
			ground.Must(t, c.Close())
			return "http://" + address
		}
		if time.Now().After(deadline) {
			t.Fatal("lull dev does not listen")
		}
	}
}

// outage sends documents one by one, kills the engine, starts it again, and returns a row of the
// table.
func (e engine) outage(t *testing.T, n int, away time.Duration) string {
	ctx, url := t.Context(), lull(t, e)
	sent, written := map[string]time.Time{}, map[string]time.Time{}
	next, look := time.Now(), time.Now()
	// goOn sends documents and looks for written documents, until the function until returns true.
	goOn := func(until func() bool, sends bool) {
		for ; !until(); <-time.After(20 * time.Millisecond) {
			if sends && time.Now().After(next) {
				id := fmt.Sprintf("outage-%d-%d", n, len(sent))
				ground.Must(t, post(ctx, url+"/publish?source=native",
					fmt.Sprintf(`{"type":"doc.changed","subject":%q,"sequence":"1","data":{}}`, id), nil))
				sent[id], next = time.Now(), next.Add(sentEvery)
			}
			if time.Now().After(look) {
				var open []string
				for id := range sent {
					if _, found := written[id]; !found {
						open = append(open, id)
					}
				}
				asked, cancel := context.WithTimeout(ctx, 2*time.Second)
				for _, id := range e.holds(asked, open) {
					written[id] = time.Now()
				}
				cancel()
				look = time.Now().Add(lookEvery)
			}
		}
	}
	passed := func(d time.Duration) func() bool {
		end := time.Now().Add(d)
		return func() bool { return time.Now().After(end) }
	}
	goOn(passed(before), true)
	ground.Must(t, syscall.Kill(ground.Process(t, e.server, "pid"), syscall.SIGKILL))
	killed := time.Now()
	goOn(passed(away), true)
	ready := make(chan time.Time, 1)
	go func() {
		ground.Script(t, "start.sh", e.server, e.port)
		ready <- time.Now()
	}()
	var back time.Time
	goOn(func() bool {
		select {
		case back = <-ready:
			return true
		default:
			return false
		}
	}, true)
	goOn(passed(after), true)
	late := passed(patience)
	goOn(func() bool { return len(written) == len(sent) || late() }, false)
	if len(written) < len(sent) {
		t.Errorf("%d of %d documents are in %s %s after its return", len(written), len(sent), e.server, patience)
	}
	var fresh, waited []time.Duration
	for id, at := range written {
		switch {
		case sent[id].After(back):
			fresh = append(fresh, at.Sub(sent[id]))
		case at.After(killed):
			waited = append(waited, max(at.Sub(back), 0))
		}
	}
	slices.Sort(fresh)
	slices.Sort(waited)
	if len(fresh) == 0 || len(waited) == 0 {
		t.Fatalf("%d documents were sent after the return, %d waited for it", len(fresh), len(waited))
	}
	row := fmt.Sprintf("| %s | %s | %s | %s | %s | %s |\n", e.title, seconds(back.Sub(killed)),
		seconds(fresh[len(fresh)/2]), seconds(fresh[len(fresh)-1]), seconds(waited[len(waited)/2]),
		seconds(waited[len(waited)-1]))
	t.Log(row)
	return row
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.0f s", d.Seconds()) }
