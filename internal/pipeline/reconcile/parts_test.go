// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/pipeline/reconcile"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/shard"
)

// Two stacks share the sink. The repair of one must not touch a document of the other, whatever
// this stack's table says about it.
func TestARepairLeavesTheDocumentsOfOtherPartsAlone(t *testing.T) {
	play(t, func(b *bench) {
		const parts, documents = 2, 40
		want, seen := map[int][]string{}, map[string]int{}
		for i := range documents {
			id := fmt.Sprintf("d%02d", i)
			part := event.Part(collection, id, parts)
			switch i % 3 {
			case 0:
				b.stored(id, 5, 5*time.Minute) // this table does not have its row
				want[part] = append(want[part], id+" behind raised")
			case 1:
				b.stranger(id)
				want[part] = append(want[part], id+" stranger left")
			case 2: // the document moved to another part, which deleted it
				b.row(id, 5, shard.Put)
				want[part] = append(want[part], id+" missing resync")
			}
		}
		for part := 2; part >= 1; part-- {
			b.Config.Stack, b.Config.Parts = fmt.Sprint("lull-", part), config.Parts{Of: parts, This: part}
			r, err := b.run(func(o *reconcile.Order) { o.Limit = 5 })
			if got := b.reported(); err != nil || len(got) < 10 || !slices.Equal(got, want[part]) {
				b.Errorf("part %d: got\n%s\nwant\n%s (%v)", part, strings.Join(got, "\n"), strings.Join(want[part], "\n"), err)
			}
			if r.Documents != len(b.seen) || r.Documents+r.Rows > len(want[part])+r.Outcomes[reconcile.Raised] {
				b.Errorf("part %d: got %+v and %d copies, want only the part's", part, r, len(b.seen))
			}
			for _, c := range b.seen {
				seen[c.Doc.ID()]++
			}
			for i := range documents {
				id := fmt.Sprintf("d%02d", i)
				if event.Part(collection, id, parts) < part && i%3 == 0 && b.Row(usecasetest.Doc(id)).Exists() {
					b.Errorf("part %d made a row of %s", part, id)
				}
			}
		}
		for id, n := range seen {
			if n != 1 {
				b.Errorf("%s was seen by %d parts, want one", id, n)
			}
		}
		if len(seen) != 27 {
			b.Errorf("all parts have seen %d documents, want all 27", len(seen))
		}
	})
}

func TestADocumentOfAnotherPartIsNeitherComparedByNameNorBuried(t *testing.T) {
	play(t, func(b *bench) {
		other := event.Part(collection, "a", 2)
		this := 3 - other
		b.Config.Stack, b.Config.Parts = fmt.Sprint("lull-", this), config.Parts{Of: 2, This: this}
		b.stored("a", 5, 5*time.Minute)
		want := fmt.Sprintf("content#a is of part %d of 2, and this is stack lull-%d of part %d", other, this, this)
		_, err := b.run(func(o *reconcile.Order) { o.Keys = []shard.DocID{usecasetest.Doc("a")} })
		if err == nil || !strings.Contains(err.Error(), want) {
			b.Errorf("compared: got %v, want %q", err, want)
		}
		if err := b.bury("a"); err == nil || !strings.Contains(err.Error(), want) {
			b.Errorf("buried: got %v, want %q", err, want)
		}
		if b.held("a") != "5" || b.Row(usecasetest.Doc("a")).Exists() {
			b.Errorf("the sink has %q, the row is %+v", b.held("a"), b.Row(usecasetest.Doc("a")))
		}
	})
}
