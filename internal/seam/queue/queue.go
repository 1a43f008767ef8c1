// Package queue is the seam to SQS standard queues, in SQS's own terms. A standard queue may
// deliver a message twice, late or out of order, and lull must bear it: the row is the referee, not
// the queue.
package queue

import (
	"context"
	"maps"
	"strconv"
	"time"
)

// Message is a message as received. Body and attributes are never changed by lull: a dead letter
// holds them byte for byte.
type Message struct {
	ID            string
	Receipt       string // receipt handle: new at each receive, no fence
	Body          string
	Attributes    map[string]Attribute
	Sent          time.Time // SentTimestamp, milliseconds
	FirstReceived time.Time // ApproximateFirstReceiveTimestamp
	ReceiveCount  int       // ApproximateReceiveCount: 1 at the first receive
	Group         string    // MessageGroupId: a tenant, empty for none; known in the batch, not kept in manifests
	MovedFrom     string    // DeadLetterQueueSourceArn: set where SQS's redrive policy moved it
	Sender        string    // SenderId, which no sender can choose: of a role "AROA...:session"
}

// Oldest is when the oldest of the messages was sent, zero where there are none.
func Oldest(msgs []Message) (sent time.Time) {
	for i := range msgs {
		if at := msgs[i].Sent; sent.IsZero() || at.Before(sent) {
			sent = at
		}
	}
	return sent
}

// Received is when the last of the messages was received for the first time, by SQS's clock; zero
// where none says so.
func Received(msgs []Message) (at time.Time) {
	for i := range msgs {
		if msgs[i].FirstReceived.After(at) {
			at = msgs[i].FirstReceived
		}
	}
	return at
}

// Attribute is a message attribute: String or Binary according to Type ("String", "Number",
// "Binary", or with a suffix).
type Attribute struct {
	Type   string `json:"type"`
	String string `json:"string,omitempty"`
	Binary []byte `json:"binary,omitempty"`
}

// Text is a String attribute.
func Text(s string) Attribute { return Attribute{Type: "String", String: s} }

// Outgoing is a message to send.
type Outgoing struct {
	Body       string
	Attributes map[string]Attribute
	Delay      time.Duration // whole seconds, at most 900
}

// AttrFirstSent is set on every copy that lull sends: the SentTimestamp of the first message,
// milliseconds since 1970. It is honoured only where it is earlier than the message's own: it can
// make a message older, never newer.
const AttrFirstSent = "lull-first-sent"

// AttrTrace is the W3C trace context of a message: the traceparent of the span that sent it. Copies
// keep it. Only tracing reads it.
const AttrTrace = "traceparent"

// AttrSource chooses the source that decodes a message, by its name in the configuration.
const AttrSource = "lull-source"

// AttrEvent says which event of its message a copy is for, by its position. The name is lull's own:
// a sender that sets it has its other events skipped.
const AttrEvent = "lull-event"

// OnlyEvent is the position in AttrEvent, of a message of n events. Without one, or with one that
// the message does not have, it is false.
func OnlyEvent(attrs map[string]Attribute, n int) (int, bool) {
	i, ok := parseNumber(attrs[AttrEvent].String)
	return int(i), ok && i < int64(n)
}

// AttrGroup names the message group, a tenant, in which lull sends a message: SQS's MessageGroupId,
// by which a standard queue is fair to groups that send little. Being an attribute it stays with
// every copy. What an upstream sets as MessageGroupId alone is heeded by SQS when it delivers the
// message, and is not on copies.
const AttrGroup = "lull-group"

// maxGroup is the length of the longest MessageGroupId.
const maxGroup = 128

// Group is the message group that attributes name, empty where they name none or one that SQS does
// not take: a message is never lost for its group.
func Group(attrs map[string]Attribute) string {
	if g := attrs[AttrGroup].String; ValidGroup(g) {
		return g
	}
	return ""
}

// ValidGroup reports whether SQS takes a MessageGroupId: 1 to 128 letters, digits or punctuation
// marks of ASCII.
func ValidGroup(g string) bool {
	for i := range len(g) {
		if g[i] <= ' ' || g[i] > '~' {
			return false
		}
	}
	return g != "" && len(g) <= maxGroup
}

// Queue sends, holds and deletes. Implementations split calls into batches of ten, read per-entry
// failures inside a successful answer, and are safe for concurrent use. Each method returns nil
// where everything went well, otherwise a slice as long as its input with an error, or nil, for
// each entry.
type Queue interface {
	Send(ctx context.Context, out []Outgoing) []error

	// Hold makes messages invisible for d from now; zero makes them visible at once
	// (ChangeMessageVisibility). ErrGone fails its entry alone: the handle is stale, or the message
	// is deleted or no longer in flight.
	Hold(ctx context.Context, receipts []string, d time.Duration) []error

	// Delete deletes. Duplicate handles enter a batch once. A handle that is gone counts as
	// deleted: its message is done, or was delivered again.
	Delete(ctx context.Context, receipts []string) []error
}

// FirstSent is when the first message of which this may be a copy was sent: the age guard counts
// from it.
func (m Message) FirstSent() time.Time {
	if a, ok := m.Attributes[AttrFirstSent]; ok {
		if ms, ok := parseNumber(a.String); ok {
			if t := time.UnixMilli(ms); t.Before(m.Sent) {
				return t
			}
		}
	}
	return m.Sent
}

// FirstSent is the value of AttrFirstSent: milliseconds since 1970.
func FirstSent(t time.Time) Attribute {
	return Text(strconv.FormatInt(max(t.UnixMilli(), 0), 10))
}

// With is a copy of attributes, which may be nil, with one more or another one under its name.
func With(attrs map[string]Attribute, name string, value Attribute) map[string]Attribute {
	with := make(map[string]Attribute, len(attrs)+1)
	maps.Copy(with, attrs)
	with[name] = value
	return with
}

// parseNumber reads up to 16 digits: what lull writes, a sender may write too.
func parseNumber(s string) (int64, bool) {
	if s == "" || len(s) > 16 { // most messages have none: an error would be made for each
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 63)
	return int64(n), err == nil
}

// WholeSeconds rounds up: SQS counts delays and visibility in seconds, and nothing may come back
// before its time.
func WholeSeconds(d time.Duration) time.Duration {
	if rest := d % time.Second; rest > 0 {
		d += time.Second - rest
	}
	return d
}
