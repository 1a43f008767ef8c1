// SPDX-License-Identifier: Apache-2.0

package story_test

import (
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/local/story"
	"github.com/lullhq/lull/internal/seam/journal"
)

func TestTroubleOfASinkIsToldOnceWithItsReason(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	start := time.Unix(1_795_336_827, 0)
	trouble := story.NewTrouble(story.NewNarrator(&out, start))
	opened := func(why string) journal.Note { return journal.Note{Step: journal.CircuitOpened, Detail: why} }
	pinged, written := journal.Note{Step: journal.CircuitClosed}, journal.Note{Step: journal.Committed}
	configured := journal.Note{Step: journal.SinkConfiguration, Detail: "no such column"}
	for _, n := range []journal.Note{
		written, pinged,
		{Step: journal.Admitted},
		{Step: journal.Conflict, Doc: "content#a"},
		{Step: journal.Conflict, Doc: "content#b"},
		opened("throttled: unreachable"), pinged, opened("throttled: unreachable"),
		configured, opened("configuration: undefined_column\x1b[31m"), configured, written, written,
		opened("throttled: unreachable"),
	} {
		n.At, n.Until, n.Sink = start, start.Add(time.Second), "search"
		trouble.Note(n)
	}
	got := out.String()
	for text, want := range map[string]int{
		"unreachable": 2, "undefined_column": 1, "answers again": 1, "no such column": 1, "\n": 6, "\x1b": 0, "ADMIT": 0,
		"CONFLICT  content#a": 1, "content#b": 0,
	} {
		if n := strings.Count(got, text); n != want {
			t.Errorf("%q is there %d times, want %d: %s", text, n, want, got)
		}
	}
}
