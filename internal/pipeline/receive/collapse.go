// SPDX-License-Identifier: Apache-2.0

package receive

import (
	"cmp"
	"slices"

	"github.com/lullhq/lull/internal/seam/fanout"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
)

// collapse is step 2: it groups the events by document, because there is one ADMIT per document,
// for the highest order key. The other versions are in the same flight. The documents have the
// order in which they are admitted.
func collapse(in *invocation, events []pending) (docs []*document) {
	index := make(map[shard.DocID]*document, len(events))
	for _, p := range fair(events) {
		d, ok := index[p.Doc]
		if !ok {
			d = &document{id: p.Doc, place: len(docs)}
			index[p.Doc] = d
			docs = append(docs, d)
		}
		p.doc = d
		d.events = append(d.events, p)
	}
	for _, d := range docs {
		// The newest version is first, because ADMIT begins with the first event. Equal keys keep
		// the fair order.
		slices.SortStableFunc(d.events, func(x, y *pending) int { return cmp.Compare(y.Key, x.Key) })
		for i := 1; i < len(d.events); i++ {
			if shard.VersionConflict(d.events[i-1].Key, d.events[i].Key) {
				in.note(d.events[i].about(journal.Conflict, "another payload under the same version"))
			}
		}
	}
	return docs
}

// fair returns the order in which the events are admitted: in turns over the tenants, and within a
// tenant in turns over its messages. So each tenant gets a share of the time, even if the time for
// the table ends early.
func fair(events []pending) []*pending {
	order := make([]*pending, len(events))
	for i := range order {
		order[i] = &events[i]
	}
	fanout.ByTurns(order, func(p *pending) *message { return p.msg })
	fanout.ByTurns(order, func(p *pending) tenant { return p.msg.tenant() })
	return order
}
