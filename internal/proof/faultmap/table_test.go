package faultmap

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// lines is how many faults the document lists, numbered from 1.
const lines = 55

// fault is one row of a table in docs/faults.md.
type fault struct {
	line  int
	tests []string
}

// named matches a test in the last cell of a row.
var named = regexp.MustCompile("`(Test[A-Z0-9][A-Za-z0-9_]*(?:/[^`]+)?)`")

// parse reads the rows of all tables whose first cell is a number.
func parse(document string) []fault {
	var faults []fault
	for row := range strings.Lines(document) {
		row = strings.TrimSpace(row)
		if !strings.HasPrefix(row, "|") || !strings.HasSuffix(row, "|") {
			continue
		}
		cells := strings.Split(strings.Trim(row, "|"), "|")
		line, err := strconv.Atoi(strings.TrimSpace(cells[0]))
		if err != nil {
			continue
		}
		f := fault{line: line}
		for _, m := range named.FindAllStringSubmatch(cells[len(cells)-1], -1) {
			f.tests = append(f.tests, m[1])
		}
		faults = append(faults, f)
	}
	return faults
}

// missing says what keeps every line from 1 to last from having its tests.
// known explains what is wrong with a test's name: empty when nothing is.
func missing(faults []fault, last int, known func(test string) string) []string {
	var found []string
	seen := make(map[int]bool)
	for _, f := range faults {
		switch {
		case f.line < 1 || f.line > last:
			found = append(found, fmt.Sprintf("line %d: the lines are 1 to %d", f.line, last))
		case seen[f.line]:
			found = append(found, fmt.Sprintf("line %d: listed twice", f.line))
		case len(f.tests) == 0:
			found = append(found, fmt.Sprintf("line %d: names no test", f.line))
		}
		seen[f.line] = true
		for _, name := range f.tests {
			if why := known(name); why != "" {
				found = append(found, fmt.Sprintf("line %d: %s %s", f.line, name, why))
			}
		}
	}
	for line := 1; line <= last; line++ {
		if !seen[line] {
			found = append(found, fmt.Sprintf("line %d: not in the document", line))
		}
	}
	return found
}

func TestTableIsRead(t *testing.T) {
	t.Parallel()
	document := "# Faults\n\n" +
		"| line | fault | tests |\n|---|---|---|\n" +
		"| 1 | `TestNotHere` is in the wrong cell | `TestOne`, `TestTwo/with a part` |\n" +
		"| 2 | nothing | to be written |\n" +
		"3. | not a row |\n"
	got := parse(document)
	want := []fault{{1, []string{"TestOne", "TestTwo/with a part"}}, {2, nil}}
	equal := func(a, b fault) bool { return a.line == b.line && slices.Equal(a.tests, b.tests) }
	if !slices.EqualFunc(got, want, equal) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestMissingIsReported(t *testing.T) {
	t.Parallel()
	known := func(test string) string {
		if test == "TestGood" {
			return ""
		}
		return "does not exist"
	}
	faults := []fault{
		{1, []string{"TestGood"}},
		{1, []string{"TestGood"}},
		{2, nil},
		{3, []string{"TestGood", "TestBad"}},
		{9, []string{"TestGood"}},
	}
	want := []string{
		"line 1: listed twice",
		"line 2: names no test",
		"line 3: TestBad does not exist",
		"line 9: the lines are 1 to 4",
		"line 4: not in the document",
	}
	if got := missing(faults, 4, known); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := missing(faults[:1], 1, known); len(got) != 0 {
		t.Errorf("a complete table: got %q, want nothing", got)
	}
}
