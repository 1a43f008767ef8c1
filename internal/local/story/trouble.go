// SPDX-License-Identifier: Apache-2.0

package story

import (
	"sync"

	"github.com/lullhq/lull/internal/seam/journal"
)

// Trouble writes the first line about two events of one version with other content. Otherwise it
// writes only the lines about a sink that accepts no documents: the reason, and when the sink has
// accepted a document again. While the sink accepts no documents, Trouble writes a new
// line only if the reason changes. A Trouble is a journal.Journal.
type Trouble struct {
	*Narrator

	mu   sync.Mutex
	open map[string]string // by sink: why its circuit breaker is open
	told map[string]bool   // the configuration errors that were already reported

	conflicted bool // the first version conflict was reported
}

// maxTold limits how many configuration errors are remembered. At the limit, all are forgotten, and
// may be reported again.
const maxTold = 100

// NewTrouble returns a Trouble that writes its lines with a narrator.
func NewTrouble(to *Narrator) *Trouble {
	return &Trouble{Narrator: to, open: map[string]string{}, told: map[string]bool{}}
}

// Note writes the line for a decision, if the decision is the first version conflict, or is about a
// sink that accepts no documents.
func (t *Trouble) Note(n journal.Note) {
	t.mu.Lock()
	defer t.mu.Unlock()
	why, open := t.open[n.Sink]
	switch n.Step {
	case journal.Conflict:
		if t.conflicted {
			return
		}
		t.conflicted = true
	case journal.CircuitOpened:
		t.open[n.Sink] = n.Detail
		if open && why == n.Detail {
			return
		}
	case journal.SinkConfiguration:
		if t.told[n.Sink+n.Detail] {
			return
		}
		if len(t.told) == maxTold {
			clear(t.told)
		}
		t.told[n.Sink+n.Detail] = true
	// wait for a commit, because a successful ping does not show that the sink accepts documents
	case journal.Committed:
		if !open {
			return
		}
		delete(t.open, n.Sink)
		clear(t.told)
		n = journal.Note{Step: journal.CircuitClosed, At: n.At, Sink: n.Sink}
	default:
		return
	}
	t.Narrator.Note(n)
}
