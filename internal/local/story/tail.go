// SPDX-License-Identifier: Apache-2.0

package story

import (
	"slices"
	"strings"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/journal"
)

// words are the kinds of decisions, sorted.
var words = func() (all []string) {
	for _, l := range lines {
		all = append(all, l.word)
	}
	slices.Sort(all)
	return slices.Compact(all)
}()

// chunk is how many notes a tail reads at once. The journal waits only for one chunk.
const chunk = 500

// Tail returns the newest decisions that a query selects. It searches all notes that are kept.
func (r *Recorder) Tail(q operate.TailQuery) (operate.TailPage, error) {
	limit, err := q.Size()
	if err != nil {
		return operate.TailPage{}, err
	}
	p := operate.TailPage{Lines: []operate.TailLine{}, Words: words}
	at, notes := r.before(0)
	p.Next = at
	for len(notes) > 0 && at > q.After {
		for _, n := range notes {
			if at <= q.After {
				break
			}
			l := operate.TailLine{Decision: decision(n), Number: at, Doc: n.Doc, Sink: n.Sink}
			at--
			switch {
			case !selects(q, l):
			case len(p.Lines) < limit:
				p.Lines = append(p.Lines, l)
			default:
				p.Passed++
			}
		}
		_, notes = r.before(at)
	}
	if q.After > 0 && at > q.After {
		p.Passed += int(min(at-q.After, recorded))
	}
	slices.Reverse(p.Lines)
	return p, nil
}

// before returns the notes up to a number, newest first, at most a chunk of them, and the number of
// the first one. The number 0 means the newest note.
func (r *Recorder) before(number uint64) (uint64, []journal.Note) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if number == 0 {
		number = r.count
	}
	out := make([]journal.Note, 0, chunk)
	for back := r.count - number; len(out) < chunk && back < uint64(len(r.notes)); back++ {
		out = append(out, r.notes[(r.next+len(r.notes)-1-int(back))%len(r.notes)])
	}
	return number, out
}

// selects reports whether a query selects a line.
func selects(q operate.TailQuery, l operate.TailLine) bool {
	return (q.Sink == "" || q.Sink == l.Sink) && (q.Collection == "" || q.Collection == l.Doc.Collection()) &&
		(q.Word == "" || q.Word == l.Step) &&
		(q.Contains == "" || strings.Contains(strings.ToLower(string(l.Doc)+" "+l.Text+" "+l.Message),
			strings.ToLower(q.Contains)))
}
