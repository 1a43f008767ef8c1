// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"errors"
	"fmt"

	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/operator/rebuild"
	"github.com/lullhq/lull/internal/pipeline/prune"
	"github.com/lullhq/lull/internal/pipeline/redrive"
	"github.com/lullhq/lull/sink"
)

// ErrNotFound says that the thing that was asked for does not exist. Test for it with errors.Is,
// because its text may change.
var ErrNotFound = errors.New("not found")

// ErrInput says that the question was wrong; nothing was changed.
var ErrInput = errors.New("bad input")

// ErrWriteOnly says that a sink cannot be read back, from any machine. Get also makes it ErrInput.
var ErrWriteOnly = errors.New("it is written to only")

// kindError gives an error its kind and keeps its text.
type kindError struct {
	error
	kind error
}

func (e *kindError) Unwrap() []error { return []error{e.error, e.kind} }

func input(err error) error { return &kindError{err, ErrInput} }

func inputf(format string, args ...any) error { return input(fmt.Errorf(format, args...)) }

// kind marks an error of a use case as ErrInput or ErrNotFound, if it is one of these.
func kind(err error) error {
	switch {
	case errors.Is(err, redrive.ErrFilter), errors.Is(err, sink.ErrUnfit), errors.Is(err, job.ErrOther),
		errors.Is(err, job.ErrID):
		return input(err)
	case errors.Is(err, redrive.ErrUnknown), errors.Is(err, redrive.ErrNotPending),
		errors.Is(err, redrive.ErrNotPlanned), errors.Is(err, prune.ErrNothingToRescue),
		errors.Is(err, rebuild.ErrNone), errors.Is(err, job.ErrNone):
		return &kindError{err, ErrNotFound}
	}
	return err
}
