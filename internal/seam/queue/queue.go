// SPDX-License-Identifier: Apache-2.0

// Package queue is the interface to SQS standard queues, in SQS's own terms. A standard queue may
// deliver a message twice, late or out of order. lull accepts this, because the row decides which
// version is new.
package queue

import (
	"context"
	"maps"
	"strconv"
	"time"
)

// Message is a received message. lull never changes body and attributes: a dead letter holds both
// byte for byte.
type Message struct {
	ID            string
	Receipt       string // receipt handle, new at each receive; another receiver may have another one
	Body          string
	Attributes    map[string]Attribute
	Sent          time.Time // SentTimestamp, in milliseconds
	FirstReceived time.Time // ApproximateFirstReceiveTimestamp
	ReceiveCount  int       // ApproximateReceiveCount: 1 at the first receive
	Group         string    // MessageGroupId: a tenant, empty for none; not in manifests
	MovedFrom     string    // DeadLetterQueueSourceArn: set if SQS's redrive policy moved the message
	Sender        string    // SenderId, which SQS sets and no sender can choose: for a role "AROA...:session"
}

// Oldest returns when the oldest of the messages was sent. The time is zero if there are no
// messages.
func Oldest(msgs []Message) (sent time.Time) {
	for i := range msgs {
		if at := msgs[i].Sent; sent.IsZero() || at.Before(sent) {
			sent = at
		}
	}
	return sent
}

// Received returns when the last of the messages was received for the first time, by SQS's clock.
// The time is zero if no message says so.
func Received(msgs []Message) (at time.Time) {
	for i := range msgs {
		if msgs[i].FirstReceived.After(at) {
			at = msgs[i].FirstReceived
		}
	}
	return at
}

// Attribute is a message attribute. Type ("String", "Number", "Binary", or one of these with a
// suffix) says whether String or Binary has the value.
type Attribute struct {
	Type   string `json:"type"`
	String string `json:"string,omitempty"`
	Binary []byte `json:"binary,omitempty"`
}

// Text returns a String attribute.
func Text(s string) Attribute { return Attribute{Type: "String", String: s} }

// Outgoing is a message to send.
type Outgoing struct {
	Body       string
	Attributes map[string]Attribute
	Delay      time.Duration // whole seconds, at most 900
}

// AttrFirstSent is set on every copy that lull sends. It holds the SentTimestamp of the first
// message, in milliseconds since 1970. It counts only if it is earlier than the SentTimestamp of
// the message itself. So a sender can use it to make a message older, but never newer.
const AttrFirstSent = "lull-first-sent"

// AttrTrace is the W3C trace context of a message: the traceparent of the span that sent the
// message. Copies have the attribute too. Only tracing reads it.
const AttrTrace = "traceparent"

// AttrSource names the source that decodes a message, as the configuration names the source.
const AttrSource = "lull-source"

// AttrEvent holds the position of the event for which a copy was sent. Only lull may set it.
const AttrEvent = "lull-event"

// OnlyEvent returns the position in AttrEvent, for a message of n events. It returns false if there
// is no position, or if the message has no event at this position.
func OnlyEvent(attrs map[string]Attribute, n int) (int, bool) {
	i, ok := parseNumber(attrs[AttrEvent].String)
	return int(i), ok && i < int64(n)
}

// AttrGroup names the message group (a tenant) in which lull sends a message. SQS calls the group
// MessageGroupId. If messages have groups, a standard queue does not let a busy group delay the
// others. Because AttrGroup is an attribute, every copy has it. If an upstream sets only
// MessageGroupId, SQS uses that for the first delivery, and copies do not have it.
const AttrGroup = "lull-group"

// maxGroup is the greatest length of a MessageGroupId.
const maxGroup = 128

// Group returns the message group that attributes name. If the attributes name no group, or a group
// that SQS refuses, Group returns an empty text: a wrong group must not lose the message.
func Group(attrs map[string]Attribute) string {
	if g := attrs[AttrGroup].String; ValidGroup(g) {
		return g
	}
	return ""
}

// ValidGroup reports whether SQS accepts a MessageGroupId: 1 to 128 printable characters of ASCII,
// without spaces.
func ValidGroup(g string) bool {
	for i := range len(g) {
		if g[i] <= ' ' || g[i] > '~' {
			return false
		}
	}
	return g != "" && len(g) <= maxGroup
}

// Queue sends, holds and deletes messages. Implementations split calls into batches of ten, read
// the errors of entries inside a successful answer, and are safe for concurrent use. Each method
// returns nil if every entry succeeded. Otherwise the method returns a slice as long as its input,
// with an error or nil for each entry.
type Queue interface {
	Send(ctx context.Context, out []Outgoing) []error

	// Hold makes messages invisible for d from now (ChangeMessageVisibility). If d is 0, the
	// messages become visible at once. An entry fails with ErrGone if its handle is stale, or its
	// message is deleted or no longer in flight.
	Hold(ctx context.Context, receipts []string, d time.Duration) []error

	// Delete deletes messages. Equal handles are sent once. A handle that is gone counts as
	// deleted: its message is done, or was delivered again.
	Delete(ctx context.Context, receipts []string) []error
}

// FirstSent returns when the first message was sent of which this one may be a copy. The age of a
// message counts from this time.
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

// FirstSent returns the value of AttrFirstSent: milliseconds since 1970.
func FirstSent(t time.Time) Attribute {
	return Text(strconv.FormatInt(max(t.UnixMilli(), 0), 10))
}

// With returns a copy of attributes in which name has this value. attrs may be nil.
func With(attrs map[string]Attribute, name string, value Attribute) map[string]Attribute {
	with := make(map[string]Attribute, len(attrs)+1)
	maps.Copy(with, attrs)
	with[name] = value
	return with
}

// parseNumber parses up to 16 digits. The value may come from any sender.
func parseNumber(s string) (int64, bool) {
	if s == "" || len(s) > 16 { // most messages have no number, and this check avoids making an error for each
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 63)
	return int64(n), err == nil
}

// WholeSeconds rounds d up to whole seconds. SQS counts delays and visibility in seconds, and no
// message may become visible too early.
func WholeSeconds(d time.Duration) time.Duration {
	if rest := d % time.Second; rest > 0 {
		d += time.Second - rest
	}
	return d
}
