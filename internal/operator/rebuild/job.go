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

// Action is what a program wants of a rebuild.
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
	Again             bool // the step failed before
	By                string
	Allow             *int   // how many documents may be left out; nil for as many as before
	Mapping, Settings []byte // of the new index
}

// stage is a part of a phase.
type stage string

const (
	looking  stage = "look"    // whether a program that was killed has switched the name
	waiting  stage = "wait"    // for turns that do not know of the rebuild
	idling   stage = "idle"    // until the documents of the source are written
	counting stage = "count"   // the writes that were missed so far
	walking  stage = "walk"    // through both indices
	aborting stage = "abort"   // the health row still names the new index
	aborted  stage = "aborted" // it does not; the new index is deleted after the last turn that writes to it
)

// Cursor is where the next step of a rebuild begins. Earlier builds stored its Progress alone.
type Cursor struct {
	Progress
	Known      time.Time     `json:"known,omitzero"` // when the job was saved last before this was read
	Why        string        `json:"why,omitempty"`  // the kind of Error, in halts
	Stage      stage         `json:"stage,omitempty"`
	Waited     time.Duration `json:"waited,omitempty"` // see run.wait
	Idle       int           `json:"idle,omitempty"`   // looks in a row that found the bulk lane empty
	Seen       int64         `json:"seen,omitempty"`   // missed writes when the comparison began
	MostPasses int           `json:"most_passes,omitempty"`
	Place      string        `json:"place,omitempty"`  // of the walk
	Second     bool          `json:"second,omitempty"` // it walks through the new index
	Ended      bool          `json:"ended,omitempty"`  // the walk
	Differ     []differing   `json:"differ,omitempty"`
	Cut        bool          `json:"cut,omitempty"` // documents that differ are left to another comparison
	Tries      int           `json:"tries,omitempty"`
	Seal       shard.Micros  `json:"seal,omitempty"`   // of an earlier program, which this one has seen
	Failed     string        `json:"failed,omitempty"` // why the name was not switched
	Late       bool          `json:"late,omitempty"`   // a request got no answer
}

// differing is a document that was not seen equal in both indices.
type differing struct {
	ID    string `json:"id"`
	Newer bool   `json:"newer,omitempty"` // than the export
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

// halted is the error of a cursor, which ends its job.
type halted struct{ c Cursor }

func (h *halted) Error() string { return terminal.Line(h.c.Error) }
func (h *halted) Unwrap() error { return halts[h.c.Why] }

// JobID is the id of the rebuild of a sink.
func JobID(sink string) string { return "rebuild-" + sink }

// Job returns the job of a program that starts, resumes or aborts the rebuild of a sink. do does a
// step. Each line is the progress when a phase or a comparison begins.
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
			next.tell(from, s)
			return next, done, nil
		},
	}
}

// tell counts what a step did.
func (c Cursor) tell(from Cursor, s *job.Step[Progress]) {
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
		parts++ // the copy
	}
	s.Expect(int(c.Total) * parts)
}

// ResultOf returns how far the job of a rebuild is, and its error: err, or why it was aborted.
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
