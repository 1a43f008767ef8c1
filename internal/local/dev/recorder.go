package dev

import (
	"sync"

	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/shard"
)

// recorded is how many of the latest notes a Recorder keeps.
const recorded = 20_000

// Recorder keeps the latest notes, for `lull explain`. It is a journal.
type Recorder struct {
	mu    sync.Mutex
	notes []journal.Note
	next  int
}

// Note keeps n and forgets the oldest note above the bound.
func (r *Recorder) Note(n journal.Note) {
	if n.Doc == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.notes) < recorded {
		r.notes = append(r.notes, n)
		return
	}
	r.notes[r.next] = n
	r.next = (r.next + 1) % recorded
}

// About lists what is kept about a document, oldest first.
func (r *Recorder) About(doc shard.DocID) []journal.Note {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []journal.Note
	for i := range r.notes {
		if n := r.notes[(r.next+i)%len(r.notes)]; n.Doc == doc {
			out = append(out, n)
		}
	}
	return out
}
