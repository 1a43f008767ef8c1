// SPDX-License-Identifier: Apache-2.0

package verify_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/operator/verify"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
)

// Several stacks share the sink. A repair with a complete export of one part must remove the
// orphans of that part only. All other documents look like orphans, too: the export lacks them.
func TestARepairOfOnePartRemovesNoDocumentOfAnother(t *testing.T) {
	play(t, func(b *bench) {
		const parts, this = 4, 3
		b.Config.Stack, b.Config.Parts = "lull-3", config.Parts{Of: parts, This: this}
		var lines []string
		kept, orphans := map[string]bool{}, 0
		for i := range 100 {
			id := fmt.Sprintf("d%03d", i)
			switch {
			case event.Part("content", id, parts) != this:
				b.store(put(id, 5), time.Hour)
				if i%2 == 0 { // a complete export may have all parts
					lines = append(lines, put(id, 5))
				}
				kept[id] = true
			case i%2 == 0:
				b.apply(put(id, 5), time.Hour)
				orphans++
			default:
				b.apply(put(id, 5), time.Hour)
				lines = append(lines, put(id, 5))
				kept[id] = true
			}
		}
		o := verify.Order{Export: "export.ndjson", Repair: true, CompleteAt: time.Now()}
		res, said, err := b.verify(o, strings.Join(lines, "\n"), func(v *verify.Verification) { v.Confirmed = true })
		if err != nil || orphans == 0 || res.Drift["orphan"] != orphans || res.Remaining != 0 || len(said) != orphans {
			b.Errorf("got %+v, %v, want %d orphans", res, err, orphans)
		}
		for i := range 100 {
			id := fmt.Sprintf("d%03d", i)
			if _, there, err := b.sink.Get(b.Context(), usecasetest.Doc(id)); err != nil || there != kept[id] {
				b.Errorf("%s of part %d is in the sink: %t, want %t (%v)", id, event.Part("content", id, parts), there, kept[id],
					err)
			}
		}
	})
}
