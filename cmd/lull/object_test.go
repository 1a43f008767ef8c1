package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAnObjectOfManyDocumentsIsReadFromAFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	config := file("lull.yaml", `
stack: search
sources:
  exports: {kind: s3, s3: {lines: products}, match: [{bucket: cms-exports}]}
  products: {kind: json, json: {id: /sku, version: /v}}
collections: {products: {}}
defaultCollection: products
defaultSource: products
payload: {allow: [{bucket: cms-exports}]}
sinks: {search: {kind: bleve}}
`)
	file("buckets/cms-exports/a b.ndjson", `{"sku":"a","v":1}`+"\n"+`{"sku":"b","v":1}`+"\nbad\n")
	s := start(t, nil, "--config", config, "--buckets", filepath.Join(dir, "buckets"), "--notify", "--speed", "100")
	for _, key := range []string{"products#a", "products#b"} {
		s.ask("wait", key, "--version", "1").want(t, "wait", exitOK)
	}
	const object = "s3://cms-exports/a b.ndjson"
	s.ask("object", object).want(t, "object", exitOK, "was read to its end", "3 lines so far: 2 became messages",
		"line 3 at byte 36 is not a JSON object")
	s.ask("object", object, "--abort", "-o", "json").want(t, "too late to abort", exitOK, `"done": true`)
	s.ask("object", "s3://cms-exports/other").want(t, "another one", exitMissing, "nothing was read")
	s.ask("object", "other").want(t, "no address", exitUsage, "s3://bucket/key")
	s.ask("object", object, "--why", "x").want(t, "why without abort", exitUsage, "--abort")
	if got := s.ask("dead", "list"); !strings.Contains(got.out, "1 of 3 lines") {
		t.Errorf("dead letters: %s%s", got.out, got.errors)
	}
}
