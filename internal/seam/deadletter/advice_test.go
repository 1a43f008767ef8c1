package deadletter

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestTheRunbookHasTheAdviceOfEveryReason(t *testing.T) {
	t.Parallel()
	const page = "../../../docs/runbook/dead-letters.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	want := "| reason | why | what to do |\n|---|---|---|\n"
	for _, r := range reasons {
		if _, ok := advice[r]; !ok {
			t.Errorf("reason %s has no advice", r)
		}
		want += fmt.Sprintf("| `%s` | %s | %s |\n", r, r.Advice().Why, r.Advice().Fix)
	}
	if !strings.Contains(string(text), want) {
		t.Errorf("%s differs from advice.go. Put in this table:\n%s", page, want)
	}
	if a := Reason("of a newer version").Advice(); a.Why == "" || a.Fix == "" {
		t.Errorf("an unknown reason: got %+v, want some advice", a)
	}
}
