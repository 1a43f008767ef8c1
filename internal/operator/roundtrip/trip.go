// SPDX-License-Identifier: Apache-2.0

package roundtrip

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/shard"
)

// Trip is a round trip of one document. All fields are required, except Source, Collection, Sink,
// Why and Excused. It is not safe for concurrent use.
type Trip struct {
	Stack operate.API // only Compose, Publish, Progress and Get are used
	Clock clock.Clock
	// Job is the id of the job that keeps the progress.
	Job string
	// Document is the id of the synthetic document. If the stack has a part of the documents, a number
	// may be added to it.
	Document string
	// Source and Collection limit the form of the event, as in [operate.Composition].
	Source, Collection string
	// Sink is the only sink that gets the document. If it is empty, all sinks of the collection get
	// it.
	Sink string
	// Allowed is how long each of the two writes may take.
	Allowed time.Duration
	// Poll is how long to wait between two looks at the rows.
	Poll time.Duration
	// Excused is the additional time that a write may take after the sink was paused or unhealthy. If
	// it is not 0, nothing is sent to such a sink.
	Excused time.Duration
	// Why says why a document is not committed yet. It may be nil.
	Why func(ctx context.Context, key shard.DocID) string

	began time.Time // when this program began: it names the run
}

// Check is one line of the answer.
type Check struct {
	Check string `json:"check"`
	OK    bool   `json:"ok"`
	Found string `json:"found"`
}

// Failure is the error of a round trip that found a fault.
type Failure struct{ Why string }

func (f *Failure) Error() string { return f.Why }

// errAway ends a run while the sink is paused or unhealthy. A later run continues the round trip.
var errAway = fmt.Errorf("%w: nothing is sent", job.ErrWaits)

// phase is a part of a round trip. The delete has the same parts as the document, except reading.
type phase string

const (
	composing phase = "" // write the event
	sending   phase = "send"
	waiting   phase = "wait" // until it is committed
	reading   phase = "read"
	over      phase = "over"
)

// Cursor is where the next step begins.
type Cursor struct {
	Phase  phase            `json:"phase,omitempty"`
	Remove bool             `json:"remove,omitempty"` // the event is the delete
	Event  operate.Composed `json:"event,omitzero"`   // the event under way
	Sent   time.Time        `json:"sent_at,omitzero"`
	// Before has, for each sink, what its row showed before the event was sent.
	Before map[string]Mark `json:"before,omitempty"`
	// Away is when the sink was last paused or unhealthy, after the event was sent.
	Away time.Time `json:"away_at,omitzero"`
	// Took is how long the document took from the call that published it until it was committed.
	Took time.Duration `json:"took,omitempty"`

	Fault string    `json:"fault,omitempty"`   // the first fault of this round trip
	Found time.Time `json:"found_at,omitzero"` // when it was found
	Dead  bool      `json:"dead,omitempty"`    // the event became a dead letter
	Run   time.Time `json:"run,omitzero"`      // the run in which the round trip ended
	// Failing is the fault of the round trip before this one.
	Failing string `json:"failing,omitempty"`
}

// Mark is what a row showed.
type Mark struct {
	Committed string `json:"committed,omitempty"`
	Dead      string `json:"dead,omitempty"`
}

// Begin returns the job of the round trip. Its result is nil, a Failure, or job.ErrWaits if the
// sink is paused or unhealthy.
func (t *Trip) Begin() job.Job[Cursor, Check] {
	t.began = t.Clock.Now().UTC()
	return job.Job[Cursor, Check]{
		// Without arguments, a round trip continues although the settings have changed.
		ID: t.Job, Verb: "canary", Args: struct{}{}, Step: t.step,
		Final: func(err error) bool {
			var f *Failure
			return errors.As(err, &f)
		},
	}
}

func (t *Trip) step(ctx context.Context, from Cursor, out *job.Step[Check]) (Cursor, bool, error) {
	s := step{t, &from, out}
	var err error
	if from.Phase == over && from.Fault != "" && !from.Run.Equal(t.began) {
		if from.Dead && t.Clock.Now().Before(from.Found.Add(deadPause)) {
			return from, false, &Failure{from.Fault}
		}
		from = Cursor{Failing: from.Fault}
	}
	switch from.Phase {
	case composing:
		err = s.compose(ctx)
	case sending:
		err = s.send(ctx)
	case waiting:
		err = s.wait(ctx)
	case reading:
		err = s.read(ctx)
	case over:
		if from.Fault != "" {
			err = &Failure{from.Fault}
		}
	default: // of a newer version
		err = fmt.Errorf("the round trip is in the phase %q, which this version of lull does not know", from.Phase)
	}
	if err == nil && from.Phase == over {
		from.Run = t.began
	}
	return from, from.Phase == over && from.Fault == "", err
}

// deadPause is how long no new round trip begins after an event became a dead letter. A sink may
// refuse the document always, and each run would make a dead letter.
const deadPause = time.Hour
