// SPDX-License-Identifier: Apache-2.0

package event_test

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/shard"
)

// Senders in other languages are tested with this table. So its numbers are written by hand from
// another implementation, and must never change.
func TestThePageHasTheVectorsOfPart(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/scale.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "<!-- vectors: begin -->")
	table, _, found := strings.Cut(table, "<!-- vectors: end -->")
	vector := regexp.MustCompile("\\| `([^`#]+)` \\| `([^`]+)` \\| ([0-9]+) \\| ([0-9]+) \\|")
	rows := vector.FindAllStringSubmatch(table, -1)
	if !found || len(rows) < 12 {
		t.Fatalf("docs/scale.md has %d test vectors, want at least 12", len(rows))
	}
	for _, row := range rows {
		parts, _ := strconv.Atoi(row[3])
		want, _ := strconv.Atoi(row[4])
		if got := event.Part(event.Collection(row[1]), row[2], parts); got != want {
			t.Errorf("%s#%s in %d parts is in part %d, the page says %d", row[1], row[2], parts, got, want)
		}
	}
}

// The rows of a document in several sinks belong to one part.
func TestTheSinkOfARowDoesNotChangeItsPart(t *testing.T) {
	t.Parallel()
	for i := range 100 {
		id := strconv.Itoa(i)
		row := event.DocID("content#" + id).In("vectors")
		if got, want := shard.Part(row, 4), event.Part("content", id, 4); got != want {
			t.Errorf("%s is in part %d, want %d", row, got, want)
		}
	}
}

// A part that is added takes its share of the documents, and no other document moves.
func TestOnlyTheDocumentsOfANewPartMove(t *testing.T) {
	t.Parallel()
	const documents = 20_000
	for parts := range 12 {
		count := map[int]int{}
		for i := range documents {
			id := strconv.Itoa(i)
			before, after := event.Part("content", id, parts), event.Part("content", id, parts+1)
			if after != before && after != parts+1 {
				t.Fatalf("with %d parts instead of %d, %s moves from part %d to part %d", parts+1, parts, id, before, after)
			}
			count[after]++
		}
		for n, got := range count {
			fair := documents / (parts + 1)
			if n < 1 || n > parts+1 || got < fair*9/10 || got > fair*11/10 {
				t.Errorf("part %d of %d has %d documents, want about %d", n, parts+1, got, fair)
			}
		}
	}
}

func ExamplePart() {
	fmt.Println(event.Part("content", "7", 4))
	// Output: 4
}

func BenchmarkPart(b *testing.B) {
	for _, parts := range []int{2, 10, 100} {
		b.Run(strconv.Itoa(parts), func(b *testing.B) {
			for b.Loop() {
				event.Part("content", "f4c394f9-7a41-4f0e-9b7d-1d7f", parts)
			}
		})
	}
}
