// SPDX-License-Identifier: Apache-2.0

package yamlfile

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/config/tree"
	_ "github.com/lullhq/lull/sink/builtin"
	_ "github.com/lullhq/lull/source/builtin"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/blevesearch/bleve_index_api.AnalysisWorker"))
}

func TestExampleIsValid(t *testing.T) {
	t.Parallel()
	c, err := Load(filepath.Join("..", "..", "..", "docs", "lull.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.ValidateDeployed(); err != nil {
		t.Error(err)
	}
	if got := c.For("news"); got.Quiet != 6*time.Second || got.MaxWait != 40*time.Second ||
		got.CapGrace != 10*time.Second {
		t.Errorf("news: got %+v, want its overrides and the default cap grace", got)
	}
	if got := c.Payload.AllowFor("publishing"); len(got) != 0 {
		t.Errorf("publishing may refer to %v, want nothing", got)
	}
	if name := c.SinksFor("news")[0]; name != "search" || c.Sinks[name].Index != "lull-{collection}" ||
		c.Sinks[name].Auth.Service != "es" {
		t.Errorf("news: got sink %s, %+v, want search", name, c.Sinks[name])
	}
}

func TestEmptyFilesMeanTheDefaults(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "\n", "# only a comment\n", "---\n", "{}", "null",
		"debounce:\ncollections:\nqueues:\n  live:\n",
	} {
		if c, err := Parse([]byte(text)); err != nil || !reflect.DeepEqual(c, config.Default()) {
			t.Errorf("%q: got %+v and %v, want the defaults", text, c, err)
		}
	}
}

func TestYAMLAndJSONSayTheSame(t *testing.T) {
	t.Parallel()
	inYAML := `
stack: "pub"
collections:
  2024: {quiet: 6s}
  true:
  news:
    quiet: '7s'
    leading: true
queues:
  live: {batch: 1_000, window: 2s, maxConcurrency: 20}
  maxInFlight: 90000
payload:
  referenceAbove: 128KB
  httpHosts:
  - a.example.org
  - "b.example.org"
sources:
  legacy:
    kind: json
    json: {id: /id, version: "/v", operation: /op, deleteValues: ["D", "1"]}
`
	inJSON := `{"stack": "pub", "collections": {"2024": {"quiet": "6s"}, "true": {}, "news": {"quiet": "7s", "leading": true}},
		"queues": {"live": {"batch": 1000, "window": "2s", "maxConcurrency": 20}, "maxInFlight": 90000},
		"payload": {"referenceAbove": 131072, "httpHosts": ["a.example.org", "b.example.org"]},
		"sources": {"legacy": {"kind": "json", "json": {"id": "/id", "version": "/v", "operation": "/op", "deleteValues": ["D", "1"]}}}}`
	got, err := Parse([]byte(inYAML))
	if err != nil {
		t.Fatal(err)
	}
	want, err := config.ParseJSON([]byte(inJSON))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if fromJSON, err := Parse([]byte(inJSON)); err != nil || !reflect.DeepEqual(fromJSON, want) {
		t.Errorf("JSON is YAML: got %+v and %v, want %+v", fromJSON, err, want)
	}
}

func TestFaultsHaveTheirLine(t *testing.T) {
	t.Parallel()
	_, err := Parse([]byte(`# a comment
stack: search
debounce:
  quite: 5s

  maxWait: 30
queues:
  live:
    window: 1500ms
  live: {}
sinks:
  os:
    kind: opensaerch
octal:
collections:
  news: {quiet: 5s, quite: 5s}
index:
  maxItemsPerTurn: 010
`))
	want := []struct {
		line         int
		setting, fix string
	}{
		{4, "debounce.quite", "did you mean debounce.quiet?"},
		{6, "debounce.maxWait", "such as 5s"},
		{9, "queues.live.window", "write 1s or 2s"},
		{10, "queues.live", "keep one"},
		{13, "sinks.os.kind", `did you mean "opensearch"?`},
		{14, "octal", "remove it"},
		{16, "collections.news.quite", "did you mean collections.news.quiet?"},
		{18, "index.maxItemsPerTurn", "write digits"},
	}
	faults := config.Faults(err)
	if len(faults) < len(want) {
		t.Fatalf("got %v, want %d faults", err, len(want))
	}
	for i, w := range want {
		if f := faults[i]; f.Line != w.line || f.Setting != w.setting || !strings.Contains(f.Fix, w.fix) {
			t.Errorf("got %v, want line %d, %s, %q", f, w.line, w.setting, w.fix)
		}
	}
}

func TestTextThatIsNotPlainYAMLIsRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		line       int
		want       error // nil for the parser's own words
	}{
		{"anchor", "stack: &a search\n", 1, errIndirect},
		{"alias", "a: 1\nstack: *a\n", 2, errIndirect},
		{"tag", "stack: !!str search\n", 1, errIndirect},
		{"merge", "stack: search\ndebounce:\n  <<: {quiet: 5s}\n", 3, errIndirect},
		{"two documents", "stack: a\n---\nstack: b\n", 3, errDocuments},
		{"key of a list", "? [a]\n: b\n", 2, nil},
		{"explicit key", "? a\n: b\n", 1, errKey},
		{"not UTF-8", "stack: \xff\n", 1, errNotText},
		{"broken", "stack: search\ndebounce: {quiet: 5s\n", 2, nil},
		{"tabs", "debounce:\n\tquiet: 5s\n", 2, nil},
		{"too large", strings.Repeat("#", tree.MaxBytes+1), 1, tree.ErrTooLarge},
		{"too deep", strings.Repeat("[", 40) + strings.Repeat("]", 40), 1, tree.ErrTooDeep},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse([]byte(tt.text))
			var syntax *tree.SyntaxError
			if !errors.As(err, &syntax) {
				t.Fatalf("got %v, want a syntax error", err)
			}
			if syntax.Line != tt.line || tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("got %v, want line %d: %v", err, tt.line, tt.want)
			}
		})
	}
}

func TestSyntaxErrorsDoNotQuoteTheFile(t *testing.T) {
	t.Parallel()
	_, err := Parse([]byte("password: hunter2\nurl: [\n"))
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v, want an error without the file's text", err)
	}
}

func TestLoadNamesTheFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lull.yaml")
	if _, err := Load(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: got %v, want it to say so", err)
	}
	if err := os.WriteFile(path, []byte("stak: a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Load(path)
	if err == nil || !strings.Contains(err.Error(), "lull.yaml: line 1: stak: ") || len(config.Faults(err)) != 1 {
		t.Errorf("got %v, want the file, the line and one fault", err)
	}
	if err := os.WriteFile(path, []byte(strings.Repeat("#", tree.MaxBytes+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); !errors.Is(err, tree.ErrTooLarge) {
		t.Errorf("large file: got %v, want it refused", err)
	}
}

// Parse reads the output of Text without a difference. So settings can be shown, edited and used
// again.
func TestTextIsReadBack(t *testing.T) {
	t.Parallel()
	example, err := Load(filepath.Join("..", "..", "..", "docs", "lull.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := Text(example)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Parse(text); err != nil || !reflect.DeepEqual(got, example) {
		t.Errorf("%v\ngot  %+v\nwant %+v\n%s", err, got, example, text)
	}
	if strings.Contains(string(text), `""`) {
		t.Errorf("an empty text says nothing:\n%s", text)
	}
}

// FuzzParse checks that no text makes Parse panic. The error of a refused text says why, and for a
// setting also which one and how to fix it. Settings without faults survive config.json unchanged.
func FuzzParse(f *testing.F) {
	example, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "lull.yaml"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(example)
	for _, seed := range []string{
		"", "---", "stack: |\n  a\n  b", "defaultSink: \"a\\tb\"", "stack: a\nstack: b", "a: &x [*x]",
		"sinks: {s: {kind: memory, versions: false, applyDelay: 1s}}", "collections: {a: , b: {quiet: 1d2h}}",
		"payload: {allow: [{bucket: abc, sources: []}]}", "queues: {live: {batch: 0x10, window: -1s}}",
		"? a\n: |\n  b\n", "\"\\u0000\": .inf", "<<: a", "sources: {\"\": {kind: govuk, govuk: {locales: []}}}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 8<<10 {
			t.Skip("the YAML parser needs quadratic time: long texts only slow the search down")
		}
		c, err := Parse(text)
		if err != nil {
			for _, fault := range config.Faults(err) {
				checkFault(t, fault)
			}
			return
		}
		if faults := config.Faults(c.Validate()); len(faults) > 0 {
			for _, fault := range faults {
				checkFault(t, fault)
			}
			return
		}
		written, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		again, err := config.ParseJSON(written)
		if err != nil || !reflect.DeepEqual(again, c) {
			t.Errorf("%s\ngot  %+v, %v\nwant %+v", written, again, err, c)
		}
	})
}

func checkFault(t *testing.T, f *config.Fault) {
	t.Helper()
	if f.Rule == "" || f.Setting == "" || f.Problem == "" || f.Fix == "" || strings.Contains(f.Error(), "\n") {
		t.Errorf("got %#v, want a rule, a setting, a problem and a fix, on one line", f)
	}
}
