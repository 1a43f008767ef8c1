// SPDX-License-Identifier: Apache-2.0

package shard_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/shard/shardtest"
)

// forms lists the writes of the protocol in all their forms, each once.
func forms() []shard.Write {
	var all []shard.Write
	seen := map[string]bool{}
	for _, c := range shardtest.Cases() {
		x := c.Write.Expression()
		if text := c.Write.Transition.String() + x.Condition + x.Update; !seen[text] {
			seen[text] = true
			all = append(all, c.Write)
		}
	}
	return all
}

func valueNames(x shard.Expression) []string {
	names := make([]string, len(x.Values))
	for i := range names {
		names[i] = shard.ValueName(i)
	}
	return names
}

// BenchmarkExpression renders each form of a write. It reports the allocations.
func BenchmarkExpression(b *testing.B) {
	all := forms()
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		all[n%len(all)].Expression()
	}
}

var (
	placeholder = regexp.MustCompile(`[#:][A-Za-z0-9_]+`)
	words       = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`)
)

// grammar lists the words that may occur in an expression. All names and values are placeholders,
// because owner, schema and others are reserved words.
var grammar = map[string]bool{
	"AND": true, "OR": true, "SET": true, "REMOVE": true, "ADD": true, "attribute_exists": true,
	"attribute_not_exists": true, "if_not_exists": true, "NOT": true, "contains": true,
}

func TestExpressionsAreWhatDynamoDBTakes(t *testing.T) {
	t.Parallel()
	attrs := map[string]bool{}
	for _, a := range shard.Attrs() {
		attrs[string(a)] = true
	}
	for _, w := range forms() {
		x := w.Expression()
		text := x.Condition + " " + x.Update
		used := map[string]bool{}
		for _, p := range placeholder.FindAllString(text, -1) {
			used[p] = true
			_, isName := x.Names[p]
			isValue := slices.Contains(valueNames(x), p)
			if isName == isValue {
				t.Errorf("%s: the placeholder %s is in neither list, or in both", w.Transition, p)
			}
		}
		for p, name := range x.Names {
			if !used[p] || !attrs[name] {
				t.Errorf("%s: the name %s (%s) is not used, or is not an attribute", w.Transition, p, name)
			}
		}
		seen := map[shard.Value]string{}
		for i, v := range x.Values {
			p := shard.ValueName(i)
			if !used[p] {
				t.Errorf("%s: the value %s is not used: DynamoDB refuses that", w.Transition, p)
			}
			if twin, ok := seen[v]; ok {
				t.Errorf("%s: %s and %s are the same value", w.Transition, p, twin)
			}
			seen[v] = p
			if (v.Kind == shard.KindString || v.Kind == shard.KindBinary) && v.Text == "" {
				t.Errorf("%s: %s is empty", w.Transition, p)
			}
			if v.Kind == shard.KindString && !utf8.ValidString(v.Text) {
				t.Errorf("%s: %s is not a text", w.Transition, p)
			}
		}
		for _, word := range words.FindAllString(placeholder.ReplaceAllString(text, ""), -1) {
			if !grammar[word] {
				t.Errorf("%s: %q is not a placeholder", w.Transition, word)
			}
		}
		if strings.Count(text, "(") != strings.Count(text, ")") {
			t.Errorf("%s: parentheses do not match: %s", w.Transition, text)
		}
		if got := len(x.Condition); got > 4096 || len(x.Update) > 4096 {
			t.Errorf("%s: the expression has %d bytes, at most 4096 are allowed", w.Transition, got)
		}
		if w.Drop != (x.Update == "") {
			t.Errorf("%s: the write deletes the item: %v, and has the update %q", w.Transition, w.Drop, x.Update)
		}
	}
}

func TestNoUpdateTouchesAnAttributeTwice(t *testing.T) {
	t.Parallel()
	for _, w := range forms() {
		targets := map[shard.Attr]bool{}
		for _, a := range w.Update {
			if targets[a.Attr] {
				t.Errorf("%s: two paths of the update overlap at %s", w.Transition, a.Attr)
			}
			targets[a.Attr] = true
		}
	}
}

func TestEveryWriteLeavesNewerSchemasAlone(t *testing.T) {
	t.Parallel()
	for _, w := range forms() {
		if w.Allowed(shard.Row{Doc: w.Doc, Schema: shard.SchemaVersion + 1}) {
			t.Errorf("%s is allowed on a bare row of a newer schema", w.Transition)
		}
		if len(w.Cond) == 0 || len(w.Cond[0]) == 0 || w.Cond[0][0].Attr != shard.AttrSchema {
			t.Errorf("the first clause of %s does not check the schema", w.Transition)
		}
	}
}

// TestExpressionsAsWritten compares every expression with a file, so that a reviewer sees each
// change of what lull sends to DynamoDB. -rewrite updates the file.
func TestExpressionsAsWritten(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for _, w := range forms() {
		x := w.Expression()
		fmt.Fprintf(&b, "%s\n", w.Transition)
		for _, clause := range strings.Split(x.Condition, " AND (") {
			fmt.Fprintf(&b, "  if   (%s\n", strings.TrimPrefix(clause, "("))
		}
		update := x.Update
		for _, verb := range []string{"REMOVE ", "ADD "} {
			update = strings.ReplaceAll(update, " "+verb, "\n  then "+verb)
		}
		if w.Drop {
			update = "DELETE"
		}
		fmt.Fprintf(&b, "  then %s\n", update)
		for i, v := range x.Values {
			p := shard.ValueName(i)
			switch v.Kind {
			case shard.KindBinary:
				fmt.Fprintf(&b, "  %s   B %s\n", p, shard.OrderKey(v.Text))
			case shard.KindKeySet:
				fmt.Fprintf(&b, "  %s   BS %s\n", p, shard.KeySet(v.Text).Keys())
			case shard.KindNumber:
				fmt.Fprintf(&b, "  %s   N %d\n", p, v.Num)
			default:
				fmt.Fprintf(&b, "  %s   S %.40q\n", p, v.Text)
			}
		}
		b.WriteString("\n")
	}
	path := filepath.Join("testdata", "expressions.txt")
	if f := flag.Lookup("rewrite"); f != nil && f.Value.String() == "true" { // the flag of the package datadriven
		if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := b.String(); got != string(want) {
		t.Errorf("the expressions differ from %s: run with -rewrite and read the difference", path)
	}
}
