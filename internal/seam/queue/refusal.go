// SPDX-License-Identifier: Apache-2.0

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
	MaxHold       = 12 * time.Hour // the longest time from the receive until a message becomes visible
	MaxBytes      = 1 << 20        // of body and attributes together
	MaxAttributes = 10             // of one message
	MaxEntries    = 10             // of one batch call
)

// ErrGone says that a receipt handle does not belong to a message in flight any more.
var ErrGone = errors.New("receipt handle is not in flight")

// ErrTooLarge says that a message is larger than the queue accepts. Sending it again cannot
// succeed.
var ErrTooLarge = errors.New("message is too large")

// ErrContent says that the queue refuses the content of a message. Sending it again cannot succeed.
var ErrContent = errors.New("the queue refuses the content of the message")

// Refusal returns why SQS does not accept a message, or nil. Every implementation of Queue calls
// Refusal, so that all refuse the same messages. The error for more than [MaxBytes] is
// [ErrTooLarge]. Source: the quotas of SendMessage in the SQS developer guide.
func (o Outgoing) Refusal() error {
	switch n := Bytes(o.Body, o.Attributes); {
	case n > MaxBytes:
		return fmt.Errorf("send: body and attributes have %d bytes, at most %d are allowed: %w", n, MaxBytes,
			ErrTooLarge)
	case o.Body == "":
		return errors.New("send: body is empty, but needs at least one character")
	case o.Delay < 0 || o.Delay > MaxDelay:
		return fmt.Errorf("send: delay is %s, but must be 0 to %s", o.Delay, MaxDelay)
	case len(o.Attributes) > MaxAttributes:
		return fmt.Errorf("send: %d attributes, at most %d are allowed", len(o.Attributes), MaxAttributes)
	}
	return nil
}

// HoldRefusal returns why SQS does not hold a message for d from now, or nil. since is how long ago
// the message was received, or 0 if the caller does not know when.
func HoldRefusal(d, since time.Duration) error {
	if d < 0 || since+d > MaxHold {
		return fmt.Errorf("hold for %s, %s after the receive: use 0 or more, and at most %s together", d, since, MaxHold)
	}
	return nil
}

// Bytes returns the size that SQS counts: body, attribute names, types and values.
func Bytes(body string, attrs map[string]Attribute) int {
	n := len(body)
	for name, a := range attrs {
		n += len(name) + len(a.Type) + len(a.String) + len(a.Binary)
	}
	return n
}

// ErrorAt returns the error of entry i in the answer of a Queue method.
func ErrorAt(errs []error, i int) error {
	if errs == nil {
		return nil
	}
	return errs[i]
}

// Failed joins the errors in the answer of a Queue method, or returns nil. Failed leaves out
// ErrGone, which is expected: the message was deleted, or delivered again.
func Failed(errs []error) error {
	var failed []error
	for _, err := range errs {
		if !errors.Is(err, ErrGone) {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// Answer returns errs as the answer of a Queue method: nil if every entry succeeded.
func Answer(errs []error) []error {
	if errors.Join(errs...) == nil {
		return nil
	}
	return errs
}

// FailAll returns the answer of a Queue method whose n entries all fail for one reason.
func FailAll(n int, err error) []error { return Answer(slices.Repeat([]error{err}, n)) }

// Kept returns the answer of a function: the ids of the messages that the queue must keep, each
// once. An empty list acknowledges the whole batch. Kept never returns nil, so the answer always
// has a list.
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
