// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"hash/fnv"
	"slices"
	"strings"

	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/shard"
)

// Line is a document that differs, or a note.
type Line struct {
	Key        shard.DocID `json:"key,omitempty"`
	Difference string      `json:"difference,omitempty"`
	Version    string      `json:"version,omitempty"`
	Outcome    string      `json:"outcome,omitempty"` // Found, or the outcome of the repair
	Error      string      `json:"error,omitempty"`
	Note       string      `json:"note,omitempty"` // a note about a message of the export; then the other fields are empty
}

// Result has the counts of a verification.
type Result struct {
	Collection shard.Collection `json:"collection"`
	Documents  int              `json:"documents"`          // documents of the sink that were compared
	Rows       int              `json:"rows"`               // rows that were compared
	Export     map[string]int   `json:"export,omitempty"`   // events of the export by state
	Drift      map[string]int   `json:"drift"`              // documents that differed, by difference
	Repaired   map[string]int   `json:"repaired,omitempty"` // documents that were repaired, by outcome
	InMotion   int              `json:"in_motion"`          // documents in motion at the end
	Remaining  int              `json:"remaining"`          // documents that differ at the end
	Run        string           `json:"run,omitempty"`      // the resync run of the repair
	Repair     bool             `json:"repair,omitempty"`
	Requests   int              `json:"requests,omitempty"` // requests to the source
	// Unsearchable are the documents whose values a search does not all find; nil for none.
	Unsearchable *operate.Unsearchable `json:"unsearchable,omitempty"`

	Invalid int    `json:"-"` // events of the export that could not be compared
	Orphans int    `json:"-"` // documents that a complete export lacks
	Foreign string `json:"-"` // why the export has no event of the collection; empty if it has one
}

// Outcomes of a verification. A comparison of sink and rows has others.
const (
	Found   = "found"   // the document differs, and was not changed
	resent  = "resent"  // the message of the export was sent again
	removed = "removed" // the document was removed, because the source does not have it
)

// States and outcomes in the answers of the stack. This package treats them differently from
// others.
const (
	inMotion = "in_motion"
	later    = "later"
	left     = "left"
	invalid  = "invalid"
	silent   = "silent"
	orphan   = "orphan"
	skipped  = "skipped"
)

// The counts of a job. Those with a space at their end come before a state or an outcome.
const (
	countDocuments = "documents"
	countRows      = "rows"
	countMoving    = "in motion"
	countRemaining = "remaining"
	countRequests  = "requests"
	countEvent     = "export "
	countDrift     = "drift "
	countRepaired  = "repaired "
)

// ResultOf returns the counts of a job.
func (o Order) ResultOf(s job.State) (Result, error) {
	c, err := job.CursorOf[Cursor](s)
	if err != nil {
		return Result{}, err
	}
	n := s.Counts
	r := Result{
		Collection: o.Collection, Documents: n[countDocuments], Rows: n[countRows], Export: map[string]int{},
		Drift: map[string]int{}, Repaired: map[string]int{}, InMotion: n[countMoving], Remaining: n[countRemaining],
		Repair: o.Repair, Invalid: c.Invalid, Orphans: c.Orphaned,
		Requests: n[countRequests],
	}
	if o.Repair && (o.Export != "" || o.FromSource) {
		r.Run = c.Run
	}
	for name, n := range n {
		for prefix, of := range map[string]map[string]int{
			countEvent: r.Export, countDrift: r.Drift, countRepaired: r.Repaired,
		} {
			if rest, ok := strings.CutPrefix(name, prefix); ok {
				of[rest] = n
			}
		}
	}
	if o.Export != "" && c.Phase != comparing && c.Compared == 0 {
		if r.Foreign = "it is empty"; c.Why != "" {
			r.Foreign = "the first event: " + c.Why
		}
	}
	return r, nil
}

// Drift counts the documents of a verification: how many differed, how many of them were repaired,
// and how many differ at the end. ok is false for other jobs.
func Drift(s job.State) (found, repaired, remaining int, ok bool) {
	if s.Verb != verb {
		return 0, 0, 0, false
	}
	for name, n := range s.Counts {
		switch {
		case strings.HasPrefix(name, countDrift):
			found += n
		case strings.HasPrefix(name, countRepaired):
			repaired += n
		}
	}
	return found, repaired, s.Counts[countRemaining], true
}

// hashOf identifies a document by eight bytes, so that ten million need little memory. If two
// documents have the same hash, an orphan may be missed, or a document that differs is not counted.
// But no document is removed by mistake.
func hashOf(doc shard.DocID) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(doc)) // a hash takes everything
	return h.Sum64()
}

// maxTold is how many of the documents that differ the cursor remembers.
const maxTold = 4000

// isTold reports whether the cursor remembers that the answer names a document.
func (s step) isTold(doc shard.DocID) bool { return slices.Contains(s.Told, hashOf(doc)) }

// tell adds a document that differs to the answer, and counts it once.
func (s step) tell(l Line) {
	told := s.isTold(l.Key)
	if told && l.Outcome == Found {
		return
	}
	if !told {
		s.out.Count(countDrift+l.Difference, 1)
		most := maxTold
		if s.FromSource { // its other lists need room, too
			most /= 2
		}
		if len(s.Told) < most {
			s.Told = append(s.Told, hashOf(l.Key))
		}
	}
	switch l.Outcome {
	case resent, removed, "raised", "reasserted":
		s.out.Count(countRepaired+l.Outcome, 1)
	default:
		s.out.Count(countRemaining, 1)
	}
	s.out.Say(l)
}
