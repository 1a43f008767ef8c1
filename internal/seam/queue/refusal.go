package queue

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Limits of SQS.
const (
	MaxDelay      = 15 * time.Minute
	MaxHold       = 12 * time.Hour // visibility ends this long after the receive, whatever is asked
	MaxBytes      = 1 << 20        // body and attributes together
	MaxAttributes = 10             // of a message
	MaxEntries    = 10             // of a batch call
)

// ErrGone says that a receipt handle does not name a message in flight any more.
var ErrGone = errors.New("receipt handle is not in flight")

// ErrTooLarge says that a message exceeds what the queue takes; sending it again cannot succeed.
var ErrTooLarge = errors.New("message is too large")

// ErrContent says that the queue refuses a message for what it holds; sending it again cannot
// succeed.
var ErrContent = errors.New("the queue does not take what the message holds")

// Refusal says why SQS does not take a message; nil where it does. Every store of this seam asks
// it, so that all of them refuse the same. A message of more than [MaxBytes] is [ErrTooLarge].
// Source: the quotas of SendMessage in the SQS developer guide.
func (o Outgoing) Refusal() error {
	switch n := Bytes(o.Body, o.Attributes); {
	case n > MaxBytes:
		return fmt.Errorf("send: body and attributes have %d bytes, at most %d are allowed: %w", n, MaxBytes,
			ErrTooLarge)
	case o.Body == "":
		return errors.New("send: body is empty, want at least one character")
	case o.Delay < 0 || o.Delay > MaxDelay:
		return fmt.Errorf("send: delay is %s, want 0 to %s", o.Delay, MaxDelay)
	case len(o.Attributes) > MaxAttributes:
		return fmt.Errorf("send: %d attributes, at most %d are allowed", len(o.Attributes), MaxAttributes)
	}
	return nil
}

// HoldRefusal says why SQS does not hold a message for d from now; nil where it does. since is how
// long ago the message was received, 0 where the caller cannot know.
func HoldRefusal(d, since time.Duration) error {
	if d < 0 || since+d > MaxHold {
		return fmt.Errorf("hold for %s, %s after the receive: want 0 or more, and at most %s together", d, since, MaxHold)
	}
	return nil
}

// Bytes is the size that SQS counts: body, attribute names, types and values.
func Bytes(body string, attrs map[string]Attribute) int {
	n := len(body)
	for name, a := range attrs {
		n += len(name) + len(a.Type) + len(a.String) + len(a.Binary)
	}
	return n
}

// ErrorAt is the error of entry i of a Queue method's answer.
func ErrorAt(errs []error, i int) error {
	if errs == nil {
		return nil
	}
	return errs[i]
}

// Failed is what went wrong in a Queue method's answer, nil where nothing did. A handle that is
// gone is expected: its message was deleted, or delivered again.
func Failed(errs []error) error {
	var failed []error
	for _, err := range errs {
		if !errors.Is(err, ErrGone) {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// Answer is a Queue method's answer, of one error or nil for each entry: nil where every entry
// went well.
func Answer(errs []error) []error {
	if errors.Join(errs...) == nil {
		return nil
	}
	return errs
}

// FailAll is a Queue method's answer where n entries fail for one reason.
func FailAll(n int, err error) []error { return Answer(slices.Repeat([]error{err}, n)) }

// Kept is the answer of a function for the messages that its queue must keep: their ids, each once.
// It is never nil, because a list without ids acknowledges the whole batch.
func Kept(ids []string) []string {
	kept := make([]string, 0, len(ids))
	seen := make(map[string]bool, len(ids))
	for _, id := range ids {
		if !seen[id] {
			seen[id] = true
			kept = append(kept, id)
		}
	}
	return kept
}
