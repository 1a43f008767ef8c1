// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/local/ledger"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/shard"
)

// stacks has the settings of stacks. All but one have a single source, so that each shows one kind.
var stacks = map[string]string{
	"native": `
sources: {cms: {kind: native, class: time, collection: articles}}`,
	"native in order of arrival": `
sources: {cms: {kind: native, noVersion: arrival}}`,
	"govuk": `
sources: {publishing: {kind: govuk, govuk: {locales: [cy, en]}}}`,
	"json": `
sources:
  cms:
    kind: json
    json: {id: /meta/id, version: /rev, operation: /op, deleteValues: [removed], collection: /meta/type}
collections: {content: {}, pages: {}}
defaultCollection: content`,
	"json that arrives": `
sources: {cms: {kind: json, noVersion: arrival, json: {id: /id, operation: /op, deleteValues: [removed]}}}`,
	"debezium": "\nsources: {db: {kind: debezium}}",
	"debezium of MySQL": `
sources: {db: {kind: debezium, class: time, debezium: {key: /after/id, version: /source/ts_ms}}}`,
	"dynamodb-stream": "\nsources: {table: {kind: dynamodb-stream, collection: items}}",
	"fetched": `
sources: {cms: {kind: native, fetch: {url: "https://cms.example.org/{id}", version: /version}}}`,
	"s3": `
sources: {media: {kind: s3, s3: {stripPrefix: published/, stripSuffix: .json}}}
payload: {allow: [{bucket: media, prefix: published/}]}`,
	"two by a topic and a bus": `
sources:
  news:
    kind: json
    collection: news
    json: {id: /id, version: /v, operation: /op, deleteValues: [x]}
    match: [{topic: 'arn:aws:sns:eu-west-1:111122223333:news'}]
  shop: {kind: govuk, collection: shop, match: [{bus: shop}]}
collections: {news: {}, shop: {}}
defaultCollection: news
defaultSource: shop`,
}

// settings writes a file of deployable settings with these sources, and returns its path.
func settings(t *testing.T, sources string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "lull.yaml")
	text := "stack: search\n" + strings.TrimPrefix(sources, "\n") +
		"\nsinks: {search: {kind: opensearch, url: 'https://search.example.org', index: 'lull-{collection}'}}\n"
	save(t, path, text)
	return path
}

func TestDoctorAndTheExampleWorkWithEveryKindOfSource(t *testing.T) {
	t.Parallel()
	for name, sources := range stacks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cms := httptest.NewServer(http.NotFoundHandler()) // doctor connects to it
			t.Cleanup(cms.Close)
			sources := strings.Replace(sources, `"https://cms.example.org/{id}"`,
				`"`+cms.URL+`/{id}", allowPrivate: [127.0.0.1]`, 1)
			s := start(t, nil, "--config", settings(t, sources), "--local", "--speed", "100", "--events", write(t))
			d := s.ask("doctor")
			d.want(t, "doctor", exitOK, "as a message of source", "the delete is committed")
			if put := strings.Contains(d.out, "the sink holds it"); put == (name == "s3" || name == "fetched") {
				t.Errorf("doctor said %s", d.out)
			}
			sent := s.ask("publish", "--example")
			if name == "s3" {
				sent.want(t, "the example", exitUsage, "aws s3 cp hello.json s3://media/published/hello.json")
				return
			}
			if name == "fetched" {
				sent.want(t, "the example", exitUsage, "When "+cms.URL+"/hello has a document", `"subject":"hello"`)
				return
			}
			sent.want(t, "the example", exitOK, "to source", "next:", "lull explain")
			if strings.Contains(name, "arriv") {
				return // without a version in the event, there is none to wait for
			}
			for line := range strings.Lines(sent.out) {
				if words := strings.Fields(line); len(words) > 2 && words[0] == "lull" && words[1] != "explain" {
					words[2] = strings.Trim(words[2], "'")
					s.ask(words[1:]...).want(t, line, exitOK)
				}
			}
		})
	}
}

func TestDoctorSaysWhichSettingKeepsItFromSending(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ sources, says string }{
		"no place":     {"sources: {media: {kind: s3}}", "payload.allow"},
		"a low bound":  {"sources: {cms: {kind: native, maxVersion: '7'}}", "sources.cms.maxVersion"},
		"no locale":    {"sources: {cms: {kind: govuk, govuk: {locales: []}}}", "govuk.locales"},
		"a wrong name": {"sources: {cms: {kind: native}}", `"other" names nothing under sources`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, nil, "--config", settings(t, tt.sources), "--local", "--speed", "100", "--events", write(t))
			args := []string{"doctor"}
			if name == "a wrong name" {
				args = append(args, "--source", "other")
			}
			d := s.ask(args...)
			if d.code != exitFailed || !strings.Contains(d.out, tt.says) || !strings.Contains(d.out, "BAD") {
				t.Errorf("exit %d: %s%s, want %q", d.code, d.out, d.errors, tt.says)
			}
		})
	}
}

// For every kind of source, an equal version is written again once in each run.
func TestResyncWorksWithEveryKindOfSource(t *testing.T) {
	t.Parallel()
	for name, sources := range stacks {
		if name == "s3" || name == "fetched" || strings.Contains(name, "arriv") {
			continue // S3's messages cannot be exported, and if arrival is the version, every copy is newer
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, nil, "--config", settings(t, sources), "--local", "--speed", "100", "--events", write(t))
			sent := parsed[exampleSent](t, s.ask("publish", "--example", "-o", "json"))
			s.ask("wait", string(sent.Key), "--version", sent.Version).want(t, "wait", exitOK)
			before := committed(t, s, sent.Key)
			line, err := json.Marshal(map[string]any{"body": sent.Message.Body, "attributes": sent.Message.Attributes})
			if err != nil {
				t.Fatal(err)
			}
			done := parsed[resynced](t, s.ask("resync", write(t, string(line)), "-o", "json"))
			if done.Messages != 1 || done.Refused > 0 {
				t.Fatalf("resync: %+v", done)
			}
			for committed(t, s, sent.Key) <= before {
				if t.Context().Err() != nil {
					t.Fatal("the same version was not written again")
				}
			}
		})
	}
}

func committed(t *testing.T, s *stack, key shard.DocID) string {
	t.Helper()
	x := parsed[operate.Explanation](t, s.ask("explain", string(key), "-o", "json"))
	return x.Committed
}

// A topic may send every event to the queues of several sinks. Each sink skips the events of other
// sinks.
func TestEventsOfAnotherSinkAreDeadLettersUnlessTheyAreSkipped(t *testing.T) {
	t.Parallel()
	both := func(events ...string) string {
		var parts []string
		for _, e := range events {
			parts = append(parts, `{"basicProperties":{},"data":"`+base64.StdEncoding.EncodeToString([]byte(e))+`"}`)
		}
		return `{"rmqMessagesByQueue":{"changes::/":[` + strings.Join(parts, ",") + `]}}`
	}
	of := func(collection string) string {
		return `{"type":"doc.changed","subject":"a","sequence":"1","collection":"` + collection + `","data":{}}`
	}
	const sinks = `
collections: {news: {sink: first}, shop: {sink: second}}
defaultCollection: news
sinks: {first: {kind: bleve, index: a}, second: {kind: bleve, index: b}}
defaultSink: first
queues: {elsewhere: `
	for mode, want := range map[string]ledger.Report{
		"deadLetter": {Messages: 1, Events: 2, Written: 1, Dead: 1},
		"skip":       {Messages: 2, Events: 4, Written: 2, Skipped: 2},
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			config, file := filepath.Join(dir, "lull.yaml"), filepath.Join(dir, "report.json")
			save(t, config, "sources: {cms: {kind: native}}"+sinks+mode+"}\n")
			lull(t, "", "dev", "--config", config, "--exit-when-idle", "--speed", "100", "--report", file, "--events",
				write(t, both(of("news"), of("shop"))))
			got := decode[ledger.Report](t, contents(t, file))
			if got.Messages != want.Messages || got.Events != want.Events || got.Written != want.Written ||
				got.Dead != want.Dead || got.Skipped != want.Skipped {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}
