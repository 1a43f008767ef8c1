// SPDX-License-Identifier: Apache-2.0

package command

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/operator/transition"
)

func TestConfigDiffSaysWhatADeployDoes(t *testing.T) {
	t.Parallel()
	const sink = "sinks: {search: {kind: opensearch, index: lull, url: 'https://a.example.org'}}\n"
	older := write(t, sink)
	lull(t, "", "config", "diff", older, older).want(t, "the same", exitOK, "the settings are the same")
	lull(t, "", "config", "diff", older, write(t, sink+"debounce: {quiet: 6s}\n")).
		want(t, "in place", exitOK, "debounce.quiet: 5s -> 6s", "updated: in place")
	other := write(t, sink+"stack: other\n")
	alarming(
		t, exitWrong,
		lull(t, "", "config", "diff", older, other),
		"stack: lull -> other",
		"replaced",
		"move the senders",
	)
	a := lull(t, "", "config", "diff", older, other, "-o", "json")
	if a.code != exitWrong {
		t.Errorf("JSON: got %+v", a)
	}
	if found := parsed[[]transition.Finding](t, a); len(found) != 1 || !found[0].Serious {
		t.Errorf("got %+v", found)
	}
	lull(t, "", "config", "diff", older, write(t, "queues: {visibility: 1s}\n")).
		want(t, "bad settings", exitUsage, "queues.visibility")
	lull(t, "", "config", "diff", older, "missing.yaml").want(t, "no file", exitUsage, "missing.yaml")
	lull(t, "", "config").want(t, "config", exitOK, "diff")
}

func TestConfigCheckNamesEveryFaultWithItsLine(t *testing.T) {
	t.Parallel()
	path := write(t, "stack: search\ndebounce:\n  quiet: 55s\n  maxWait: 5s\nqueues:\n  visibility: 5s\n"+
		"sinks:\n  search:\n    kind: opensearch\n    url: https://user:secret@search.example.org\n")
	a := lull(t, "", "config", "check", path)
	a.want(t, "faults", exitUsage, path+" has 6 faults")
	for _, line := range []string{
		path + ": index.timeout (10s): is more than", // the file says nothing about it
		path + ":3: debounce.quiet (55s): is longer than the debounce.maxWait of 5s\n    lower it to at most 5s",
		path + ":6: queues.visibility (5s): ", path + ":8: sinks.search.index: is missing", path + ":10: sinks.search.url (https://***@",
	} {
		if !strings.Contains(a.out, line) || strings.Contains(a.out, "secret") {
			t.Errorf("got %s, want %q in it", a.out, line)
		}
	}
	a = lull(t, "", "config", "check", path, "-o", "json")
	answer := parsed[checked](t, a)
	if a.code != exitUsage || answer.OK || len(answer.Faults) != 6 || answer.Faults[2].Line != 3 {
		t.Errorf("got %+v", answer)
	}
	lull(t, "", "config", "check", write(t, "a: [b")).want(t, "no YAML", exitUsage, "parse settings", "line 1")
	lull(t, "", "config", "check", "missing.yaml").want(t, "no file", exitUsage, "missing.yaml")
	for _, verb := range []string{"check", "show"} {
		lull(t, "", "config", verb, "--config", path).want(t, "named as elsewhere", exitUsage, path)
		lull(t, "", "config", verb, path, "--config", path).want(t, "named twice", exitUsage, "--config", "name one file")
	}
	lull(t, "", "config", "check", path, "--aws").want(t, "of a stack", exitUsage, "does not talk to a stack")
	lull(t, "", "status", "--aws", "--config", path).want(t, "another command", exitUsage, "line 3: debounce.quiet")
}

func TestConfigCheckSaysWhatFollows(t *testing.T) {
	t.Parallel()
	path := filepath.Join("..", "docs", "lull.yaml")
	lull(t, "", "config", "check", path).want(t, "settings", exitOK, "the settings are valid", "newsroom    native  news",
		"news        search  6s     40s       10s", "search  opensearch  13s", "costs about $8 a month")
	answer := parsed[checked](t, lull(t, "", "config", "check", path, "-o", "json"))
	if !answer.OK || answer.Deployable || len(answer.Follows) == 0 || answer.Idle < 1 {
		t.Errorf("got %+v", answer)
	}
	local := write(t, "debounce: {quiet: 6s}\n")
	lull(t, "", "config", "check", local).want(t, "bleve", exitOK, "any         search  6s     30s       10s", "--deploy")
	a := lull(t, "", "config", "check", local, "--deploy")
	if a.want(t, "bleve", exitUsage, "1 fault"); !strings.Contains(a.out, "exists in one process") {
		t.Errorf("got %s", a.out)
	}
}

// The settings of a kind that is not linked may be valid. The answer names the kinds that were not
// checked. With --deploy such a kind is a fault.
func TestConfigCheckSaysWhatItCouldNotCheck(t *testing.T) {
	t.Parallel()
	path := write(t, unlinkedKinds)
	known := lull(t, "", "config", "check", path)
	known.want(t, "unlinked", exitOK, "sinks.search: unknown kind ndjson: known are bleve, ",
		"sources.wiki: unknown kind wiki: known are ", "ndjson  unknown")
	if strings.Contains(known.out, "the settings are valid") {
		t.Errorf("%s\nwant no word that all settings are valid", known.out)
	}
	alsoWrong := lull(t, "", "config", "check", write(t, unlinkedKinds+"\ndebounce: {quiet: 2h}\n"))
	alsoWrong.want(t, "unlinked, with a fault", exitUsage, "fault")
	if !strings.Contains(alsoWrong.out, "unknown kind ndjson") {
		t.Errorf("%s\nwant the unknown kind beside the fault", alsoWrong.out)
	}
	answer := parsed[checked](t, lull(t, "", "config", "check", path, "-o", "json"))
	if !answer.OK || answer.Deployable || len(answer.Unchecked) != 2 || answer.Unchecked[0].Kind != "ndjson" {
		t.Errorf("got %+v", answer)
	}
	a := lull(t, "", "config", "check", path, "--deploy")
	if a.want(t, "to be deployed", exitUsage, "2 faults"); !strings.Contains(a.out, ":5: sinks.search.kind (ndjson)") {
		t.Errorf("got %s", a.out)
	}
	a = lull(t, "", "config", "check", write(t, "sinks: {a: {kind: opensaerch}}"))
	if a.want(t, "a typing error", exitUsage); !strings.Contains(a.out, `did you mean "opensearch"?`) {
		t.Errorf("got %s", a.out)
	}
	lull(t, "", "config", "check", path, "--message", write(t, "{}")).want(t, "a message", exitUsage, "2 faults")
}

func TestConfigShowSaysWhereASettingComesFrom(t *testing.T) {
	t.Parallel()
	path := write(t, "collections: {news: {quiet: 6s}}\nsinks:\n  search:\n    kind: opensearch\n"+
		"    url: https://search.example.org\n    index: lull-{collection}\n"+
		"sources: {pages: {kind: govuk, govuk: {locales: [en, cy]}}}\n")
	rows := func(args ...string) map[string]config.Value {
		all := parsed[[]config.Value](t, lull(t, "", append([]string{"config", "show", path, "-o", "json"},
			args...)...))
		of := make(map[string]config.Value)
		for _, v := range all {
			if _, twice := of[v.Setting]; twice {
				t.Errorf("%s is listed twice", v.Setting)
			}
			of[v.Setting] = v
		}
		return of
	}
	short, whole := rows(), rows("--defaults")
	for name, want := range map[string]config.Value{
		"collections.news.quiet":      {Value: "6s", From: config.OfFile, Line: 1},
		"collections.news.maxWait":    {Value: "30s", From: config.OfOthers, Why: "debounce.maxWait; four times its own quiet, at least 30s"},
		"sinks.search.url":            {Value: "https://search.example.org", From: config.OfFile, Line: 5},
		"sinks.search.versions":       {Value: "true", From: config.OfOthers, Why: "the capability of the kind"},
		"sources.pages.govuk.locales": {Value: "[en, cy]", From: config.OfFile, Line: 7},
		"defaultSource":               {Value: "pages", From: config.OfOthers, Why: "the only source"},
		"debounce.quiet":              {Value: "5s", From: config.OfDefault},
		"queues.live.batch":           {Value: "1000", From: config.OfDefault},
		"lease of sink search":        {Value: "13s", From: config.OfOthers, Why: "index.timeout + index.guard + applyDelay"},
		"freshness of news":           {Value: "10s", From: config.OfOthers, Why: "quiet + queues.live.window + 1s, at p99"},
	} {
		want.Setting = name
		if got := whole[name]; got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		if _, listed := short[name]; listed != (want.From != config.OfDefault) {
			t.Errorf("without --defaults: %s is listed: %t", name, listed)
		}
	}
	if len(whole) < 60 {
		t.Errorf("got %d settings with --defaults", len(whole))
	}
	lull(t, "", "config", "show", path).want(t, "a table", exitOK, "SETTING", "yours, line 1", "derived: debounce.maxWait")
	lull(t, "", "config", "show", write(t, "stack: X")).want(t, "faults", exitUsage, "line 1: stack (X)")
}

func TestConfigSchemaIsTheOneOfTheSettings(t *testing.T) {
	t.Parallel()
	if a := lull(t, "", "config", "schema"); a.code != exitOK || a.out != string(config.Schema()) {
		t.Errorf("got %+v", a)
	}
}

func TestConfigDiffComparesTemplates(t *testing.T) {
	t.Parallel()
	older := write(t, `{"Resources":{"Q":{"Type":"AWS::SQS::Queue","Properties":{"QueueName":"q"}}}}`)
	newer := write(t, `{"Resources":{"Q":{"Type":"AWS::SQS::Queue","Properties":{"QueueName":"r\u001b"}}}}`)
	lull(
		t,
		"",
		"config",
		"diff",
		"--templates",
		older,
		older,
	).want(t, "the same", exitOK, "the templates are the same")
	alarming(
		t, exitWrong,
		lull(t, "", "config", "diff", "--templates", older, newer),
		"replaced",
		"AWS::SQS::Queue",
		`r\u001b`,
		"QueueName",
		"is deleted",
	)
	lull(t, "", "config", "diff", "--templates", older, write(t, "Resources:\n  Q: 1\n")).
		want(t, "YAML", exitUsage, "parse the template")
}

// alarming checks the exit code of an answer that an operator has to read, and its texts.
func alarming(t *testing.T, code exitCode, a answer, says ...string) {
	t.Helper()
	for _, text := range says {
		if a.code != code || !strings.Contains(a.out, text) {
			t.Errorf("got %+v, want code %d and %q", a, code, text)
		}
	}
}

func TestConfigCheckSaysWhyOnlyDevRunsSettings(t *testing.T) {
	t.Parallel()
	path := write(t, "sinks: {search: {kind: opensearch, index: 'lull-{collection}', url: 'https://search.example.org'}}")
	lull(t, "", "config", "check", path).want(t, "an example's address", exitOK,
		"Only `lull dev` runs these settings: sinks.search.url (https://search.example.org): is an example address")
}

func TestAMisspeltSettingIsOneFault(t *testing.T) {
	t.Parallel()
	path := write(t, "sinks: {search: {kind: opensearch, indx: x, url: 'https://search.example.org'}}")
	alarming(t, exitUsage, lull(t, "", "config", "check", path), "did you mean sinks.search.index?")
	lull(t, "", "config", "check", path).want(t, "no fault follows", exitUsage, path+" has 1 fault")
}

func TestConfigCheckSaysWhichRuleTakesAMessage(t *testing.T) {
	t.Parallel()
	path := write(t, `
sources:
  pages: {kind: json, noVersion: position, json: {key: true}, match: [{topic: pages}, {queue: pages}]}
  orders: {kind: json, json: {id: /id, version: /v}, collection: orders, match: [{bus: shop, detailType: order}]}
  partner: {kind: native, collection: orders, match: [{sink: archive}]}
  direct: {kind: native}
defaultSource: direct
collections: {content: {}, orders: {sink: archive}}
defaultCollection: content
sinks: {search: {kind: bleve}, archive: {kind: bleve}}
defaultSink: search
`)
	events := filepath.Join("..", "source", "json", "testdata", "kafka", "message.json")
	check := func(stdin string, args ...string) answer {
		return lull(t, stdin, append([]string{"config", "check", path, "--message"}, args...)...)
	}
	check("", events).want(t, "a topic of Kafka", exitOK, "topic: pages", "yes: sources.pages.match[0]: source pages decodes it",
		"put content#bus-pass, version 15 of class int, to sink search, lane live", `{"title":"Renew a bus pass","price":12.50}`)
	alarming(t, exitRefused, check(`{"detail-type":"refund","source":"shop","detail":{"id":1,"v":2}}`+"\n", "-"),
		"no: sources.orders.match[0]: detailType is refund, want order", "yes: defaultSource: source direct decodes it",
		"dead letter contract: subject is missing")
	native := `{"type":"doc.deleted","subject":"a","sequence":"1"}`
	check(native, "-", "--sink", "archive").want(t, "another sink's queue", exitOK, "yes: sources.partner.match[0]",
		"delete orders#a, version 1 of class int, to sink archive, lane live")
	alarming(t, exitRefused, check(`{"attributes":{"lull-source":"pages"},"body":`+native+`}`, "-"),
		"dead letter contract: ", "may not name source pages")
	check(`{"attributes":{"content_type":"application/x-heartbeat"},"body":"beat"}`, "-").want(t, "a heartbeat", exitOK, "skipped: heartbeat")
	all := parsed[checked](t, check(native+"\n"+native, "-", "-o", "json"))
	if len(all.Messages) != 2 || all.Messages[1].Rule != "defaultSource" || all.Messages[1].Where != "line 2" ||
		len(all.Messages[1].Missed) != 4 || all.Messages[1].Events[0].Key != "content#a" {
		t.Errorf("got %+v", all.Messages)
	}
	check("", "-").want(t, "no message", exitUsage, "holds no message")
	check("", "nowhere").want(t, "no file", exitUsage, "nowhere")
	check(native, "-", "--sink", "nope").want(t, "no such sink", exitUsage, "nope is not a sink")
	check(strings.Repeat(native+"\n", maxSamples+1), "-").want(t, "too many", exitUsage, "more than 1000 messages")
	lull(t, "", "config", "check", path, "--sink", "archive").want(t, "no message", exitUsage, "only with --message")
	escape := check(`{"type":"doc.changed","subject":"a","sequence":"1","data":{"t":"\u001b[31m"},"x":"`+"\x9b"+`"}`, "-")
	if strings.Contains(escape.out, "\x1b") || strings.Contains(escape.out, "\x9b") {
		t.Errorf("got %q, want no control characters", escape.out)
	}
}
