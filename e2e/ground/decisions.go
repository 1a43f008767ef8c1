// SPDX-License-Identifier: Apache-2.0

package ground

import (
	"encoding/json"
	"time"

	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
)

// Decision is one line of a function's decision log. Its times come from the clock of the function.
type Decision struct {
	At      time.Time    `json:"timestamp"`
	Step    journal.Step `json:"msg"`
	Request string       `json:"requestId"`
	Flight  string       `json:"flight"`
	Doc     shard.DocID  `json:"doc"`
	Version string       `json:"version"` // the order key
	Message string       `json:"message"`
	AgeMS   int64        `json:"age_ms"`
	Until   time.Time    `json:"until"`
	Detail  string       `json:"detail"`
	// of the step turn: the time at which the state machine was asked to wake the flight
	Wake time.Time `json:"wake"`
}

// SentAt is when the message of a decision was sent.
func (d Decision) SentAt() time.Time { return d.At.Add(-time.Duration(d.AgeMS) * time.Millisecond) }

// Decisions are the decisions of a stack's functions, in the order in which they were read from the
// logs. They are complete if the stack logs at DEBUG.
type Decisions []Decision

// Add adds the decision in one line of a log. It ignores a line without a decision.
func (all *Decisions) Add(line string) {
	var d Decision
	if json.Unmarshal([]byte(line), &d) == nil && d.Step != "" {
		*all = append(*all, d)
	}
}
