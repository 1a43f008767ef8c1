// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"github.com/lullhq/lull/internal/shard"
)

// TailQuery asks a `lull dev` for its latest decisions. Zero fields select everything.
type TailQuery struct {
	After      uint64 // only decisions after this one; see [TailPage.Next]
	Sink       string
	Collection shard.Collection
	Word       string // the kind of the decision: one of [TailPage.Words]
	Contains   string // a text in the line of the decision, in any case
	Limit      int    // how many at most, 1 to 500; 0 is 200
}

// TailPage has the newest decisions of a query, oldest first.
type TailPage struct {
	Lines []TailLine `json:"lines"`
	Next  uint64     `json:"next"` // the number of the newest decision of all
	// Passed counts decisions after TailQuery.After that are missing here: older than those in
	// Lines, or no longer kept.
	Passed int      `json:"passed,omitempty"`
	Words  []string `json:"words"` // the kinds of decisions
}

// TailLine is one decision, and what it is about.
type TailLine struct {
	Decision
	Number uint64      `json:"number"`
	Doc    shard.DocID `json:"key,omitempty"`
	Sink   string      `json:"sink,omitempty"`
}

// The default and the largest number of lines of a page.
const (
	tailLines    = 200
	maxTailLines = 500
)

// Size returns how many lines a page may have. The error says which numbers are allowed.
func (q TailQuery) Size() (int, error) { return limited(q.Limit, tailLines, maxTailLines) }
