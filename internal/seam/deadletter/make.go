// SPDX-License-Identifier: Apache-2.0

package deadletter

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

// MaxDetail is the greatest length of Facts.Detail, in bytes.
const MaxDetail = 200

// ID returns the id of a dead letter: 32 hexadecimal digits. The id is made from document and order
// key, so that a version is parked only once. Without an order key, the id is the hash of the
// message.
func ID(doc shard.DocID, key shard.OrderKey, hash string) string {
	if doc == "" || key == "" {
		return hash
	}
	return digest("version", string(doc), string(key))
}

// Astray returns the id of a dead letter whose version came to the queue of a wrong sink.
func Astray(sink string, doc shard.DocID, key shard.OrderKey) string {
	return digest("astray", sink, string(doc), string(key))
}

// OfSink returns the id of a dead letter without an order key, for a sink that is not the default
// sink. A topic sends the message to several sinks, and each sink has its own dead letter.
func OfSink(sink, hash string) string { return digest("sink", sink, hash) }

// Hash returns the hash of a message in 32 hexadecimal digits. It covers the body, and the
// attributes if there are any. lull's own attributes do not count, so a copy has the hash of its
// original.
func Hash(body string, attrs map[string]queue.Attribute) string {
	parts := []string{body}
	for _, name := range slices.Sorted(maps.Keys(attrs)) {
		if name != AttrLetter && name != queue.AttrFirstSent && name != queue.AttrPart {
			a := attrs[name]
			parts = append(parts, name, a.Type, a.String, string(a.Binary))
		}
	}
	if len(parts) == 1 {
		return digest("body", body)
	}
	return digest("message", parts...)
}

// digest hashes texts. It writes the length of each text except the last before the text, so that
// different lists of texts never give the same input.
func digest(kind string, parts ...string) string {
	text := append(make([]byte, 0, 256), kind...)
	for i, p := range parts {
		if i < len(parts)-1 {
			text = binary.BigEndian.AppendUint64(text, uint64(len(p)))
		}
		text = append(text, p...)
	}
	sum := sha256.Sum256(text)
	var id [32]byte
	hex.Encode(id[:], sum[:16])
	return string(id[:])
}

// Maker makes the dead letters of one message, and hashes the message at most once. Only one
// goroutine may use a Maker.
type Maker struct {
	message queue.Message
	hash    string
}

// Of returns the maker for a message.
func Of(m queue.Message) *Maker { return &Maker{message: m} }

// Hash returns the message's hash.
func (k *Maker) Hash() string {
	if k.hash == "" {
		k.hash = Hash(k.message.Body, k.message.Attributes)
	}
	return k.hash
}

// New makes the dead letter of one event of a message.
func New(m queue.Message, reason Reason, detail string, doc shard.DocID, key shard.OrderKey, index int,
	now time.Time,
) Letter {
	return Of(m).New(reason, detail, doc, key, index, now)
}

// New makes the dead letter of one event. doc and key may be empty if the message could not be
// decoded. index is the event's position in the message. The caller adds Sink and Lane, and the
// refusals and errors that the caller knows.
func (k *Maker) New(reason Reason, detail string, doc shard.DocID, key shard.OrderKey, index int,
	now time.Time,
) Letter {
	id := ID(doc, key, "")
	if id == "" {
		id = k.Hash()
	}
	m := k.message
	return Letter{
		Facts: Facts{
			ID: id, Reason: reason, Detail: cut(detail), Doc: doc, Key: key, Event: index,
			MessageID: m.ID, FirstSent: m.FirstSent().UTC(), Sent: m.Sent.UTC(), Died: now.UTC(), State: Parked,
		},
		Body: m.Body, Attributes: m.Attributes,
	}
}

// cut shortens a detail to MaxDetail bytes of valid text.
func cut(s string) string {
	if n := MaxDetail; len(s) > n {
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n]
	}
	return strings.ToValidUTF8(s, "?")
}

// Under returns f with the facts of the stored message: its hash, id, position, times, sink and
// lane. stored belongs to another message of the same version.
func (f Facts) Under(stored Facts) Facts {
	f.Hash, f.MessageID, f.Event = stored.Hash, stored.MessageID, stored.Event
	f.FirstSent, f.Sent, f.Sink, f.Lane = stored.FirstSent, stored.Sent, stored.Sink, stored.Lane
	return f
}

// SameDeath reports whether the stored facts describe the same failure: the same message and the
// same reason, and the stored dead letter was not redriven since. It ignores when the message died,
// because a caller that does not know whether its first call succeeded calls again later.
func (f Facts) SameDeath(stored Facts) bool {
	stored.Died, stored.RedrivenAt, stored.Redrives, stored.Auto = f.Died, f.RedrivenAt, f.Redrives, f.Auto
	stored.FirstError = f.FirstError
	stored.FirstSent, stored.Sent = same(stored.FirstSent, f.FirstSent), same(stored.Sent, f.Sent)
	return f == stored
}

// same returns b if both are the same moment, and a otherwise.
func same(a, b time.Time) time.Time {
	if a.Equal(b) {
		return b
	}
	return a
}

// ByPosition orders the dead letters of one message.
func ByPosition(a, b Facts) int {
	return cmp.Or(cmp.Compare(a.Event, b.Event), cmp.Compare(a.ID, b.ID))
}

// Transient reports whether a dead letter with this reason may succeed later without any fix. The
// cause of such a dead letter was a state of the sink, of the source or of lull, and not its
// message.
func (r Reason) Transient() bool {
	switch r {
	case Refusals, ReceiveCount, DeadDeadline, StaleSource:
		return true
	}
	return false
}

// Begins reports whether an error in a row begins with this reason. Such a row has a version that
// is not written for this reason.
func (r Reason) Begins(lastError string) bool { return strings.HasPrefix(lastError, string(r)+": ") }

// Known reports whether r is one of the reasons.
func (r Reason) Known() bool { return slices.Contains(reasons, r) }

// Shown returns the state that people see. A redriven dead letter counts as parked if its redrive
// is older than the retention of the dead-letter queue. By then it was neither committed nor parked
// again.
func (f Facts) Shown(now time.Time, retention time.Duration) State {
	if f.State == Redriven && !now.Before(f.RedrivenAt.Add(retention)) {
		return Parked
	}
	return f.State
}

// reasons lists every reason.
var reasons = []Reason{
	Undecodable, Contract, VersionInvalid, ClassMismatch, TooOld, DeadDeadline, TooFarAhead, RejectedBySink, Refusals,
	Payload, StaleSource,
	ReceiveCount, Panic, Cancelled, EnrichRejected,
}

// Reasons lists all reasons in one text, for messages to users.
func Reasons() string {
	words := make([]string, len(reasons))
	for i, r := range reasons {
		words[i] = string(r)
	}
	return strings.Join(words, ", ")
}
