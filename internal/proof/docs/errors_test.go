// SPDX-License-Identifier: Apache-2.0

package docs

import (
	goflag "flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/operator/export"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/proof/tree"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/source"
)

var update = goflag.Bool("update", false, "write the generated parts of docs/errors.md")

// stateAdvice says what an operator does about each state of a document.
var stateAdvice = map[operate.State]string{
	operate.StateWaiting:   "Nothing: it is written after the lull.",
	operate.StateClaimed:   "Nothing: after the lease another turn writes it.",
	operate.StateUnknown:   "Nothing. If it lasts, see [sink-down](runbook/sink-down.md).",
	operate.StateThrottled: "Nothing. If it lasts, see [sink-down](runbook/sink-down.md).",
	operate.StatePostponed: "Read the last error. If it lasts, see [freshness](runbook/freshness.md).",
	operate.StateConfigured: "Correct the engine or its index: " +
		"[sink-configuration](runbook/sink-configuration.md).",
	operate.StateRefused: "Read the last error. After `retry.maxRefusals` it becomes a [dead letter](#refusals).",
	operate.StateOpen:    "See [sink-down](runbook/sink-down.md).",
	operate.StateAway:    "See [sink-down](runbook/sink-down.md).",
	operate.StatePaused:  "`lull resume SINK` ends the pause.",
	operate.StateBlocked: "Redrive the dead letter, or publish a newer version: " +
		"[blocked-by-unknown](runbook/blocked-by-unknown.md).",
	operate.StateUnheld:     "Nothing. If it lasts, see [launch-lost](runbook/launch-lost.md).",
	operate.StateLate:       "Nothing. If it lasts, see [flights-failed](runbook/flights-failed.md).",
	operate.StateFresh:      "Nothing.",
	operate.StateScheduled:  "Nothing.",
	operate.StateDead:       "Remove the cause, and redrive it: [reasons](#reasons-of-dead-letters).",
	operate.StateRedriven:   "Nothing: it is judged when it is received.",
	operate.StateDropped:    "Publish a newer version: [what a drop gives up](runbook/dead-letters.md#what-a-drop-gives-up).",
	operate.StateFarAhead:   "Set `maxVersion` of the source, run `lull reset KEY --to VERSION`, and publish again.",
	operate.StateReset:      "Publish the newest version.",
	operate.StateForgotten:  "Nothing. `lull reset` accepts the document again: [forget](forget.md).",
	operate.StateSinkLost:   "Run `lull index repair` with an export: [repair](repair.md).",
	operate.StateSinkOlder:  "Run `lull index repair` with an export: [repair](repair.md).",
	operate.StateSinkNewer:  "Run `lull index repair`: [repair](repair.md).",
	operate.StateSinkKept:   "Run `lull index repair`: [repair](repair.md).",
	operate.StateCollected:  "Nothing: the next event begins a new row.",
	operate.StateNobody:     "Check the key. The event did not arrive: `lull dead list`, and [questions](faq.md).",
	operate.StateUnreadable: "Use the build of lull that is deployed: [unknown-schema](runbook/unknown-schema.md).",
}

// TestErrors writes docs/errors.md from the constants of the code. Each state and reason has a
// heading, so that a message can link to it.
func TestErrors(t *testing.T) {
	t.Parallel()
	var states, reasons strings.Builder
	for _, m := range operate.States() {
		advice, ok := stateAdvice[m.State]
		if !ok {
			t.Errorf("stateAdvice does not have the state %s", m.State)
		}
		text := strings.ToUpper(m.Text[:1]) + m.Text[1:] + "."
		if advice != "Nothing." {
			text += " **To do:** " + advice
		}
		fmt.Fprintf(&states, "\n### %s\n\n%s\n", m.State, wrapped(text))
	}
	for _, c := range constants(t, "internal/seam/deadletter/letter.go", "Reason") {
		a := deadletter.Reason(c.value).Advice()
		fmt.Fprintf(&reasons, "\n### %s\n\n%s\n", c.value, wrapped(a.Why+" **To do:** "+a.Fix))
	}
	write(t, "states", states.String()+"\n")
	write(t, "reasons", reasons.String()+"\n")
	steps := "| step | meaning |\n|---|---|\n"
	for _, c := range constants(t, "internal/seam/journal/journal.go", "Step") {
		page := "runbook/" + strings.ReplaceAll(c.value, "_", "-") + ".md"
		if _, err := os.Stat(filepath.Join(tree.Root, "docs", page)); err == nil {
			steps += fmt.Sprintf("| [`%s`](%s) | %s |\n", c.value, page, strings.ReplaceAll(c.text, ": alarm", ""))
			continue
		}
		steps += fmt.Sprintf("| `%s` | %s |\n", c.value, c.text)
	}
	write(t, "steps", steps)
	outcomes := ""
	for _, o := range []struct{ command, file string }{
		{"`lull dead redrive` and `lull dead drop`", "internal/pipeline/redrive/service.go"},
		{"`lull index repair`", "internal/pipeline/reconcile/service.go"},
	} {
		outcomes += fmt.Sprintf("\n| %s | meaning |\n|---|---|\n", o.command)
		for _, c := range constants(t, o.file, "Outcome") {
			outcomes += fmt.Sprintf("| `%s` | %s |\n", c.value, c.text)
		}
	}
	outcomes += "\n"
	write(t, "outcomes", outcomes)
}

// TestPagesHaveEveryOutcome finds outcomes that the page of their command does not explain.
func TestPagesHaveEveryOutcome(t *testing.T) {
	t.Parallel()
	page := read(t, "docs/replay.md")
	for _, c := range constants(t, "internal/operator/replay/replay.go", "Outcome") {
		if !strings.Contains(page, "\n| "+c.value+" |") {
			t.Errorf("docs/replay.md has no row for the outcome %s", c.value)
		}
	}
	page = read(t, "docs/verify.md")
	for _, c := range constants(t, "internal/operator/export/check.go", "State") {
		if export.State(c.value).Drift() && !strings.Contains(page, "\n| `"+c.value+"` |") {
			t.Errorf("docs/verify.md has no row for the difference %s", c.value)
		}
	}
}

func TestChooseASourceHasEveryKind(t *testing.T) {
	t.Parallel()
	page := read(t, "docs/sources/README.md")
	for _, kind := range source.Kinds() {
		if !strings.Contains(page, "\n| `"+kind+"` |") {
			t.Errorf("docs/sources/README.md has no row for the kind %s", kind)
		}
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	tree.Generated(t, "docs/errors.md", name, text, *update)
}

// wrapped breaks a paragraph into lines of at most 100 columns.
func wrapped(text string) string {
	var b strings.Builder
	column := 0
	for _, word := range strings.Fields(text) {
		switch {
		case column == 0:
		case column+1+len(word) > 100:
			b.WriteByte('\n')
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String()
}

// constant is a typed constant of the code, with its value and its comment.
type constant struct{ value, text string }

// constants returns the constants of a type, in the order of the file. Each must have a comment.
func constants(t *testing.T, file, typ string) (all []constant) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(tree.Root, file), nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range parsed.Decls {
		group, ok := d.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, s := range group.Specs {
			v, ok := s.(*ast.ValueSpec)
			if !ok {
				continue
			}
			if named, ok := v.Type.(*ast.Ident); !ok || named.Name != typ {
				continue
			}
			literal, ok := v.Values[0].(*ast.BasicLit)
			if !ok {
				t.Fatalf("%s: a constant of %s is not a literal", file, typ)
			}
			text := v.Doc.Text() + v.Comment.Text()
			if !group.Lparen.IsValid() {
				text = group.Doc.Text()
			}
			value := strings.Trim(literal.Value, `"`)
			if text == "" {
				t.Errorf("%s: the constant %s has no comment", file, value)
			}
			all = append(all, constant{value, strings.Join(strings.Fields(text), " ")})
		}
	}
	if len(all) < 5 {
		t.Fatalf("%s: found %d constants of %s", file, len(all), typ)
	}
	return all
}
