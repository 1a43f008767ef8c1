package event

import (
	"fmt"
	"time"

	"github.com/lullhq/lull/internal/deadletter"
	"github.com/lullhq/lull/internal/shard"
)

// Event is one change of one document.
type Event struct {
	Index     int // position among the events of its message, skipped and faulty ones counted
	Doc       shard.DocID
	Op        shard.Operation
	Version   string // as the upstream wrote it
	Class     shard.Class
	Key       shard.OrderKey
	Time      time.Time // event time, zero for none
	NotBefore time.Time // zero for none
	Resync    bool
	Data      string // payload, JSON as received; empty for a delete and where DataRef is set
	DataRef   string // s3://bucket/key or https://..., fetched when it is written
}

// Result is what a source makes of one event of a message: exactly one of an event, a skip and a
// fault.
type Result struct {
	Event Event  // valid where Skip is empty and Fault is nil
	Skip  string // why the source's rule passes it over: "heartbeat", "locale de"
	Fault *Fault
}

// Fault says that an event breaks the contract: it becomes a dead letter, the rest of its batch
// goes on.
type Fault struct {
	Reason deadletter.Reason
	Field  string // the field's name in the message, "" for the whole of it
	// what is wrong and what is allowed; quotes at most 64 bytes of a field that identifies, never
	// of a body
	Problem string
	Index   int            // position among the message's events
	Doc     shard.DocID    // where it is known
	Key     shard.OrderKey // where it is known

	// Err is what kept a body that a pointer names from being loaded, where that may pass. See
	// Transient.
	Err error
}

// Transient reports whether the same message may decode well later: the body is a pointer and could
// not be loaded now. Such a message is better left in its queue than made a dead letter.
func (f *Fault) Transient() bool { return f.Err != nil }

// Unwrap gives the cause of a transient fault.
func (f *Fault) Unwrap() error { return f.Err }

// Error is the reason, the field and the problem in one line. It never holds content of a body.
func (f *Fault) Error() string {
	if f.Field == "" {
		return fmt.Sprintf("%s: %s", f.Reason, f.Problem)
	}
	return fmt.Sprintf("%s: %s: %s", f.Reason, f.Field, f.Problem)
}
