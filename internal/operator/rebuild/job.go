// SPDX-License-Identifier: Apache-2.0

package rebuild

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/terminal"
	"github.com/lullhq/lull/sink"
)

// Action is what an operator wants a program to do with a rebuild.
type Action string

// The actions.
const (
	Start  Action = "start"
	Resume Action = "resume"
	Abort  Action = "abort"
)

// StepOrder asks for one step.
type StepOrder struct {
	Action            Action
	From              Cursor
	First             bool // the first step of this program
	Again             bool // the step failed before, and is repeated
	By                string
	Allow             *int   // how many documents may be left out; nil for as many as before
	Mapping, Settings []byte // of the new index
}

// stage is a part of a phase.
type stage string

const (
	looking  stage = "look"    // find out whether an earlier program has switched the name
	waiting  stage = "wait"    // wait for the end of turns that do not know of the rebuild
	idling   stage = "idle"    // wait until the documents of the source are written
	counting stage = "count"   // count the writes that the new index has missed so far
	walking  stage = "walk"    // walk through both indices
	aborting stage = "abort"   // the health row still names the new index
	aborted  stage = "aborted" // the health row no longer names it; delete it after the last turn that writes to it
)

// Cursor is where the next step of a rebuild begins. Builds without jobs stored only its Progress.
type Cursor struct {
	Progress
	Known      time.Time     `json:"known,omitzero"` // the time of the job's last save when this cursor was read
	Why        string        `json:"why,omitempty"`  // the kind of Error: a key of halts
	Stage      stage         `json:"stage,omitempty"`
	Waited     time.Duration `json:"waited,omitempty"` // see run.wait
	Idle       int           `json:"idle,omitempty"`   // how many times in a row the bulk lane was found empty
	Seen       int64         `json:"seen,omitempty"`   // missed writes when the comparison began
	MostPasses int           `json:"most_passes,omitempty"`
	Place      string        `json:"place,omitempty"`  // the place of the walk in its index
	Second     bool          `json:"second,omitempty"` // the walk has reached its second index: the new one
	Ended      bool          `json:"ended,omitempty"`  // the walk has reached the end of its index
	Differ     []differing   `json:"differ,omitempty"`
	Cut        bool          `json:"cut,omitempty"` // Differ was cut: another comparison must follow
	Tries      int           `json:"tries,omitempty"`
	Seal       shard.Micros  `json:"seal,omitempty"`   // the seal of an earlier program, as this program saw it
	Failed     string        `json:"failed,omitempty"` // the error of the call that switches the name
	Late       bool          `json:"late,omitempty"`   // a request got no answer, and may still take effect
}

// differing is a document that was not yet seen equal in both indices.
type differing struct {
	ID    string `json:"id"`
	Newer bool   `json:"newer,omitempty"` // the document is newer than the export
}

func (c Cursor) text() string {
	text, _ := json.Marshal(c) // cannot fail: texts and numbers
	return string(text)
}

func (c Cursor) clone() Cursor {
	c.Refused, c.NewerIDs, c.Differ = slices.Clone(c.Refused), slices.Clone(c.NewerIDs), slices.Clone(c.Differ)
	return c
}

// halts are the kinds of errors that a cursor stores.
var halts = map[string]error{
	"refused": ErrRefused, "paused": ErrPaused, "switched": ErrSwitched, "under way": ErrUnderWay, "unfit": sink.ErrUnfit,
}

// halted is the error that a cursor stores. It ends the job.
type halted struct{ c Cursor }

func (h *halted) Error() string { return terminal.Line(h.c.Error) }
func (h *halted) Unwrap() error { return halts[h.c.Why] }

// JobID is the id of the rebuild of a sink.
func JobID(sink string) string { return "rebuild-" + sink }

// Job returns the job of a program that starts, resumes or aborts the rebuild of a sink. do does a
// step. Each line of the answer is the progress at the beginning of a phase or of a comparison.
func Job(sink string, o StepOrder, do func(context.Context, StepOrder) (Cursor, bool, error)) job.Job[
	Cursor, Progress,
] {
	began, failed := false, false
	return job.Job[Cursor, Progress]{
		ID: JobID(sink), Verb: "rebuild", First: o.From, Seen: &o.From.Known, Resume: "`lull rebuild resume`",
		Args: struct {
			Collection event.Collection `json:"collection"`
			New        string           `json:"new"`
		}{o.From.Collection, o.From.New},
		Final: func(err error) bool {
			var h *halted
			return errors.As(err, &h)
		},
		Step: func(ctx context.Context, from Cursor, s *job.Step[Progress]) (Cursor, bool, error) {
			switch {
			case began && from.Error != "":
				return from, false, &halted{from}
			case began && from.Phase == Sourcing:
				return from, false, job.ErrWaits
			}
			order := o
			if order.From, order.First, order.Again = from, !began, failed; from.Phase != Creating {
				order.Mapping, order.Settings = nil, nil
			}
			next, done, err := do(ctx, order)
			if failed = err != nil; failed {
				return from, false, err
			}
			began = true
			next.report(from, s)
			return next, done, nil
		},
	}
}

// report adds to s what a step did: the difference between c and from, the cursor before the step.
func (c Cursor) report(from Cursor, s *job.Step[Progress]) {
	s.Count("missed", int(c.Missed-from.Missed))
	s.Count("repaired", int(c.Repaired-from.Repaired))
	s.Count("left out", c.Left-from.Left)
	s.Count("newer than the export", c.Newer-from.Newer)
	if c.Phase == from.Phase && c.Passes == from.Passes {
		s.Did(max(0, int(c.Done-from.Done)))
	} else if c.Phase != from.Phase || c.Phase == Comparing {
		s.Say(c.Progress)
	}
	parts := max(1, c.Passes)
	if !c.Source {
		parts++ // the engine's copy
	}
	s.Expect(int(c.Total) * parts)
}

// ResultOf returns the progress of the job of a rebuild, and its error. err is the error of
// [job.Run]. If err is nil, the rebuild itself may have stored an error. If the job waits for its
// operator, ResultOf returns no error.
func ResultOf(s job.State, err error) (Progress, error) {
	var c Cursor
	if s.At != nil {
		if broken := json.Unmarshal(s.At, &c); broken != nil {
			return c.Progress, errors.Join(err, broken)
		}
	}
	switch {
	case errors.Is(err, job.ErrWaits):
		err = nil
	case err == nil && c.Error != "":
		err = &halted{c}
	}
	return c.Progress, err
}
