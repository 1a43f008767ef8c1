// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/operator/operate/operatetest"
)

// offers returns the completions of a line, without the descriptions.
func offers(t *testing.T, line ...string) []string {
	t.Helper()
	a := lull(t, "", append([]string{"__complete"}, line...)...)
	if a.code != exitOK {
		t.Errorf("%v: %+v", line, a)
	}
	var words []string
	for text := range strings.Lines(a.out) {
		if word, _, _ := strings.Cut(strings.TrimSpace(text), "\t"); !strings.HasPrefix(word, ":") {
			words = append(words, word)
		}
	}
	return words
}

func TestShellsComplete(t *testing.T) {
	t.Parallel()
	s := settled(t, "--events", write(t, put("vienna", "1", "{}"), put("graz", "x", "{}"), put("$(rm)", "1", "{}"),
		put("a b", "1", "{}"), put("`rm`", "x", "{}")), "--speed", "100")
	letters := parsed[[]operate.Letter](t, s.ask("dead", "list", "--key", "content#graz", "-o", "json"))
	settings := write(t, "sources: {cms: {kind: native}, pages: {kind: govuk}}\ndefaultSource: cms\ncollections: {news: {}}\n")
	for _, tt := range []struct {
		line []string
		want []string
		has  []string // if want is nil: words that must be among the completions
	}{
		{line: []string{"sta"}, want: []string{"status"}},
		{line: []string{"dead", "list", "--reason", "version"}, want: []string{"version_invalid", "version_class_mismatch"}},
		{line: []string{"dead", "list", "--state", ""}, want: []string{"parked", "redriven"}},
		{line: []string{"list", "--state", "f"}, want: []string{"fresh", "far_ahead", "forgotten"}},
		{line: []string{"publish", "--lane", ""}, want: []string{"live", "bulk"}},
		{line: []string{"status", "-o", ""}, want: []string{"table", "json"}},
		{line: []string{"status", "--color", "a"}, want: []string{"auto", "always"}},
		{line: []string{"new", "x", "--source", "g"}, want: []string{"govuk"}},
		{line: []string{"new", "x", "--sink", "o"}, want: []string{"opensearch"}},
		{line: []string{"simulate", "--faults", "s"}, want: []string{"standard", "swarm"}},
		{line: []string{"completion", ""}, want: []string{"bash", "zsh", "fish", "powershell"}},
		{line: []string{"dev", "--config", settings, "--source", ""}, want: []string{"cms", "pages"}},
		{line: []string{"publish", "--config", settings, "--source", "p"}, want: []string{"pages"}},
		{line: []string{"index", "check", "--config", settings, "n"}, want: []string{"news"}},
		{line: []string{"explain", "--dev", s.url, ""}, want: []string{"content#graz", "content#vienna"}},
		{line: []string{"get", "--dev", s.url, "content#v"}, want: []string{"content#vienna"}},
		{line: []string{"dead", "list", "--dev", s.url, "--key", "content#g"}, want: []string{"content#graz"}},
		{line: []string{"explain", "--dev", s.url, "content#vienna", ""}},
		{line: []string{"pause", "--dev", s.url, ""}, want: []string{"search"}},
		{line: []string{"dead", "show", "--dev", s.url, ""}, has: []string{letters[0].ID}},
		{line: []string{"dead", "redrive", "--dev", s.url, letters[0].ID[:9]}, has: []string{letters[0].ID}},
		{line: []string{"explain", "--dev", "http://127.0.0.1:1", ""}},
		{line: []string{"explain", "--aws", "--config", "missing.yaml", ""}},
	} {
		got := offers(t, tt.line...)
		if tt.has == nil && !slices.Equal(got, tt.want) {
			t.Errorf("%v: got %q, want %q", tt.line, got, tt.want)
		}
		for _, word := range tt.has {
			if !slices.Contains(got, word) {
				t.Errorf("%v: got %q, want %q among them", tt.line, got, word)
			}
		}
	}
}

// Even if a stack answers with hostile texts, a shell gets no word that it would execute.
func TestShellsAreOfferedNothingHostile(t *testing.T) {
	t.Parallel()
	for _, h := range []hostile{{}, {err: errors.New(evil)}} {
		server := httptest.NewServer(operate.Handler(operatetest.API(operate.API{}, h)))
		t.Cleanup(server.Close)
		for _, line := range [][]string{{"explain"}, {"dead", "show"}, {"list", "--collection"}, {"index", "check"}} {
			for _, word := range offers(t, append(line, "--dev", server.URL, "")...) {
				if !plain.MatchString(word) {
					t.Errorf("%v: got %q", line, word)
				}
			}
		}
	}
}

func TestCompletionOfEachShell(t *testing.T) {
	t.Parallel()
	for shell, says := range map[string]string{
		"bash": "__start_lull", "zsh": "#compdef lull", "fish": "complete -c lull", "powershell": "Register-ArgumentCompleter",
	} {
		lull(t, "", "completion", shell).want(t, shell, exitOK, says)
	}
	lull(t, "", "completion", "tcsh").want(t, "another shell", exitUsage, "tcsh")
	lull(t, "", "completion").want(t, "no shell", exitUsage, "write lull completion bash|zsh|fish|powershell")
}
