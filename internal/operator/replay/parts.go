// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"github.com/lullhq/lull/internal/operator/feed"
)

// moved returns the part of the documents of a message, and how many events to send there. It is
// another part if the number of parts has grown since the message was received. Only a whole
// message is sent there, because the other stack does not believe the mark of a copy for one event
// (ADR 0057). Other events of another part are refused.
func (p *part) moved(m *message) (part, sending int) {
	part, split := feed.PartOf(p.Config, m.events)
	whole := split == nil && m.whole()
	for i, want := range m.want {
		doc := m.events[i].Event.Doc
		switch {
		case !want:
		case p.Config.Ours(doc):
			sending++
		case !whole:
			p.refuse(m, i, p.Config.NotOurs(doc)+", as are not all events of its message: `lull resync` it")
		case p.Other(part) == nil:
			p.refuse(m, i, p.Config.NotOurs(doc))
		default:
			sending++
		}
	}
	if !whole {
		part = max(p.Config.Parts.This, 1)
	}
	return part, sending
}

// whole reports whether all events of the message are to be sent, but for those that are skipped.
func (m *message) whole() bool {
	for i, want := range m.want {
		if !want && m.events[i].Skip == "" {
			return false
		}
	}
	return true
}

func (p *part) refuse(m *message, i int, why string) {
	m.want[i] = false
	p.count(Refused, 1)
	p.fault(Refused, m.ID, why)
}
