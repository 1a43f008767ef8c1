// SPDX-License-Identifier: Apache-2.0

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
const lines = 106

// named matches the name of a test on a page.
var named = regexp.MustCompile("`(Test[A-Z0-9][A-Za-z0-9_]*(?:/[^`]+)?)`")

// missing returns what is wrong with the lines 1 to last of the page. A line is a row of a table.
// The first cell of the row is a number, and the last cell names the tests.
func missing(document []string, last int) (found []string) {
	seen := map[int]bool{}
	for _, row := range document {
		cells := strings.Split(strings.Trim(strings.TrimSpace(row), "|"), "|")
		line, err := strconv.Atoi(strings.TrimSpace(cells[0]))
		switch {
		case err != nil || !strings.HasPrefix(row, "|"):
			continue
		case line < 1 || line > last:
			found = append(found, fmt.Sprintf("line %d: the lines are 1 to %d", line, last))
		case seen[line]:
			found = append(found, fmt.Sprintf("line %d: listed twice", line))
		case !named.MatchString(cells[len(cells)-1]):
			found = append(found, fmt.Sprintf("line %d: names no test", line))
		}
		seen[line] = true
	}
	for line := 1; line <= last; line++ {
		if !seen[line] {
			found = append(found, fmt.Sprintf("line %d: not in the document", line))
		}
	}
	return found
}

func TestMissingIsReported(t *testing.T) {
	t.Parallel()
	document := []string{
		"# Faults", "| line | fault | tests |", "|---|---|---|",
		"| 1 | double | `TestGood` |",
		"| 1 | double | `TestGood`, `TestTwo/with a part` |",
		"| 2 | `TestNotHere` is in the wrong cell | to be written |",
		"| 3 | good | `TestGood` |",
		"3. | not a row |",
		"| 9 | beyond | `TestGood` |",
	}
	want := []string{
		"line 1: listed twice",
		"line 2: names no test",
		"line 9: the lines are 1 to 4",
		"line 4: not in the document",
	}
	if got := missing(document, 4); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := missing(document[3:4], 1); len(got) != 0 {
		t.Errorf("a complete table: got %q, want nothing", got)
	}
}
