// SPDX-License-Identifier: Apache-2.0

package yamlfile

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/lullhq/lull/internal/config"
	_ "github.com/lullhq/lull/sink/builtin/local"
)

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(config.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource("lull.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("lull.schema.json") // Compile also checks the schema against that of the draft
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// judged returns the errors that the schema and lull report about a settings file.
func judged(t *testing.T, schema *jsonschema.Schema, text string) (bySchema, byLull error) {
	t.Helper()
	var value any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	c, err := Parse([]byte(text))
	if err == nil {
		err = c.Validate()
	}
	return schema.Validate(asJSONSchemaSeesIt(value)), err
}

// asJSONSchemaSeesIt converts the numbers of the YAML package to types that the validator knows.
func asJSONSchemaSeesIt(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 {
			return map[string]any{}
		}
		for key, value := range v {
			v[key] = asJSONSchemaSeesIt(value)
		}
	case []any:
		for i := range v {
			v[i] = asJSONSchemaSeesIt(v[i])
		}
	case uint64:
		return int64(v)
	}
	return v
}

// settingsBlock is a whole lull.yaml in a page.
var settingsBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```")

func TestSchemaTakesEverySettingsFile(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "..")
	files := map[string]string{"nothing": "{}"}
	for _, pattern := range []string{
		"docs/*.yaml", "e2e/ground/*.yaml", "infra/testdata/*.yaml", "localstack/lull.yaml", "docs/*.md", "docs/*/*.md",
		"README.md",
	} {
		paths, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if filepath.Ext(path) == ".yaml" {
				files[path] = string(text)
				if strings.Contains(string(text), "${") { // a template that the end-to-end tests fill in
					delete(files, path)
				}
				continue
			}
			for _, block := range settingsBlock.FindAllStringSubmatch(string(text), -1) {
				files[path+": "+block[1]] = block[1]
			}
		}
	}
	if len(files) < 6 {
		t.Fatalf("found %d settings files", len(files))
	}
	schema := compiled(t)
	for name, text := range files {
		if bySchema, byLull := judged(t, schema, text); bySchema != nil || byLull != nil {
			t.Errorf("%s:\nschema: %v\nlull: %v", name, bySchema, byLull)
		}
	}
}

// An editor marks a file that the schema refuses. lull must refuse each such file, too, because a
// schema that is stricter than lull would mislead.
func TestSchemaRefusesWhatLullRefuses(t *testing.T) {
	t.Parallel()
	schema := compiled(t)
	for _, text := range []string{
		"stcak: lull", "stack: Lull", "stack: 5", "[]", "debounce: 5s", "debounce: {quiet: 5}", "debounce: {quiet: 5 parsecs}",
		"debounce: {quiet: true}", "debounce: {leading: 'true'}", "queues: {live: {batch: 0}}", "queues: {live: {batch: 10001}}",
		"queues: {live: {batch: 1.5}}", "queues: {live: {batch: ten}}", "queues: {live: {windwo: 3s}}", "payload: {referenceAbove: 5 bytes}",
		"payload: {referenceAbove: 2000000000}", "payload: {allow: [{prefix: a/}]}", "payload: {allow: {bucket: abc}}",
		"payload: {httpHosts: [Example.org]}", "deadLetters: maybe", "tableOutage: OPEN", "flight: {kind: fast}",
		"sources: {a: {}}", "sources: {a: }", "sources: {A: {kind: native}}", "sources: {a: {kind: kafka}}",
		"sources: {a: {kind: native, locales: [en]}}", "sources: {a: {kind: native, govuk: {locales: [en]}}}",
		"sources: {a: {kind: govuk, govuk: {locale: [en]}}}", "sources: {a: {kind: json, json: {id: no-pointer}}}",
		"sources: {a: {kind: native, class: number}}", "sources: {a: {kind: native, epoch: -1}}",
		"sources: {a: {kind: native, maxVersion: 5}}", "sources: {a: {kind: native, match: [{topic: 'a b'}]}}",
		"sinks: {search: {kind: opensearch}}", "sinks: {search: {kind: opensearch, url: 'https://a.example.org'}}",
		"sinks: {search: {kind: bleve, serverless: true}}", "sinks: {search: {kind: bleve, bulkDocuments: 0}}",
		"sinks: {search: {kind: bleve, auth: {kind: token}}}", "sinks: {search: {url: x}}",
		"collections: {News: {}}", "collections: {news: {quiet: soon}}", "collections: {news: {sink: 1}}",
	} {
		bySchema, byLull := judged(t, schema, text)
		if bySchema == nil {
			t.Errorf("%s: the schema accepts the text (lull: %v)", text, byLull)
		}
		if byLull == nil {
			t.Errorf("%s: only the schema refuses the text: %v", text, bySchema)
		}
	}
}

// FuzzSchema checks that the schema accepts every text that lull accepts.
func FuzzSchema(f *testing.F) {
	for _, text := range []string{
		"debounce: {quiet: ' 5s '}", "debounce: {quiet: +5s}", "debounce: {quiet: 1m.5s}", "queues: {expectedRate: 80_000}",
		"payload: {referenceAbove: 1024}", "payload: {referenceAbove: 256 KB}", "sources:\ncollections:", "sinks: {}",
		"collections: {0a: }", "lifecycle: {rowRetention: 30d12h}", "queues: {maxInFlight: 1000}", "defaultSink: ''",
	} {
		f.Add(text)
	}
	c := jsonschema.NewCompiler()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(config.Schema()))
	if err != nil {
		f.Fatal(err)
	}
	if err := c.AddResource("lull.schema.json", doc); err != nil {
		f.Fatal(err)
	}
	schema := c.MustCompile("lull.schema.json")
	f.Fuzz(func(t *testing.T, text string) {
		settings, err := Parse([]byte(text))
		if err != nil || settings.Validate() != nil || strings.TrimSpace(text) == "" {
			t.Skip()
		}
		var value any
		if yaml.Unmarshal([]byte(text), &value) != nil || value == nil {
			t.Skip()
		}
		if err := schema.Validate(asJSONSchemaSeesIt(value)); err != nil {
			t.Errorf("%q: the schema refuses a text that lull accepts: %v", text, err)
		}
	})
}
