package operate

import (
	"errors"
	"fmt"

	"github.com/lullhq/lull/internal/prune"
	"github.com/lullhq/lull/internal/rebuild"
	"github.com/lullhq/lull/internal/reconcile"
	"github.com/lullhq/lull/internal/redrive"
	"github.com/lullhq/lull/sink"
)

// ErrNotFound says that what was asked for is not there. Act on it, not on its text.
var ErrNotFound = errors.New("not found")

// ErrInput says that the question was wrong; nothing was changed.
var ErrInput = errors.New("bad input")

// ErrWriteOnly says that a sink cannot be read back by anybody. Such an error is ErrInput, too.
var ErrWriteOnly = errors.New("it is written to only")

// kindError gives an error its kind and keeps its text.
type kindError struct {
	error
	kind error
}

func (e *kindError) Unwrap() []error { return []error{e.error, e.kind} }

func input(err error) error { return &kindError{err, ErrInput} }

func inputf(format string, args ...any) error { return input(fmt.Errorf(format, args...)) }

// kind says which errors of the use cases are wrong questions, and which are questions about what
// is not there.
func kind(err error) error {
	switch {
	case errors.Is(err, redrive.ErrFilter), errors.Is(err, sink.ErrUnfit):
		return input(err)
	case errors.Is(err, redrive.ErrUnknown), errors.Is(err, redrive.ErrNotPending),
		errors.Is(err, redrive.ErrNotPlanned), errors.Is(err, prune.ErrNothingToRescue),
		errors.Is(err, reconcile.ErrUnknown), errors.Is(err, rebuild.ErrNone):
		return &kindError{err, ErrNotFound}
	}
	return err
}
