// SPDX-License-Identifier: Apache-2.0

package job

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"time"

	"github.com/lullhq/lull/internal/shard"
)

// Phase says whether a job runs.
type Phase string

// The phases of a job.
const (
	Running Phase = "running"
	Stopped Phase = "stopped" // somebody stopped it, or its program was interrupted; it can continue
	Failed  Phase = "failed"  // an error stopped it; it can continue
	Done    Phase = "done"
)

// Errors of a job that a caller can act on.
var (
	ErrBusy  = errors.New("the job runs already")
	ErrLost  = errors.New("the job was stopped, or another program runs it")
	ErrOther = errors.New("the job began with other arguments")
	ErrNone  = errors.New("there is no such job")
	ErrID    = errors.New("not the id of a job")
	// ErrWaits is returned by a step that needs its operator. The job stops, and can continue after
	// the operator has acted.
	ErrWaits = errors.New("the job waits for its operator")
	ErrLarge = errors.New("the progress of the job is too large to store")
)

// State is how far a job is. The table stores it as JSON.
type State struct {
	ID    string          `json:"id"`   // unique in a stack, such as backfill-content@search
	Verb  string          `json:"verb"` // backfill, replay, ...
	Phase Phase           `json:"phase"`
	Args  json.RawMessage `json:"args"`             // the arguments of the command, as JSON
	At    json.RawMessage `json:"cursor,omitempty"` // where the next step begins, as JSON
	Steps int             `json:"steps"`            // number of steps that are done
	Total int             `json:"total,omitempty"`  // number of units of the whole job; 0 if unknown
	Did   int             `json:"did"`              // number of units that are done: documents, messages or dead letters
	// Counts has the number of each outcome so far.
	Counts map[string]int `json:"counts,omitempty"`
	// Lines are the first lines of the job's answer, each as JSON: at most MaxLines, and fewer if they
	// are long.
	Lines []json.RawMessage `json:"lines,omitempty"`
	By    string            `json:"by"` // who began, continued or stopped the job last
	Begun time.Time         `json:"begun_at"`
	Saved time.Time         `json:"saved_at"`
	Error string            `json:"error,omitempty"` // why it failed
	// Keep is the time until which the list keeps the job, although it is done. It is zero if the
	// list may drop the job at once.
	Keep time.Time `json:"keep_until,omitzero"`
	// Lease is the end of the lease of the program that runs the job. It is zero if no program runs
	// it.
	Lease time.Time `json:"lease_until,omitzero"`
}

// MaxLines is how many lines the state of a job keeps. Counts counts all outcomes, also those whose
// lines are not kept.
const MaxLines = 100

// maxLineBytes bounds the sum of the lines of a state, in bytes. Long lines must not fill the row.
const maxLineBytes = 100 << 10

// maxState bounds the JSON of a state, in bytes. A row of DynamoDB has at most 400 KB.
const maxState = 300 << 10

// maxError bounds an error in a state, in bytes.
const maxError = 500

// Interrupted is how people see a running job whose program was killed: its lease has ended. No row
// stores this phase.
const Interrupted Phase = "interrupted"

// PhaseAt returns the phase as people see it at a time.
func (s State) PhaseAt(now time.Time) Phase {
	if s.Phase == Running && s.Lease.Before(now) {
		return Interrupted
	}
	return s.Phase
}

// Active reports whether the job can continue.
func (s State) Active() bool { return s.ID != "" && s.Phase != Done }

// Left estimates the remaining time of a job that has done did units since began. It is 0 if it
// cannot be estimated.
func (s State) Left(began time.Time, did int, now time.Time) time.Duration {
	if did <= 0 || s.Total <= s.Did {
		return 0
	}
	return time.Duration(float64(now.Sub(began)) * float64(s.Total-s.Did) / float64(did))
}

// CursorOf returns the cursor of a job.
func CursorOf[C any](s State) (at C, err error) {
	if err := json.Unmarshal(s.At, &at); err != nil {
		return at, fmt.Errorf("the cursor of job %s is broken: %w", s.ID, err)
	}
	return at, nil
}

// clone returns a copy of s. A step may change the copy, and s stays as it is.
func (s State) clone() State {
	s.Counts = maps.Clone(s.Counts)
	s.Lines = s.Lines[:len(s.Lines):len(s.Lines)]
	return s
}

// text returns the state as the row stores it.
func (s State) text() (string, error) {
	s.Lease = time.Time{} // the row has an attribute for the lease
	if len(s.Error) > maxError {
		s.Error = s.Error[:maxError]
	}
	text, err := json.Marshal(s)
	if err != nil {
		return "", fmt.Errorf("store job %s: %w", s.ID, err)
	}
	if len(text) > maxState {
		return "", fmt.Errorf("%w: %s has %d bytes of at most %d", ErrLarge, s.ID, len(text), maxState)
	}
	return string(text), nil
}

// parse returns the state that a row stores, or the zero State if the row is empty.
func parse(row shard.Row) (s State, err error) {
	if row.Cursor == "" {
		return s, nil
	}
	if err := json.Unmarshal([]byte(row.Cursor), &s); err != nil {
		return s, fmt.Errorf("read the row %s: %w", row.Doc, err)
	}
	if row.Owner != "" {
		s.Lease = row.LeaseUntil.Time()
	}
	return s, nil
}

// idPattern matches the id of a job: a verb, and the name of the thing that the job works on.
var idPattern = regexp.MustCompile(`^[a-z]+(-[A-Za-z0-9_.@-]{1,200})?$`)

// checkID returns ErrID for a text that cannot name a job.
func checkID(id string) error {
	if !idPattern.MatchString(id) {
		return fmt.Errorf("%q is %w: want one that `lull jobs` lists", id, ErrID)
	}
	return nil
}
