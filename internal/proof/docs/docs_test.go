// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/format"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/config/yamlfile"
	"github.com/lullhq/lull/internal/proof/tree"
	_ "github.com/lullhq/lull/sink/builtin"
	_ "github.com/lullhq/lull/sink/builtin/local"
	"github.com/lullhq/lull/source"
	_ "github.com/lullhq/lull/source/builtin"
)

// pages reads every page except CHANGELOG.md, which may mention removed commands.
func pages(t *testing.T) (all []Page, problems []string) {
	t.Helper()
	for _, name := range tree.Files(t) {
		if path.Ext(name) != ".md" || name == "CHANGELOG.md" || strings.Contains(name, "testdata/") {
			continue
		}
		p, bad := Parse(name, read(t, name))
		all, problems = append(all, p), append(problems, bad...)
	}
	return all, problems
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(tree.Root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestPages checks every block of every page, and every command in a paragraph.
func TestPages(t *testing.T) {
	t.Parallel()
	all, problems := pages(t)
	known := program(t)
	counts := map[string]int{}
	for _, p := range all {
		problems = append(problems, known.page(p)...)
		problems = append(problems, p.settings()...)
		for _, b := range p.Blocks {
			counts[strings.TrimSpace(b.Lang+" "+b.Class)]++
		}
	}
	problems = append(problems, links(t, all)...)
	problems = append(problems, names(all)...)
	for _, problem := range problems {
		t.Error(problem)
	}
	for _, class := range slices.Sorted(maps.Keys(counts)) {
		why := notRun[strings.TrimPrefix(class, "sh ")]
		t.Logf("%4d %s  %s", counts[class], class, why)
	}
}

// cli lists the commands of docs/cli.md and the targets of the Makefile. Other tests compare
// docs/cli.md with the program.
type cli struct {
	global   []string
	commands map[string][]string // the flags of each command, by the words after lull
	targets  []string
}

var (
	heading = regexp.MustCompile(`^### lull (.+)$`)
	flag    = regexp.MustCompile(`^ +(?:(-[a-zA-Z]), )?(--[a-z-]+)`)
	target  = regexp.MustCompile(`(?m)^([a-z0-9-]+):`)
)

func program(t *testing.T) cli {
	t.Helper()
	c := cli{
		global:   []string{"-h", "--help"},
		commands: map[string][]string{"": {"--version"}, "help": nil, "completion": nil},
	}
	command, any := "", false
	for _, line := range strings.Split(read(t, "docs/cli.md"), "\n") {
		if m := heading.FindStringSubmatch(line); m != nil {
			command, any = m[1], true
			c.commands[command] = nil
		}
		m := flag.FindStringSubmatch(line)
		switch {
		case m == nil:
		case any:
			c.commands[command] = append(c.commands[command], m[1], m[2])
		default:
			c.global = append(c.global, m[1], m[2])
		}
	}
	for _, m := range target.FindAllStringSubmatch(read(t, "Makefile"), -1) {
		c.targets = append(c.targets, m[1])
	}
	if len(c.commands) < 20 || len(c.targets) < 20 {
		t.Fatalf("found %d commands and %d targets of make", len(c.commands), len(c.targets))
	}
	return c
}

// page checks the commands that a page shows.
func (c cli) page(p Page) (problems []string) {
	check := func(line int, script string) {
		all, err := commands(script)
		if err != nil {
			problems = append(problems, fmt.Sprintf("%s:%d: %v", p.Name, line, err))
		}
		for _, words := range all {
			if bad := c.wrong(words); bad != "" {
				problems = append(problems, fmt.Sprintf("%s:%d: %s", p.Name, line, bad))
			}
		}
	}
	for _, b := range p.Blocks {
		if b.Lang == "sh" {
			check(b.Line, b.Text)
		}
	}
	for _, s := range p.Spans {
		if p.Name == "docs/tracing.md" { // names of spans look like commands of lull
			break
		}
		if strings.HasPrefix(s.Text, "lull ") || strings.HasPrefix(s.Text, "make ") {
			check(s.Line, s.Text)
		}
	}
	return problems
}

// wrong returns what lull or make would not accept in a command, or "".
func (c cli) wrong(words []string) string {
	line := strings.Join(words, " ")
	switch {
	case len(words) == 0:
		return ""
	case words[0] == "$":
		return line + ": leave the prompt out, so that readers can copy it"
	case words[0] == "make":
		for _, word := range words[1:] {
			if !strings.HasPrefix(word, "-") && !strings.Contains(word, "=") && !slices.Contains(c.targets, word) {
				return fmt.Sprintf("%s: make has no target %s", line, word)
			}
		}
		return ""
	case strings.HasPrefix(line, "go run ./cmd/lull"):
		words = words[2:]
	case path.Base(words[0]) != "lull":
		return ""
	}
	command, arguments := "", words[1:]
	for len(arguments) > 0 {
		next := strings.TrimSpace(command + " " + arguments[0])
		if _, known := c.commands[next]; !known {
			break
		}
		command, arguments = next, arguments[1:]
	}
	if c.parent(command) && len(arguments) > 0 && !strings.HasPrefix(arguments[0], "-") {
		return fmt.Sprintf("%s: lull %s has no command %s", line, command, arguments[0])
	}
	for _, word := range arguments {
		name, _, _ := strings.Cut(word, "=")
		known := slices.Contains(c.commands[command], name) || slices.Contains(c.global, name)
		if len(name) > 1 && name[0] == '-' && !known {
			return fmt.Sprintf("%s: lull %s has no flag %s", line, command, name)
		}
	}
	return ""
}

// parent reports whether a command has only subcommands.
func (c cli) parent(command string) bool {
	own := func(flag string) bool { return flag != "" && !slices.Contains(c.global, flag) }
	if command != "" && slices.ContainsFunc(c.commands[command], own) {
		return false // for example rebuild, which takes a collection or a subcommand
	}
	for name := range c.commands {
		if command == "" || strings.HasPrefix(name, command+" ") {
			return true
		}
	}
	return false
}

// settings checks the settings, messages and documents that a page shows, in the order of the page.
func (p Page) settings() (problems []string) {
	around, last := "", ""
	for _, b := range p.Blocks {
		var err error
		switch b.Lang + " " + b.Class {
		case "yaml ", "yaml fragment":
			around = b.Text
			if b.Class == "fragment" {
				around, err = whole(b.Text)
			}
			if err == nil {
				_, err = valid(around)
			}
		case "yaml other":
			err = yaml.Unmarshal([]byte(b.Text), new(any))
		case "json ":
			err = eachJSON(b.Text, func(string) error { return nil })
		case "json event":
			settings := around
			if kind := b.Options["source"]; kind != "" {
				settings = fmt.Sprintf("sources: {%s: {kind: %[1]s}}", kind)
			}
			err = eachJSON(b.Text, func(text string) error {
				last, err = decode(settings, text)
				return err
			})
		case "json document":
			err = sameJSON(last, b.Text)
		case "go ":
			_, err = format.Source([]byte(b.Text))
		}
		if file := b.Options["same"]; err == nil && file != "" {
			var text []byte
			text, err = os.ReadFile(filepath.Join(tree.Root, file))
			if err == nil && unlicensed.ReplaceAllString(string(text), "") != b.Text {
				err = fmt.Errorf("the block differs from %s", file)
			}
		}
		if err != nil {
			problems = append(problems, fmt.Sprintf("%s:%d: %s %s: %v", p.Name, b.Line, b.Lang, b.Class, err))
		}
	}
	return problems
}

// unlicensed matches the line of the license above a file's text. Pages leave it out.
var unlicensed = regexp.MustCompile(`\A(//|#) SPDX-License-Identifier: .*\n\n`)

// small is the lull.yaml into which the test puts a fragment.
const small = `
stack: search
sources: {content: {kind: native}}
sinks: {search: {kind: opensearch, url: https://search.example.org, index: "lull-{collection}"}}
`

// whole returns the small settings with a fragment. The fragment replaces settings that both
// contain.
func whole(fragment string) (string, error) {
	var base, part map[string]any
	if err := errors.Join(yaml.Unmarshal([]byte(small), &base), yaml.Unmarshal([]byte(fragment), &part)); err != nil {
		return "", err
	}
	maps.Copy(base, part)
	text, err := yaml.Marshal(base)
	return string(text), err
}

// valid parses and validates settings as lull does.
func valid(text string) (config.Config, error) {
	c, err := yamlfile.Parse([]byte(text))
	if err != nil {
		return c, err
	}
	c.Complete()
	return c, c.Validate()
}

// decode decodes a message as receive does, and returns the document of the last event. decode
// returns "" for a delete, and for a document that must be fetched.
func decode(settings, message string) (string, error) {
	c, err := valid(settings)
	if err != nil {
		return "", err
	}
	set, err := source.New(&c)
	if err != nil {
		return "", err
	}
	document := ""
	m := event.Message{Body: message}
	for _, r := range set.Decode(m) {
		switch {
		case r.Invalid != nil:
			return "", r.Invalid
		case r.Skip == "" && r.Event.Op == event.Put && r.Event.DataRef == "":
			text, bad := set.Document(m, r.Event)
			if bad != nil {
				return "", bad
			}
			document = string(text)
		}
	}
	return document, nil
}

// eachJSON calls f for each JSON value of a text.
func eachJSON(text string, f func(string) error) error {
	for d := json.NewDecoder(bufio.NewReader(strings.NewReader(text))); ; {
		var value json.RawMessage
		if err := d.Decode(&value); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := f(string(value)); err != nil {
			return err
		}
	}
}

func sameJSON(got, want string) error {
	var a, b bytes.Buffer
	for text, to := range map[string]*bytes.Buffer{got: &a, want: &b} {
		var v any
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		if err := d.Decode(&v); err != nil {
			return fmt.Errorf("%q: %w", text, err)
		}
		if err := json.NewEncoder(to).Encode(v); err != nil {
			return err
		}
	}
	if a.String() != b.String() {
		return fmt.Errorf("the message's document is %s", a.String())
	}
	return nil
}

var (
	// Go's names have capitals.
	dotted   = regexp.MustCompile(`^[a-z]+(\.([a-z<][A-Za-z<>\[\]]*|[A-Z]+))+$`)
	repeated = regexp.MustCompile(`^(sources|collections|sinks)\.[^.]+`)
)

// names finds settings in paragraphs that do not exist, for example renamed settings. Any name of a
// source, collection or sink is accepted.
func names(all []Page) (problems []string) {
	known := map[string]bool{}
	for _, s := range config.Settings() {
		for name := s.Name; name != ""; { // a group of settings has a name too
			known[strings.ReplaceAll(name, "[]", "")] = true
			name = name[:max(0, strings.LastIndexByte(name, '.'))]
		}
	}
	for _, p := range all {
		for _, s := range p.Spans {
			group, _, _ := strings.Cut(s.Text, ".")
			if name := repeated.ReplaceAllString(s.Text, "$1.<name>"); known[group] && dotted.MatchString(s.Text) &&
				!known[strings.ReplaceAll(name, "[]", "")] {
				problems = append(problems, fmt.Sprintf("%s:%d: %s is not a setting", p.Name, s.Line, s.Text))
			}
		}
	}
	return problems
}

var (
	link   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	title  = regexp.MustCompile(`(?m)^#+ (.+)$`)
	marked = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// links finds links to files and headings that do not exist.
func links(t *testing.T, all []Page) (problems []string) {
	anchors := func(file string) (names []string) {
		for _, m := range title.FindAllStringSubmatch(read(t, file), -1) {
			names = append(names, strings.ReplaceAll(marked.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
		}
		return names
	}
	index := read(t, "docs/README.md")
	for _, p := range all {
		name, page := strings.CutPrefix(p.Name, "docs/")
		if page && name != "README.md" && !strings.Contains(name, "/") && !strings.Contains(index, "]("+name+")") {
			problems = append(problems, p.Name+": docs/README.md does not list it")
		}
		for _, m := range link.FindAllStringSubmatch(read(t, p.Name), -1) {
			file, anchor, _ := strings.Cut(m[1], "#")
			to := path.Join(path.Dir(p.Name), file)
			if file == "" {
				to = p.Name
			}
			if strings.Contains(m[1], ":") {
				continue // another site
			}
			if _, err := os.Stat(filepath.Join(tree.Root, to)); err != nil {
				problems = append(problems, fmt.Sprintf("%s: %s is not there", p.Name, m[1]))
			} else if anchor != "" && path.Ext(to) == ".md" && !slices.Contains(anchors(to), anchor) {
				problems = append(problems, fmt.Sprintf("%s: %s has no such heading", p.Name, m[1]))
			}
		}
	}
	return problems
}

// A newcomer decides within a minute, so README.md stays short.
func TestTheReadmeIsShort(t *testing.T) {
	t.Parallel()
	const most = 120
	if n := strings.Count(read(t, "README.md"), "\n"); n > most {
		t.Errorf("README.md has %d lines, at most %d: move a part of it to a page of docs/", n, most)
	}
}

// TestBadPagesAreFound shows that each check finds a fault. Without this test, a check that accepts
// everything would go unnoticed.
func TestBadPagesAreFound(t *testing.T) {
	t.Parallel()
	known := cli{
		global:   []string{"--help"},
		commands: map[string][]string{"": nil, "get": {"--field"}, "dead": nil, "dead list": {"--key"}},
		targets:  []string{"dev"},
	}
	fence := func(class, text string) string { return "```" + class + "\n" + text + "\n```\n" }
	for name, c := range map[string]struct{ text, want string }{
		"no language":        {fence("", "x"), "without a known language"},
		"no class":           {fence("sh", "true"), `class ""`},
		"unknown class":      {fence("sh later", "true"), `class "later"`},
		"no end":             {"```text\nx\n", "has no end"},
		"command by indent":  {"\n    lull get a\n", "outside a fenced block"},
		"unknown command":    {fence("sh aws", "a | lull got b"), "has no command got"},
		"unknown subcommand": {fence("sh aws", "lull dead lost b"), "lull dead has no command lost"},
		"unknown flag":       {fence("sh aws", "X=1 lull get b --fields"), "no flag --fields"},
		"flag of another":    {fence("sh aws", `x="$(lull get b --key c)"`), "no flag --key"},
		"command in code":    {"a `lull got b` c", "has no command got"},
		"setting in code":    {"a `debounce.quite` b", "debounce.quite is not a setting"},
		"prompt":             {fence("sh aws", "$ lull get b"), "leave the prompt out"},
		"unknown target":     {fence("sh checkout", "make dev\nmake devs X=1"), "no target devs"},
		"shell":              {fence("sh run", "if true"), "must be followed by"},
		"unknown setting":    {fence("yaml fragment", "quiet: 5s"), "quiet"},
		"settings that lie":  {fence("yaml fragment", "debounce: {quiet: 59s, maxWait: 9s}"), "maxWait"},
		"incomplete yaml":    {fence("yaml", "stack: a\nsinks: {a: {}}"), "sinks.a.kind"},
		"other yaml":         {fence("yaml other", "a: ["), "yaml other"},
		"json":               {fence("json", "{} {"), "EOF"},
		"event":              {fence("json event=native", `{"type":"doc.changed"}`), "subject"},
		"document": {
			fence("json event=native", `{"type":"doc.changed","subject":"a","sequence":"1","data":{"a":1}}`) +
				fence("json document", `{"a":1.0}`), `the message's document is {"a":1}`,
		},
		"other text than the file": {fence("text same=go.mod", "module x"), "differs from go.mod"},
		"go":                       {fence("go", "x :="), "expected operand"},
	} {
		p, problems := Parse("a.md", c.text)
		problems = append(append(problems, known.page(p)...), p.settings()...)
		problems = append(problems, names([]Page{p})...)
		if got := strings.Join(problems, "\n"); !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s: found %q, want %q", name, got, c.want)
		}
	}
}

func TestCommandsOfAScript(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]string{
		"a b # c\n\nd":                       "[[a b] [d]]",
		"a \\\n  b | c && d; time e":         "[[a b] [c] [d] [e]]",
		"a 'b #c' \"d e\" ''":                "[[a b #c d e ]]",
		"X=1 a \"c=$(b c)\" d":               "[[a c= d] [b c]]",
		"cat > f <<'EOF'\na | b\nEOF\nc":     "[[cat] [c]]",
		"if a <<EOF | b; then c; fi\nx\nEOF": "[[a] [b] [c]]",
	} {
		if got, err := commands(script); err != nil || fmt.Sprint(got) != want {
			t.Errorf("%q: %s, %v, want %s", script, got, err, want)
		}
	}
}
