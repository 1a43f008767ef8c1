// SPDX-License-Identifier: Apache-2.0

package sinktest

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/sink"
)

// Answer is one row of a kind's table of answers: the state of the engine, its answer in that
// state, and the outcomes of a put and a delete in one request. Decide the outcome by three
// questions, in this order:
//
//  1. May the op have been applied? Then it is Unknown.
//  2. Does any other document get the same answer? Then it is Throttled if it passes by itself, and
//     Configuration if an operator has to change something.
//  3. Does the answer name what is wrong with the document? Then it is Rejected, otherwise Refused.
type Answer struct {
	Engine string // the state of the engine, such as "the index is closed"
	Says   string // the answer, in the engine's own words
	// Put and Delete are the wanted outcomes of the put and the delete. The Status of these
	// outcomes is not compared.
	Put, Delete sink.Outcome
	Why         string // why the outcome is right
	// Document is the document of the put. If Document is empty, the put has a document that every
	// index accepts.
	Document string
	// Open returns a sink whose engine is in this state. Open may be called more than once.
	Open func(t *testing.T) sink.Sink
}

// Name returns the name of the test for this row.
func (a Answer) Name() string { return a.Engine + ": " + a.Says }

// Secret is a text in every document of the rows, and in every text of an engine that quotes a
// document. The reason of an outcome must not contain this text.
const Secret = "secret"

// Ops returns the ops of each row: a put of a new document, and a delete of a document that should
// exist.
func Ops() []sink.Op {
	gone := del(docID("content", "b"), 2)
	gone.Present = true
	return []sink.Op{put(docID("content", "a"), 1, `{"title":"`+Secret+`"}`), gone}
}

// Answers checks each row of a kind's table. A table must have a row for every kind of outcome,
// except for the kinds in never, which the engine cannot cause. An example is Newer, for an engine
// without versions.
func Answers(t *testing.T, rows []Answer, never ...sink.OutcomeKind) {
	t.Helper()
	found := map[sink.OutcomeKind]bool{}
	for _, row := range rows {
		found[row.Put.Kind], found[row.Delete.Kind] = true, true
		t.Run(row.Name(), func(t *testing.T) {
			t.Parallel()
			row.Check(t, row.Open(t))
		})
	}
	for _, kind := range sink.OutcomeKinds() {
		if !found[kind] && !slices.Contains(never, kind) {
			t.Errorf("no row says when an op is %s", kind)
		}
	}
}

// Check writes the ops of the row to a sink and compares the outcomes.
func (a Answer) Check(t *testing.T, s sink.Sink) {
	t.Helper()
	ops := Ops()
	if a.Document != "" {
		ops[0].Document = []byte(a.Document)
	}
	got := outcomes(t.Context(), t, s, ops)
	for i, want := range []sink.Outcome{a.Put, a.Delete} {
		got := got[i]
		if want.Status = got.Status; got != want {
			t.Errorf("the %s is %+v, want %+v", []event.Operation{event.Put, event.Delete}[i], got, want)
		}
		if strings.Contains(got.Reason, Secret) {
			t.Errorf("the reason quotes content: %q", got.Reason)
		}
	}
}

// Table returns the rows as a Markdown table, for the documentation of a kind. Rows that follow
// each other become one row if they have the same outcome for the same reason.
func Table(rows []Answer) string {
	var b strings.Builder
	b.WriteString("| the engine | what it says | outcome | fault, or why |\n|---|---|---|---|\n")
	for len(rows) > 0 {
		first := rows[0]
		var engines, says []string
		for len(rows) > 0 && rows[0].outcome() == first.outcome() && rows[0].Why == first.Why {
			engines, says = append(engines, rows[0].Engine), append(says, rows[0].Says)
			rows = rows[1:]
		}
		said, outcome := strings.Join(slices.Compact(says), "; "), first.outcome()
		for _, reason := range []string{first.Put.Reason, first.Delete.Reason} {
			if quoted := "`" + reason + "`"; reason != "" && strings.Contains(said, quoted) {
				outcome = strings.ReplaceAll(outcome, " "+quoted, "") // the answer names it already
			}
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", strings.Join(slices.Compact(engines), "; "), said, outcome, first.Why)
	}
	return b.String()
}

// Page checks that the table in a Markdown page equals the rows. An HTML comment before the table
// names command, which is the command that writes the table. Another HTML comment marks the end of
// the table. If write is set, Page writes the table.
func Page(t *testing.T, path, command string, rows []Answer, write bool) {
	t.Helper()
	begin, end := "<!-- answers: "+command+" -->\n", "<!-- end -->\n"
	page, err := os.ReadFile(path)
	must(t, err)
	before, rest, ok := strings.Cut(string(page), begin)
	_, behind, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s lacks the lines that enclose the table", path)
	}
	want := before + begin + Table(rows) + end + behind
	switch {
	case want == string(page):
	case !write:
		t.Errorf("%s differs from the table: run %s", path, command)
	default:
		must(t, os.WriteFile(path, []byte(want), 0o600))
	}
}

func (a Answer) outcome() string {
	put, del := say(a.Put), say(a.Delete)
	if put == del {
		return put
	}
	return "put: " + put + "<br>delete: " + del
}

func say(o sink.Outcome) string {
	text := o.Kind.String()
	if o.Apart && (o.Kind == sink.Throttled || o.Kind == sink.Configuration) {
		text += ", apart"
	}
	if o.RetryAfter > 0 {
		text += ", after " + o.RetryAfter.String()
	}
	return text + cmp.Or(strings.TrimSuffix(" `"+o.Reason+"`", " ``"), "")
}
