// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	goflag "flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var update = goflag.Bool("update", false, "write docs/cli.md again")

var docHead = `# The command line

For everybody who runs ` + "`lull`" + `. The commands themselves write this page
(` + "`go test ./command -run TestCommandsDocument -update`" + `), and a test keeps it so. The
[glossary](glossary.md) defines the words.

- Answers go to standard output, as a table or with ` + "`-o json`" + ` as one JSON value. Everything else
  goes to standard error.
- A command that changes a deployed stack writes a line of JSON with ` + "`\"audit\":true`" + ` to standard
  error: keep it with your tickets.
- A duration is a number with ms, s, m or h: 500ms, 5s, 1h30m.
- A KEY is ` + "`<collection>#<id>`" + `, and ` + "`<collection>@<sink>#<id>`" + ` names one of several sinks. Quote
  it: a shell takes # for a comment.
- Messages are NDJSON, one a line, or the *.json files of a folder. ` + "`{\"after_ms\": 1500, \"body\": …}`" + `
  is a timed message: ` + "`lull dev`" + ` and ` + "`lull simulate`" + ` send its body that long after the start.

` + codesTable() + `
` + "`--help`" + ` after a command prints its rules, more examples and all of its exit codes.

## Which stack

The commands talk to the ` + "`lull dev`" + ` on this machine, unless you choose another stack. In a terminal
a table fits and has colours. In a pipe it is plain and whole.

`

// codesTable returns the table of all exit codes.
func codesTable() string {
	var b strings.Builder
	b.WriteString("| exit code | |\n|---|---|\n")
	for code, meaning := range exitCodes {
		fmt.Fprintf(&b, "| %d | %s |\n", code, meaning)
	}
	return b.String()
}

func tree() *cobra.Command { return newApp(strings.NewReader(""), io.Discard, io.Discard).command() }

// commands returns every command that can be called, except the root, in the order of the help.
func commands(c *cobra.Command) (out []*cobra.Command) {
	for _, sub := range c.Commands() {
		if !sub.IsAvailableCommand() || sub.Name() == "help" {
			continue
		}
		out = append(out, sub)
		out = append(out, commands(sub)...)
	}
	return out
}

// document renders docs/cli.md.
func document() string {
	root := tree()
	var b strings.Builder
	b.WriteString(docHead)
	seen := map[string]string{}
	fmt.Fprintf(&b, "```text\n%s```\n", root.PersistentFlags().FlagUsagesWrapped(columns))
	for _, group := range root.Groups() {
		fmt.Fprintf(&b, "\n## %s\n", strings.TrimSuffix(group.Title, ":"))
		for _, c := range commands(root) {
			top := c
			for top.Parent() != root {
				top = top.Parent()
			}
			if top.GroupID != group.ID {
				continue
			}
			fmt.Fprintf(&b, "\n### %s\n\n%s.\n\n```text\n%s\n", c.CommandPath(), c.Short, c.UseLine())
			if own := again(c, seen).FlagUsagesWrapped(columns); own != "" {
				fmt.Fprintf(&b, "\n%s", own)
			}
			if c.Example != "" {
				fmt.Fprintf(&b, "\nExample:\n%s\n", c.Example[strings.LastIndexByte(c.Example, '\n')+1:])
			}
			b.WriteString("```\n")
			if codes := ownCodes(c.Long); codes != "" {
				fmt.Fprintf(&b, "\n%s\n", codes)
			}
		}
	}
	b.WriteString("\nNext: the [runbook](runbook/README.md), or [deploy](deploy.md).\n")
	return b.String()
}

// again returns the flags of a command. If an earlier command has the same flag, its text names
// that command.
func again(c *cobra.Command, seen map[string]string) *pflag.FlagSet {
	out := pflag.NewFlagSet("", pflag.ContinueOnError)
	c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
		own := *f
		if name, usage := pflag.UnquoteUsage(f); len(usage) > 40 {
			key := f.Name + " " + f.Usage
			if before, ok := seen[key]; ok {
				own.Usage = fmt.Sprintf("`%s` as for %s", name, before)
			} else {
				seen[key] = c.CommandPath()
			}
		}
		out.AddFlag(&own)
	})
	return out
}

// plainFailures are meanings of an exit code that say no more than the table of all codes.
var plainFailures = regexp.MustCompile(
	`(did|does) not answer$|could not be (written|served|started|printed)$|simulation failed|` +
		`^something stopped (it|the run)(: run it again( to continue)?)?$|^(the )?[a-z ]*not found$`)

// ownCodes returns in one paragraph the exit codes that mean more for a command than for all.
func ownCodes(long string) string {
	_, codes, _ := strings.Cut(long, "\nExit codes:\n")
	var own []string
	for line := range strings.Lines(codes) {
		code, meaning, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if code != "0" && code != "2" && !plainFailures.MatchString(meaning) {
			own = append(own, fmt.Sprintf("`%s` %s", code, meaning))
		}
	}
	if own == nil {
		return ""
	}
	return strings.TrimSpace(wrapped("Exit codes: "+strings.ReplaceAll(strings.Join(own, "; "), "<", `\<`))) + "."
}

func TestCommandsDocument(t *testing.T) {
	t.Parallel()
	path := filepath.Join("..", "docs", "cli.md")
	want := document()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got := contents(t, path)
	if got != want {
		t.Error("docs/cli.md differs from the commands: go test ./command -run TestCommandsDocument -update")
	}
}

func TestEveryCommandIsDescribedAlike(t *testing.T) {
	t.Parallel()
	root := tree()
	for _, c := range commands(root) {
		if c.Short == "" || strings.HasSuffix(c.Short, ".") || c.Short[:1] != strings.ToUpper(c.Short[:1]) {
			t.Errorf("%s: %q: want a phrase that begins with a capital", c.CommandPath(), c.Short)
		}
		if c.HasSubCommands() {
			continue
		}
		if !strings.Contains(c.Long, "Exit codes:\n  0  ") {
			t.Errorf("%s does not say its exit codes", c.CommandPath())
		}
		if c.Args == nil {
			t.Errorf("%s takes any arguments", c.CommandPath())
		}
		for line := range strings.Lines(c.Long) {
			if len(line) > columns+1 {
				t.Errorf("%s: a line of %d characters: %s", c.CommandPath(), len(line), line)
			}
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" || strings.HasSuffix(f.Usage, ".") {
				t.Errorf("%s --%s: %q: want a phrase", c.CommandPath(), f.Name, f.Usage)
			}
		})
	}
}

// Each command shows two command lines or more, which it would take, and its help begins with what
// it does.
func TestEveryHelpHasExamplesThatParse(t *testing.T) {
	t.Parallel()
	unused := maps.Clone(examples)
	for _, c := range commands(tree()) {
		path := strings.TrimPrefix(c.CommandPath(), "lull ")
		if c.HasSubCommands() && !strings.Contains(c.Long, "Exit codes:") {
			continue // it only lists its subcommands
		}
		delete(unused, path)
		if !strings.HasPrefix(c.Long, c.Short+".\n") {
			t.Errorf("the help of lull %s begins with %.60q, want %q", path, c.Long, c.Short+".")
		}
		if len(examples[path]) < 2 {
			t.Errorf("lull %s has %d examples, want two", path, len(examples[path]))
		}
		for _, line := range examples[path] {
			line, _, _ = strings.Cut(line, " > ")
			var words []string
			for i, part := range strings.Split(line, "'") {
				if i%2 == 1 {
					words = append(words, part)
				} else {
					words = append(words, strings.Fields(part)...)
				}
			}
			root := tree() // flags keep their values
			found, rest, err := root.Find(words)
			if err != nil || found.CommandPath() != c.CommandPath() {
				t.Errorf("lull %s is a line of lull %s: %v", line, path, err)
				continue
			}
			if err = found.ParseFlags(rest); err == nil {
				err = found.ValidateArgs(found.Flags().Args())
			}
			if err == nil && found.PreRunE != nil {
				err = found.PreRunE(found, nil)
			}
			if err != nil {
				t.Errorf("lull %s: %v", line, err)
			}
		}
	}
	for path := range unused {
		t.Errorf("there are examples of lull %s, and no such command", path)
	}
}

// What is wrong with a command line is said with the flag or the argument, and how to write it.
func TestUsageErrorsSayWhatToWrite(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		line string
		want []string
	}{
		{"wait", []string{"KEY is missing: write lull wait KEY --version V"}},
		{"get a#1 b#2", []string{`"b#2" is one argument too many: write lull get KEY`}},
		{"status now", []string{`"now" is one argument too many: write lull status`}},
		{"simulate --load abc", []string{"--load abc: want a number"}},
		{"simulate --for 10", []string{"--for 10: want a duration such as 500ms, 5s or 1h30m"}},
		{"dead list --after", []string{"--after needs a value: --after TIME ("}},
		{"status --colection x", []string{"unknown flag --colection", "`lull status --help` lists the flags"}},
		{"list --colection x", []string{"unknown flag --colection", "did you mean --collection?"}},
		{"list -q", []string{"unknown flag -q"}},
		{"events.ndjson", []string{`unknown command "events.ndjson"`, "`lull publish FILE`", "`lull --help` lists the commands"}},
		{"statsu", []string{`unknown command "statsu": did you mean ` + "`lull status`?"}},
		{"dead redirve", []string{`unknown command "redirve": did you mean ` + "`lull dead redrive`?", "`lull dead --help`"}},
		{"help statsu", []string{`unknown command "statsu": did you mean ` + "`lull status`?"}},
		{"completion tcsh", []string{"tcsh", "lull completion bash|zsh|fish|powershell"}},
		{"completion", []string{"bash|zsh|fish|powershell is missing"}},
	} {
		a := lull(t, "", strings.Fields(c.line)...)
		a.want(t, c.line, exitUsage, c.want...)
		for _, internal := range []string{"strconv", "arg(s)", "ParseFloat"} {
			if strings.Contains(a.errors, internal) {
				t.Errorf("%s: %q is Go's or cobra's own text", c.line, a.errors)
			}
		}
	}
}

// A projection that selects nothing of a message makes an empty document. The user learns it before
// the sink has that document, and the example of lull is not such a message.
func TestAnEmptyProjectionIsNamed(t *testing.T) {
	path := write(t, "sources: {recipes: {kind: json, json: {id: /id, version: /v}, projection: [/recipe/title]}}",
		"defaultSource: recipes")
	const warning = "warning: lull writes an empty document: the projection of the source selects nothing of the content"
	message := `{"id":"soup","v":1,"title":"Soup"}`
	lull(t, message, "config", "check", path, "--message", "-").want(t, "config check", exitOK, warning)
	lull(t, `{"id":"soup","v":1,"recipe":{"title":"Soup"}}`, "config", "check", path, "--message", "-").want(t, "a title",
		exitOK, `{"recipe":{"title":"Soup"}}`)
	s := start(t, nil, "--config", path, "--speed", "100")
	t.Setenv(devEnv, s.url)
	if a := lull(t, message, "publish"); !strings.Contains(a.errors, warning) {
		t.Errorf("publish: got %+v, want %q", a, warning)
	}
	lull(t, "", "publish", "--example").want(t, "the example", exitOK, `"recipe":{"title":`)
}

// Two edits of one day share a version that is only a day. The user learns it before the edit is
// lost, when it is sent, and from explain.
func TestAVersionThatIsOnlyADayIsNamed(t *testing.T) {
	const day = "2026-03-20"
	path := write(t, "sources: {recipes: {kind: native, class: lex}}", "defaultSource: recipes")
	first, second := put("soup", day, `{"title":"Soup"}`), put("soup", day, `{"title":"Leek soup"}`)
	const warning = "warning: version 2026-03-20 is only a day, so it cannot order two edits of that day"
	lull(t, first, "config", "check", path, "--message", "-").want(t, "config check", exitOK, warning)
	s := start(t, nil, "--config", path, "--speed", "100")
	t.Setenv(devEnv, s.url)
	if a := lull(t, first+"\n"+second, "publish"); !strings.Contains(a.errors, warning) {
		t.Errorf("publish: got %+v, want %q", a, warning)
	}
	lull(t, "", "wait", "content#soup", "--version", day).want(t, "wait", exitOK, "")
	lull(t, "", "explain", "content#soup").want(t, "explain", exitOK,
		"But another event has the same version and other content, and lull refused it")
	later := put("pie", "20260320T080000Z", `{}`)
	if a := lull(t, later, "publish"); strings.Contains(a.errors, "warning") {
		t.Errorf("a version with a time: got %+v, want no warning", a)
	}
}

func TestPublishUncheckedSendsWhatBreaksTheContract(t *testing.T) {
	s := start(t, nil)
	t.Setenv(devEnv, s.url)
	broken := `{"type":"doc.changed","subject":"a"}`
	lull(t, broken, "publish").want(t, "checked", exitRefused, "refused: message 1", "--unchecked sends it")
	lull(t, broken, "publish", "--unchecked").want(t, "unchecked", exitOK, "1 messages with 1 events sent, 0 refused")
}

// One mistake of the user is one line, however many messages have it.
func TestPublishSaysAReasonOnce(t *testing.T) {
	s := start(t, nil)
	t.Setenv(devEnv, s.url)
	a := lull(t, strings.Repeat(put("a", "1", "{}")+"\n", 20), "publish", "--source", "recipies")
	a.want(t, "a misspelt source", exitRefused, `refused: message 1 and 19 more: contract: lull-source: "recipies"`)
	if n := strings.Count(a.errors, "recipies"); n != 1 {
		t.Errorf("the reason is there %d times: %s", n, a.errors)
	}
	lull(t, "", "dead", "show", "123").want(t, "no dead letter", exitMissing, "`lull dead list` names those that there are")
}

// Without a file and with nothing on standard input, publish was probably meant otherwise. An empty
// file, or - for standard input, is fine: a script may have nothing to send.
func TestPublishSaysThatItsInputIsEmpty(t *testing.T) {
	s := start(t, nil)
	t.Setenv(devEnv, s.url)
	lull(t, "", "publish").want(t, "nothing", exitUsage, "standard input is empty: name a FILE", "--example")
	lull(t, "", "publish", "-").want(t, "an empty pipe", exitOK, "0 messages")
	lull(t, put("a", "1", "{}"), "publish").want(t, "a message", exitOK, "1 messages")
	t.Setenv(devEnv, "elsewhere")
	lull(t, "", "status").want(t, "a bad address", exitUsage, "--dev elsewhere: want an address such as")
	lull(t, "", "status", "--dev", s.url).want(t, "the flag goes first", exitOK, "")
}

func TestHelpShowsOnlyWhatACommandTakes(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"dev", "--help"}, {"help", "dev"}, {"simulate", "-h"}} {
		a := lull(t, "", args...)
		a.want(t, strings.Join(args, " "), exitOK, "--events")
		if strings.Contains(a.out, "--aws") || strings.Contains(a.out, "--output") {
			t.Errorf("%v shows flags of stacks:\n%s", args, a.out)
		}
	}
	lull(t, "", "status", "--help").want(t, "status", exitOK, "--aws", "--config FILE", "--dev URL",
		"-o, --output FORMAT")
	for _, args := range [][]string{nil, {"help"}, {"--help"}} {
		lull(t, "", args...).want(t, "lull", exitOK, "Start:", "Look:", "Dead letters:", "Control:", "Index:", "Settings:", "Rare:",
			"dev ", "resync ")
	}
	lull(t, "", "dead").want(t, "dead", exitOK, "redrive", "drop")
}

// The flags that choose a stack may also stand before the command.
func TestFlagsMayComeFirst(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	code := newApp(strings.NewReader(""), &out, &errs).run(t.Context(),
		[]string{"--aws", "--config", "missing.yaml", "-o", "json", "status"})
	answer{code, out.String(), errs.String()}.want(t, "status", exitUsage, "missing.yaml")
}

// This test has no stack, so a command that asked one would fail in another way.
func TestWhatACommandIsGivenIsJudgedBeforeItAsksAStack(t *testing.T) {
	t.Parallel()
	for line, says := range map[string]string{
		"backfill c":                                 "--sink: name the sink to fill",
		"backfill c --sink s --rate -1":              "--rate -1: want documents a second, or 0 for no limit",
		"backfill c --sink s --rate NaN":             "--rate NaN: want documents a second",
		"bridge rabbitmq --queue q --prefetch 0":     "--prefetch 0: want 1 to 65535",
		"bridge rabbitmq --queue q --prefetch 65536": "--prefetch 65536: want 1 to 65535",
		"bridge rabbitmq --queue q --drain -1s":      "--drain -1s: want 0 or more",
		"dead redrive --all --rate +Inf":             "--rate +Inf: want dead letters a second",
		"dev --speed 0":                              "--speed 0: want a number above 0, at most 1000000",
		"doctor --timeout 0s":                        "--timeout 0s: want a time above 0",
		"explain c#a --logs 3h":                      "--logs reads the functions' logs",
		"explain c#a --aws --logs 59s":               "--logs 59s: want 1m to 744h",
		"list --limit 0":                             "--limit 0: want 1 to 100000",
		"config check one two":                       `"two" is one argument too many`,
		"config diff one":                            "NEW is missing",
		"new":                                        "DIR is missing",
		"object s3://bucket/key --why x":             "--why: give it only with --abort",
		"pause":                                      "name one sink, or --all",
		"pause search --all":                         "name one sink, or --all",
		"index check con#tent":                       "COLLECTION: ",
		"index check content --rate -1":              "--rate -1: want documents a second",
		"list --limit 100001":                        "--limit 100001: want 1 to 100000",
		"publish --lane express":                     "--lane express: want live or bulk",
		"rebuild c --dry-run --keep -1":              "--keep -1: want 0 or more",
		"rebuild resume --allow -1":                  "--allow -1: want 0 or more",
		"replay":                                     "--from: give the time to begin with",
		"replay --from 2h --rate 0":                  "--rate 0: want messages a second, above 0",
		"replay --from 2h --collection Two":          "--collection: ",
		"reset c#a --yes":                            "--to: give the lowest version",
		"reset c#a --yes --to 1 --epoch 4294967296":  "--epoch 4294967296: want 0 to 4294967295",
		"resync events --rate 1e7":                   "--rate 1e+07: want messages a second",
		"resync events --group ü":                    "--group \"ü\": want 1 to 128 letters",
		"simulate --pollers 0":                       "--pollers 0: want at least 1",
		"index check c --sample -1":                  "--sample -1: want a number of rows",
		"index check c --patience -1s":               "--patience -1s: want a duration",
		"wait c#a":                                   "--version: say which version to wait for",
		"wait c#a --version 1 --timeout -1s":         "--timeout -1s: want a time above 0",
	} {
		lull(t, "", strings.Fields(line)...).want(t, line, exitUsage, says)
	}
}
