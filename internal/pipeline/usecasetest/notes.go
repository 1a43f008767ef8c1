// SPDX-License-Identifier: Apache-2.0

package usecasetest

import (
	"slices"
	"sync"

	"github.com/lullhq/lull/internal/seam/journal"
)

// Notes is a journal that keeps the notes of a test.
type Notes struct {
	mu   sync.Mutex
	list []journal.Note
}

// Note keeps a note.
func (n *Notes) Note(x journal.Note) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, x)
}

// All returns all notes so far.
func (n *Notes) All() []journal.Note {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.list)
}

// Of returns the notes of a step.
func (n *Notes) Of(step journal.Step) []journal.Note {
	return slices.DeleteFunc(n.All(), func(x journal.Note) bool { return x.Step != step })
}
