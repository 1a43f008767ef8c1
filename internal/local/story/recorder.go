// SPDX-License-Identifier: Apache-2.0

package story

import (
	"sync"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
)

// recorded is how many of the latest notes a Recorder keeps.
const recorded = 20_000

// Recorder keeps the latest notes, for `lull explain` and for the console. A Recorder is a
// journal.Journal.
type Recorder struct {
	mu    sync.Mutex
	notes []journal.Note
	next  int
	count uint64 // how many notes there were: the number of the newest note
}

// Note keeps a note that has a line. If the recorder is full, it drops the oldest note.
func (r *Recorder) Note(n journal.Note) {
	if _, ok := lines[n.Step]; !ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count++
	if len(r.notes) < recorded {
		r.notes = append(r.notes, n)
		return
	}
	r.notes[r.next] = n
	r.next = (r.next + 1) % recorded
}

// Decisions returns the decisions about a document, from the notes that are kept, oldest first.
func (r *Recorder) Decisions(doc shard.DocID) []operate.Decision {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []operate.Decision
	for i := range r.notes {
		n := r.notes[(r.next+i)%len(r.notes)]
		if n.Doc != doc {
			continue
		}
		out = append(out, decision(n))
	}
	return out
}

func decision(n journal.Note) operate.Decision {
	word, text := tell(n)
	if n.Key != "" {
		text = "v" + n.Key.VersionText() + ": " + text
	}
	return operate.Decision{
		At: n.At, Step: word, Text: text, Decided: n.Step, Version: n.Key.VersionText(), Message: n.Message,
		Sent: n.Sent, Until: n.Until,
	}
}
