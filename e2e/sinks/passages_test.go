// SPDX-License-Identifier: Apache-2.0

//go:build e2esinks

package sinks

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/e2e/ground"
)

const vectors = "../../examples/vectors/"

// passages runs the example program with an enricher of its own.
type passages struct {
	*testing.T
	program, enricher, url, index string
}

// startPassages makes the index of the example, and starts its enricher.
func startPassages(t *testing.T, url string) *passages {
	t.Helper()
	p := &passages{T: t, program: filepath.Join(t.TempDir(), "vectors"), url: url}
	p.index = fmt.Sprintf("passages-%d", time.Now().UnixNano())
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", p.program, "../../examples/vectors").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ground.Must(t, err)
	p.enricher = l.Addr().String()
	ground.Must(t, l.Close())
	c := exec.CommandContext(t.Context(), p.program, "-passages", "-enricher", p.enricher, "serve")
	ground.Must(t, c.Start())
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	mapping, err := os.ReadFile(vectors + "passages.json")
	ground.Must(t, err)
	p.ask(http.MethodPut, "", string(mapping))
	t.Cleanup(func() { p.ask(http.MethodDelete, "", "") })
	return p
}

// ask sends a request about the index.
func (p *passages) ask(method, path, body string) string {
	p.Helper()
	r, err := http.NewRequest(method, p.url+"/"+p.index+path, strings.NewReader(body)) //nolint:gosec // a test's server
	ground.Must(p, err)
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r) //nolint:gosec // a test's server
	ground.Must(p, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		p.Fatalf("%s %s: %s %s", method, path, resp.Status, text)
	}
	return string(text)
}

// publish runs `lull dev` on messages until nothing waits.
func (p *passages) publish(lines ...string) {
	p.Helper()
	settings, err := os.ReadFile(vectors + "passages.yaml")
	ground.Must(p, err)
	text := strings.NewReplacer("http://127.0.0.1:8090", "http://"+p.enricher, "http://127.0.0.1:9200", p.url,
		"lull-{collection}", p.index).Replace(string(settings))
	file := filepath.Join(p.TempDir(), "lull.yaml")
	ground.Must(p, os.WriteFile(file, []byte(text), 0o600))
	c := exec.CommandContext(p.Context(), os.Getenv("LULL_E2E_LULL"), "dev", "--config", file, "--events", "-",
		"--speed", "10", "--exit-when-idle")
	c.Stdin = strings.NewReader(strings.Join(lines, "\n"))
	if out, err := c.CombinedOutput(); err != nil {
		p.Fatalf("%v:\n%s", err, out)
	}
	p.ask(http.MethodPost, "/_refresh", "")
}

// search finds the passage that is nearest to a text: first with the vectors of the engine, which
// are approximate, and then by a comparison of all passages.
func (p *passages) search(text string) (found []string) {
	p.Helper()
	for _, engine := range []string{"elasticsearch", ""} {
		var out, errs bytes.Buffer
		c := exec.CommandContext(p.Context(), p.program, "-passages", "-engine", engine, "-enricher", p.enricher,
			"-index", p.url+"/"+p.index, "search", text)
		c.Stdout, c.Stderr = &out, &errs
		if err := c.Run(); err != nil {
			p.Fatalf("%v: %s", err, &errs)
		}
		found = append(found, out.String())
	}
	return found
}

// message is a version of an article at a time, with its passages.
func message(after, version int, parts ...string) string {
	body, _ := json.Marshal(strings.Join(parts, "\n\n")) // cannot fail: a text
	return fmt.Sprintf(`{"after_ms":%d,"body":{"type":"doc.changed","subject":"vienna","sequence":"%d",`+
		`"data":{"title":"Vienna","body":%s}}}`, after, version, body)
}

// An article shrinks from five passages to two, out of order and twice. A search by vector finds no
// passage of an older version, and the index has no nested document of one.
func TestNoPassageOfAnOlderVersionIsFound(t *testing.T) {
	sink, url, _ := strings.Cut(os.Getenv("LULL_E2E_SINK"), ":")
	if sink != "elasticsearch" {
		t.Skip("of the servers of run.sh sinks, only Elasticsearch has vectors in nested documents")
	}
	p := startPassages(t, url)
	five := []string{"Coffee houses", "The Danube river", "Waltz and opera", "Trams and trains", "Old palaces"}
	p.publish(message(0, 1, five...))
	for _, text := range five {
		for _, found := range p.search(text) {
			if found != "1.000  Vienna: "+text+"\n" {
				t.Errorf("%s: found %s", text, found)
			}
		}
	}
	two := []string{"Coffee houses", "A new museum"}
	p.publish(message(0, 3, two...), message(300, 2, five[1:]...), message(400, 3, two...),
		message(20_000, 2, five[1:]...), message(40_000, 1, five...))
	for _, text := range append(five[1:], two...) {
		for _, found := range p.search(text) {
			if now := text == two[0] || text == two[1]; strings.Contains(found, ": "+text) != now {
				t.Errorf("%s: found %s", text, found)
			}
		}
	}
	count := p.ask(http.MethodPost, "/_search", `{"size":0,"aggs":{"passages":{"nested":{"path":"passages"}}}}`)
	if !strings.Contains(count, `"passages":{"doc_count":2}`) {
		t.Errorf("the index has other passages than two: %s", count)
	}
}
