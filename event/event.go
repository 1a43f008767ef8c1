package event

import (
	"time"
)

// Event is one change of one document.
type Event struct {
	Index     int // position among the events of its message, skipped and invalid ones counted
	Doc       DocID
	Op        Operation
	Version   string // as the upstream wrote it
	Class     Class
	Key       OrderKey
	Time      time.Time // event time, zero for none
	NotBefore time.Time // zero for none
	Resync    bool
	Data      string // payload, JSON as received; empty for a delete and where DataRef is set
	DataRef   string // s3://bucket/key or https://..., fetched when it is written
	Fetch     string // the source whose setting fetch made DataRef; empty where the message has it
}

// Result is what a source makes of one event of a message: exactly one of an event, a skip and an
// Invalid.
type Result struct {
	Event   Event  // where Skip is empty and Invalid is nil
	Skip    string // why the source's rule passes it over: "heartbeat", "locale de"
	Invalid *Invalid
	// Object is what the event is about where that holds many documents. Skip is [ManyDocuments]
	// then: the event itself changes none. receive reads the object.
	Object *Object
}

// ManyDocuments is the Skip of an event about an object that holds many documents.
const ManyDocuments = "an object of many documents: its lines are messages of their own"

// Invalid says that an event breaks the contract: it becomes a dead letter, and the rest of its
// batch goes on.
type Invalid struct {
	Reason Reason
	Field  string // the field's name in the message, "" for the whole of it
	// Problem says what is wrong and what is allowed. It quotes at most 64 bytes of a field that
	// identifies something, never of a body.
	Problem string
	Index   int      // position among the message's events
	Doc     DocID    // where it is known
	Key     OrderKey // where it is known

	// Missing says that what the event refers to is not there. It may have been removed since: index
	// waits for the delete (setting payload.missingWait) before the event becomes a dead letter.
	Missing bool

	// Stale says that what was fetched for the event is older than the event: a replica lags. index
	// tries again until retry.deadDeadline.
	Stale bool

	// Err is what kept a body that a pointer names from being loaded, where that may pass. See
	// Transient.
	Err error
}

// Transient reports whether the same message may decode well later: the body is a pointer and could
// not be loaded now. Leave such a message in its queue.
func (i *Invalid) Transient() bool { return i.Err != nil }

// Unwrap gives the cause where Transient.
func (i *Invalid) Unwrap() error { return i.Err }

// Error is the reason, the field and the problem in one line. It never holds content of a body.
func (i *Invalid) Error() string { return string(i.Reason) + ": " + i.Detail() }

// Detail is the field and the problem in one line. It never holds content of a body.
func (i *Invalid) Detail() string {
	if i.Field == "" {
		return i.Problem
	}
	return i.Field + ": " + i.Problem
}
