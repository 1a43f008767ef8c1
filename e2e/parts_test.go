// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/lullhq/lull/e2e/ground"
	"github.com/lullhq/lull/internal/shard"
)

// shared waits until both stacks have written their documents and their queues are empty. It fails
// the test unless the index has exactly these versions. Only the stack of a document's part may
// have a row of it. The order key in the index must be the committed one of that row.
func shared(t *testing.T, stacks [2]*ground.Stack, c string, want map[string]int) {
	t.Helper()
	for id, version := range want {
		stacks[stacks[0].Config.PartOf(ground.Key(c, id))-1].Committed(t, ground.Key(c, id), version)
	}
	got := map[string]int{}
	for id, hit := range stacks[0].Search.Documents(t, stacks[0].Index(c)) {
		key := ground.Key(c, id)
		part := stacks[0].Config.PartOf(key)
		if row := stacks[part-1].Row(t, key); hit.Meta.Key != row.Committed.String() {
			t.Errorf("%s has the order key %s, but its row in part %d says %s", key, hit.Meta.Key, part, row.Committed)
		}
		if row := stacks[2-part].Row(t, key); row.LastWrite != 0 {
			t.Errorf("%s is of part %d, but the other stack has a row of it: %+v", key, part, row)
		}
		version, err := strconv.Atoi(hit.Meta.Version)
		ground.Must(t, err)
		got[id] = version
	}
	if !maps.Equal(got, want) {
		t.Errorf("the index has %v, want %v", got, want)
	}
	for _, s := range stacks {
		s.Drained(t)
	}
}

// Two stacks share the documents of a collection. Either one's settings are enough to send to both.
func TestDocumentsOfTwoPartsReachTheirOwnStacks(t *testing.T) {
	ground.Long(t)
	stacks, err := inParts()
	ground.Must(t, err)
	one, two := stacks[0], stacks[1]
	c := one.Collection("parts")
	var lines []string
	want, of, first := map[string]int{}, map[int]int{}, map[int]shard.DocID{}
	for i := range 25 {
		e := ground.Event{Collection: c, ID: fmt.Sprint("d", i), Version: 1}
		part := one.Config.PartOf(ground.Key(c, e.ID))
		lines, want[e.ID], first[part] = append(lines, e.Body()), 1, ground.Key(c, e.ID)
		of[part]++
	}
	if len(of) != 2 {
		t.Fatalf("the documents are in the parts %v: choose other ids", of)
	}
	file := ground.File(t, "parts.ndjson", strings.Join(lines, "\n")+"\n")
	counts := fmt.Sprintf("part 1: %d messages\npart 2: %d messages\n", of[1], of[2])

	one.Says(t, 0, "25 messages with 25 events sent, 0 refused\n"+counts, "publish", file)
	shared(t, stacks, c, want)
	if a := two.Lull(t, "resync", file); a.Code != 0 || !strings.Contains(a.Out, "25 messages sent in resync run ") ||
		!strings.Contains(a.Out, counts) {
		t.Errorf("resync: exit %d, it says\n%s%s", a.Code, a.Out, a.Errors)
	}
	shared(t, stacks, c, want)
	// A write whose answer was lost comes again.
	if n := one.Search.Writes(t, one.Index(c)); n < 50 {
		t.Errorf("OpenSearch counts %d writes, want each document written for publish and for resync", n)
	}

	// A question about a document of another part names the right part.
	one.Says(t, 0, "fresh", "explain", string(first[1]))
	one.Says(t, 2, "is of part 2 of 2", "explain", string(first[2]))

	// An upstream computes the wrong part: the stack writes nothing, and says so.
	one.Direct(t, ground.Event{Collection: c, ID: first[2].ID(), Version: 9})
	if l := deadLetters(t, one, c, 1); !strings.Contains(l[0].Detail, "part 2") {
		t.Errorf("the dead letter is %+v, want it to name part 2", l[0])
	}
	shared(t, stacks, c, want)

	// The error names the queue of a stack that is not there.
	settings, err := os.ReadFile(filepath.Join(here.Work, "lull-part-2-lull.yaml"))
	ground.Must(t, err)
	three := ground.File(t, "three.yaml", strings.Replace(string(settings), "{of: 2,", "{of: 3,", 1))
	two.Says(t, 1, "part 3: find queue lull-part-3-search-live", "publish", file, "--config", three)
}
