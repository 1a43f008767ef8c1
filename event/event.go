// SPDX-License-Identifier: Apache-2.0

package event

import (
	"time"
)

// Event is one change of one document.
type Event struct {
	Index     int // position among the events of its message, including skipped and invalid ones
	Doc       DocID
	Op        Operation
	Version   string // the version as the upstream wrote it
	Class     Class
	Key       OrderKey
	Time      time.Time // the event time, or zero if the message does not contain it
	NotBefore time.Time // the earliest time at which the event is due, or zero
	Resync    bool
	Data      string // the payload, in JSON as received; empty for a delete, and if DataRef is set
	DataRef   string // s3://bucket/key or https://..., loaded when index writes the document
	Fetch     string // the source whose setting fetch made DataRef; empty if the message contains DataRef
}

// Result is a source's result for one event of a message: an event, a skip or an Invalid.
type Result struct {
	Event   Event  // set if Skip is empty and Invalid is nil
	Skip    string // why a rule of the source skips the event, such as "heartbeat" or "locale de"
	Invalid *Invalid
	// Object is set if the event is about an object of many documents. Then Skip is
	// [ManyDocuments], because the event itself changes no document. receive reads the object.
	Object *Object
}

// ManyDocuments is the Skip of an event about an object that contains many documents.
const ManyDocuments = "an object of many documents: its lines are messages of their own"

// Invalid says what is wrong with an event. The event becomes a dead letter, and the other events
// of its batch are processed.
type Invalid struct {
	Reason Reason
	Field  string // the field's name in the message, or "" if the whole message is invalid
	// Problem says what is wrong and what is allowed. It quotes at most 64 bytes of a field such as
	// an id, and never a body.
	Problem string
	Index   int      // position among the message's events
	Doc     DocID    // empty if the document is not known
	Key     OrderKey // empty if the order key is not known

	// Missing says that an object to which the event refers does not exist. The upstream may have
	// deleted the object after it sent the event. So index waits for the event of the delete
	// (setting payload.missingWait) before the event becomes a dead letter.
	Missing bool

	// Stale says that the fetched state is older than the event, for example because a replica
	// lags. index fetches again until retry.deadDeadline.
	Stale bool

	// Err is the cause if the body that a pointer names could not be loaded now, but may be loaded
	// later. See Transient.
	Err error
}

// Transient reports whether the same message may be decoded later. That is so if the message
// contains a pointer whose body could not be loaded now. Leave such a message in its queue.
func (i *Invalid) Transient() bool { return i.Err != nil }

// Unwrap returns the cause of an Invalid that is Transient, and otherwise nil.
func (i *Invalid) Unwrap() error { return i.Err }

// Error returns the reason, the field and the problem in one line. The line never contains content
// of a body.
func (i *Invalid) Error() string { return string(i.Reason) + ": " + i.Detail() }

// Detail returns the field and the problem in one line. The line never contains content of a body.
func (i *Invalid) Detail() string {
	if i.Field == "" {
		return i.Problem
	}
	return i.Field + ": " + i.Problem
}
