// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"fmt"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/shard"
)

// PartOf returns the part to whose stack a message is sent. Skipped events do not count. A message
// whose documents are unknown goes to part 1, so that exactly one stack parks it. The error says
// that the documents belong to several parts: no single stack may have all of them.
func PartOf(cfg *config.Config, events []event.Result) (part int, err error) {
	var first shard.DocID
	for _, e := range events {
		doc := e.Event.Doc
		if e.Invalid != nil {
			doc = e.Invalid.Doc
		}
		if doc == "" || e.Skip != "" {
			continue
		}
		switch of := cfg.PartOf(doc); {
		case part == 0:
			part, first = of, doc
		case of != part:
			return part, fmt.Errorf("%s is of part %d and %s of part %d of %d: send the documents of each part in a message "+
				"of their own", first.Plain(), part, doc.Plain(), of, cfg.Parts.Of)
		}
	}
	return max(part, 1), nil
}
