// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"cmp"
	"slices"

	"github.com/lullhq/lull/internal/seam/journal"
)

// PartKind is a way to divide the events of a run.
type PartKind string

// The kinds of parts.
const (
	BySink       PartKind = "sink"
	ByCollection PartKind = "collection"
	BySource     PartKind = "source"
)

// Part counts the events of one sink, collection or source. The outcomes of a source are not
// counted, because a decision does not name its source.
type Part struct {
	Kind PartKind
	Name string // empty for all names beyond maxParts
	Point
}

// maxParts is how many names of a kind are counted one by one, because a sender chooses the names
// of collections.
const maxParts = 50

// parts contains the parts of each kind by name.
type parts map[PartKind]map[string]*Part

func (p parts) of(kind PartKind, name string) *Part {
	known := p[kind]
	if known == nil {
		known = map[string]*Part{}
		p[kind] = known
	}
	if known[name] == nil && len(known) >= maxParts {
		name = ""
	}
	if known[name] == nil {
		known[name] = &Part{Kind: kind, Name: name}
	}
	return known[name]
}

// ended counts the outcome of n events of a sink and of a collection.
func (p parts) ended(note journal.Note, how end, n int) {
	if note.Sink != "" {
		p.of(BySink, note.Sink).ended(how, n)
	}
	if c := note.Doc.Collection(); c != "" {
		p.of(ByCollection, string(c)).ended(how, n)
	}
}

// Arrival is a number of events that arrived at a part.
type Arrival struct {
	Kind   PartKind
	Name   string // empty if the events belong to no part of this kind
	Events int
}

// Came counts the events of a message at all of their parts.
func (l *Ledger) Came(all ...Arrival) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range all {
		if a.Name != "" {
			l.parts.of(a.Kind, a.Name).Events += a.Events
		}
	}
}

// Parts returns the counts of all parts, by kind and name.
func (l *Ledger) Parts() []Part {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := []Part{}
	for _, known := range l.parts {
		for _, p := range known {
			all = append(all, *p)
		}
	}
	slices.SortFunc(all, func(a, b Part) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return all
}
