package main

import (
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/transition"
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
		t,
		lull(t, "", "config", "diff", older, other),
		"stack: lull -> other",
		"replaced",
		"move the senders",
	)
	var found []transition.Finding
	a := lull(t, "", "config", "diff", older, other, "-o", "json")
	if a.code != exitWrong {
		t.Errorf("JSON: got %+v", a)
	}
	a.code = exitOK
	if a.into(t, &found); len(found) != 1 || !found[0].Serious {
		t.Errorf("got %+v", found)
	}
	lull(t, "", "config", "diff", older, write(t, "queues: {visibility: 1s}\n")).
		want(t, "bad settings", exitUsage, "queues.visibility")
	lull(t, "", "config", "diff", older, "missing.yaml").want(t, "no file", exitUsage, "missing.yaml")
	lull(t, "", "config", "diff", older).want(t, "one file", exitUsage, "arg")
	lull(t, "", "config").want(t, "config", exitOK, "diff")
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
		t,
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

// alarming looks for an answer that somebody has to read before they deploy.
func alarming(t *testing.T, a answer, says ...string) {
	t.Helper()
	for _, text := range says {
		if a.code != exitWrong || !strings.Contains(a.out, text) {
			t.Errorf("got %+v, want code %d and %q", a, exitWrong, text)
		}
	}
}
