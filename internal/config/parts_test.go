// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"testing"

	"github.com/lullhq/lull/internal/shard"
)

func TestTheSettingsOfEachPartAreTheSameButForItsNumber(t *testing.T) {
	t.Parallel()
	c := Default()
	c.Stack, c.Parts = "content-2", Parts{Of: 12, This: 2}
	for part := 1; part <= 12; part++ {
		other := c.InPart(part)
		err := other.Validate()
		if err != nil || other.Stack != fmt.Sprint("content-", part) || other.Parts.This != part {
			t.Errorf("part %d: got stack %s, %+v: %v", part, other.Stack, other.Parts, err)
		}
		if back := other.InPart(2); back.Stack != c.Stack || len(Changes(&c, back)) > 0 {
			t.Errorf("part %d, and back: got stack %s", part, back.Stack)
		}
	}
}

func TestEachDocumentIsOursInOnePart(t *testing.T) {
	t.Parallel()
	c := Default()
	c.Stack, c.Parts = "content-1", Parts{Of: 5, This: 1}
	for i := range 200 {
		doc, n := shard.DocID(fmt.Sprint("content#", i)), 0
		for part := 1; part <= 5; part++ {
			if other := c.InPart(part); other.Ours(doc) {
				n++
			}
			if !c.InPart(part).Ours("!health#search") {
				t.Errorf("part %d does not have a health row of its own", part)
			}
		}
		if n != 1 || !c.Whole().Ours(doc) {
			t.Errorf("%s is in %d parts, want one", doc, n)
		}
	}
}
