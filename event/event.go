package event

import (
	"time"
)

// Event is one change of one document.
type Event struct {
	Index     int // position among the events of its message, including skipped and invalid ones
	Doc       DocID
	Op        Operation
	Version   string // as the upstream wrote it
	Class     Class
	Key       OrderKey
	Time      time.Time // event time, zero for none
	NotBefore time.Time // zero for none
	Resync    bool
	Data      string // payload, JSON as received; empty for a delete, and if DataRef is set
	DataRef   string // s3://bucket/key or https://..., fetched when index writes the document
	Fetch     string // the source whose setting fetch made DataRef; empty if the message contains DataRef
}

// Result is a source's result for one event of a message: an event, a skip or an Invalid.
type Result struct {
	Event   Event  // set if Skip is empty and Invalid is nil
	Skip    string // why a rule of the source skips it: "heartbeat", "locale de"
	Invalid *Invalid
	// Object is set if the event is about an object of many documents. Then Skip is
	// [ManyDocuments], because the event itself changes no document. receive reads the object.
	Object *Object
}

// ManyDocuments is the Skip of an event about an object that holds many documents.
const ManyDocuments = "an object of many documents: its lines are messages of their own"

// Invalid says what is wrong with an event. The event becomes a dead letter, and the other events
// of its batch are processed.
type Invalid struct {
	Reason Reason
	Field  string // the field's name in the message, "" for the whole message
	// Problem says what is wrong and what is allowed. It quotes at most 64 bytes of a field such as
	// an id, and never a body.
	Problem string
	Index   int      // position among the message's events
	Doc     DocID    // if it is known
	Key     OrderKey // if it is known

	// Missing says that an object to which the event refers does not exist. It may have been
	// deleted since. So index waits for the delete (setting payload.missingWait) before the event
	// becomes a dead letter.
	Missing bool

	// Stale says that the fetched state is older than the event, because a replica lags. index
	// tries again until retry.deadDeadline.
	Stale bool

	// Err is set if the body that a pointer names could not be loaded now, but may be later. See
	// Transient.
	Err error
}

// Transient reports whether the same message may be decoded later: its body is a pointer, and could
// not be loaded now. Leave such a message in its queue.
func (i *Invalid) Transient() bool { return i.Err != nil }

// Unwrap returns the cause if Transient, and nil otherwise.
func (i *Invalid) Unwrap() error { return i.Err }

// Error returns the reason, the field and the problem in one line. It never holds content of a
// body.
func (i *Invalid) Error() string { return string(i.Reason) + ": " + i.Detail() }

// Detail returns the field and the problem in one line. It never holds content of a body.
func (i *Invalid) Detail() string {
	if i.Field == "" {
		return i.Problem
	}
	return i.Field + ": " + i.Problem
}
