package story

import (
	"sync"

	"github.com/lullhq/lull/internal/seam/journal"
)

// Trouble tells, of all decisions, that a sink does not take documents, why, and when it has taken
// one again. While that lasts it repeats nothing but a reason that changed. It is a journal.
type Trouble struct {
	*Narrator

	mu   sync.Mutex
	open map[string]string // by sink: why it was asked nothing
	told map[string]bool   // what was wrong with settings, once each
}

// maxTold bounds what is remembered. Then all of it is told again.
const maxTold = 100

// NewTrouble tells to a narrator.
func NewTrouble(to *Narrator) *Trouble {
	return &Trouble{Narrator: to, open: map[string]string{}, told: map[string]bool{}}
}

// Note tells a decision about a sink's trouble.
func (t *Trouble) Note(n journal.Note) {
	t.mu.Lock()
	defer t.mu.Unlock()
	why, open := t.open[n.Sink]
	switch n.Step {
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
	case journal.Committed: // a ping proves little
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
