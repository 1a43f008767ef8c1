// SPDX-License-Identifier: Apache-2.0

package config

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lullhq/lull/setting"
	"github.com/lullhq/lull/sink/opensearch"
)

var update = flag.Bool("update", false, "write docs/settings.md, docs/lull.schema.json and docs/sinks/README.md again")

const docHead = `# Settings

For everybody who writes a lull.yaml. The settings themselves write this page
(` + "`go test ./internal/config -run TestSettingsDocument -update`" + `), and a test keeps it so. The
[glossary](glossary.md) defines the words.

- Every setting has a default, except where it says required. lull refuses an unknown name.
- A duration is a number with ms, s, m, h or d (a day is 24 hours): 5s, 1h30m, 7d.
- A size is a whole number with B, KB, MB or GB, which count 1,024 each: 256KB.
- A short name is a lower-case letter, then up to 31 lower-case letters, digits or hyphens. The name
  of a collection may begin with a digit.
- A pointer is a JSON pointer such as /details/title.
- ` + "`<name>`" + ` is the name of a source, collection or sink. ` + "`[]`" + ` is an element of a list.
- "Alone" says which values lull accepts while all other settings have their defaults.
- A mapping of sources, collections or sinks replaces the default one whole.
- If collections has entries, lull refuses events of every other collection. If it has none, events
  may name any, each with the settings of debounce and the default sink.

lull never changes a value. It refuses settings that contradict each other, all at once, each with
the name and the fix. ` + "`lull config check`" + ` finds these errors. ` + "`lull config schema`" + ` prints a JSON
Schema, with which an editor completes names.
`

// document renders docs/settings.md.
func document() string {
	defaults := plainDefaults()
	var b strings.Builder
	b.WriteString(docHead)
	group := "?"
	for _, s := range settings() {
		if g := groupOf(s.Name); g != group {
			group = g
			fmt.Fprintf(&b, "\n## %s\n\n| setting | default | values | meaning |\n|---|---|---|---|\n",
				group)
		}
		value := s.Default
		if value == "" {
			value = written(defaults[s.generic]) // panics if a setting has no default to print
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", s.Name, value, values(s), s.Doc)
	}
	b.WriteString(
		"\n## What must hold between settings\n\n`lull config check -o json` names the rule that is broken. The same rules hold for the settings\n" +
			"that a collection overrides. V is queues.visibility, W the window of a lane, Tr receive.timeout and\n" +
			"Ti index.timeout.\n\n| rule | what must hold |\n|---|---|\n")
	for _, r := range rules {
		fmt.Fprintf(&b, "| %s | %s |\n", r.Name, r.Doc)
	}
	fmt.Fprintf(&b, "| deployed-sink | What is deployed writes to a sink that outlives the process: %s. |\n", deployable())
	c := Default()
	noVersions := c
	noVersions.Sinks = map[string]Sink{"search": {Kind: "opensearch", Options: opensearch.Settings{Serverless: true}}}
	fmt.Fprintf(&b, `
## What follows

| number | from | with the defaults |
|---|---|---|
| lease | index.timeout + index.guard + the sink's applyDelay | %s with versions, %s without |
| maxReceiveCount of every queue | 10, 20 short waits, 90 of 3m12s, and one for each 12m until retry.deadDeadline, rounded up | %d |
| first ambiguous retry | flight.ambiguousRetry, or the lease rounded up to whole seconds | %s with versions, %s without |

Next: [an example](lull.yaml), or [deploy](deploy.md).
`, words(c.Lease("search")), words(noVersions.Lease("search")), c.Retry.MaxReceiveCount(), words(c.AmbiguousRetry("search")), words(noVersions.AmbiguousRetry("search")))
	return b.String()
}

// shapes are the words of the page's head for shapes that many settings have.
var shapes = strings.NewReplacer(
	", or nothing", "", "; or nothing", "", "a JSON pointer such as /details/title", "a pointer",
	"a lower-case letter, then up to 31 lower-case letters, digits or hyphens", "a short name",
	"a lower-case letter or digit, then up to 31 lower-case letters, digits or hyphens", "a collection's name",
)

// values returns the values that a setting accepts.
func values(d described) string {
	bounds := d.Bounds()
	switch d.Unit {
	case setting.UnitText:
		bounds = strings.Replace(shapes.Replace(bounds), "any", "any text", 1)
	case setting.UnitList:
		bounds = strings.Replace("a list of: "+shapes.Replace(bounds), "of: any", "of texts", 1)
	case setting.UnitRate:
		bounds += " a second"
	}
	return bounds + d.alone()
}

// groupOf returns the heading of the page under which a setting is listed.
func groupOf(name string) string {
	group, _, found := strings.Cut(name, ".")
	switch {
	case group == "defaultSource":
		return "sources"
	case group == "defaultCollection":
		return "collections"
	case group == "defaultSink":
		return "sinks"
	case !found:
		return "The stack"
	}
	return group
}

// The generated pages link to the page of each kind of sink that can be deployed. Another test
// follows the links of all pages.
func TestSettingsDocument(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"settings.md": document(), "lull.schema.json": string(Schema()), "sinks/README.md": sinksDocument(),
	} {
		path := filepath.Join("..", "..", "docs", name)
		if *update {
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("%s is not what the settings say: run this test with -update", path)
		}
	}
}

// A cell that contains the table's separator, or is empty, would break the page.
func TestSettingsDocumentIsATable(t *testing.T) {
	t.Parallel()
	rows := 0
	for i, line := range strings.Split(document(), "\n") {
		if !strings.HasPrefix(line, "|") {
			continue
		}
		rows++
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for _, cell := range cells {
			if strings.TrimSpace(cell) == "" {
				t.Errorf("line %d: got an empty cell in %q", i+1, line)
			}
		}
		if n := len(cells); n != 4 && n != 3 && n != 2 {
			t.Errorf("line %d: got %d cells in %q", i+1, n, line)
		}
	}
	if least := len(Settings()) + len(rules); rows < least {
		t.Errorf("got %d rows, want at least %d", rows, least)
	}
}
