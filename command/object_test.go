// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// reading starts a stack that reads an object of these lines from a folder.
func reading(t *testing.T, key, text, perSecond string, args ...string) *stack {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"lull.yaml": `
stack: search
sources:
  exports: {kind: s3, s3: {lines: products, linesPerSecond: ` + perSecond + `}, match: [{bucket: cms-exports}]}
  products: {kind: json, json: {id: /sku, version: /v}}
collections: {products: {}}
defaultCollection: products
defaultSource: products
payload: {allow: [{bucket: cms-exports}]}
sinks: {search: {kind: bleve}}
`, "buckets/cms-exports/" + key: text} {
		save(t, filepath.Join(dir, name), text)
	}
	return start(t, nil, append([]string{
		"--config", filepath.Join(dir, "lull.yaml"), "--buckets", filepath.Join(dir, "buckets"), "--notify", "--speed", "100",
	}, args...)...)
}

func TestAnObjectOfManyDocumentsIsReadFromAFolder(t *testing.T) {
	t.Parallel()
	s := reading(t, "a b.ndjson", `{"sku":"a","v":1}`+"\n"+`{"sku":"b","v":1}`+"\nbad\n", "500")
	for _, key := range []string{"products#a", "products#b"} {
		s.ask("wait", key, "--version", "1").want(t, "wait", exitOK)
	}
	const object = "s3://cms-exports/a b.ndjson"
	s.ask("object", object).want(t, "object", exitOK, "was read to its end", "3 lines so far: 2 became messages",
		"line 3 at byte 36 is not a JSON object")
	s.ask("object", object, "--abort", "-o", "json").want(t, "too late to abort", exitOK, `"done": true`)
	s.ask("object", object, "--reset", "--why", "forged").want(t, "reset", exitOK, "was withdrawn at")
	s.ask("object", object, "--reset", "--abort").want(t, "both", exitUsage, "want one of them")
	s.ask("object", "s3://cms-exports/other").want(t, "another one", exitMissing, "lull has read no object")
	s.ask("object", "other").want(t, "no address", exitUsage, "s3://bucket/key")
	if got := s.ask("dead", "list"); !strings.Contains(got.out, "1 of 3 lines") {
		t.Errorf("dead letters: %s%s", got.out, got.errors)
	}
}

// The counters include the lines and the messages with which receive continues reading. So the run
// knows when it is idle.
func TestARunWithAnObjectOfLinesEndsWhenIdle(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var text strings.Builder
	for i := range 30 {
		fmt.Fprintf(&text, `{"sku":"s%d","v":1}`+"\n", i)
	}
	for name, text := range map[string]string{"lull.yaml": `
sources:
  exports: {kind: s3, s3: {lines: products, linesPerSecond: 1}, match: [{bucket: shop}]}
  products: {kind: json, json: {id: /sku, version: /v}}
collections: {products: {}}
defaultSource: products
payload: {allow: [{bucket: shop}]}
`, "buckets/shop/good.ndjson": text.String(), "buckets/shop/bad.ndjson": `{"sku":"bad","v":1}` + "\nbad\n"} {
		save(t, filepath.Join(dir, name), text)
	}
	in := changed("ObjectCreated:Put", "good.ndjson", "0A01") + "\n" + changed("ObjectCreated:Put", "bad.ndjson", "0A01") + "\n"
	p := play(t, in, "--events", "-", "--config", filepath.Join(dir, "lull.yaml"), "--buckets", filepath.Join(dir, "buckets"))
	if err := p.report.Check(); err != nil || p.report.Written != 31 || p.report.Bursts != 31 || p.report.Read < 2 ||
		p.report.Dead != 1 {
		t.Errorf("%v, %+v, want 31 lines written and a dead letter", err, p.report)
	}
	p.says(t, "to read objects")
}

// Functions are killed and calls fail at every place between the object and the sink.
func TestEveryLineOfAnObjectIsWrittenThroughFaults(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	const n = 100
	for i := range n {
		fmt.Fprintf(&text, `{"sku":"s%d","v":1}`+"\n", i)
	}
	s := reading(t, "export.ndjson", text.String(), "1", "--faults", "--seed", "7")
	for i := range n {
		s.ask("wait", fmt.Sprintf("products#s%d", i), "--version", "1").want(t, "wait", exitOK)
	}
	s.ask("object", "s3://cms-exports/export.ndjson").want(t, "object", exitOK, "100 became messages")
}
