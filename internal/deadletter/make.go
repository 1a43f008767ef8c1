package deadletter

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/internal/shard"
)

// MaxDetail is the longest Facts.Detail, in bytes.
const MaxDetail = 200

// ID names a dead letter: by document and order key, so that a version is parked once however often
// it dies; by its body where it has no order key. IDs are 32 hexadecimal digits.
func ID(doc shard.DocID, key shard.OrderKey, body string) string {
	h := sha256.New()
	if doc != "" && key != "" {
		var n [8]byte // the length parts document and key: neither can pretend to be a piece of the other
		binary.BigEndian.PutUint64(n[:], uint64(len(doc)))
		h.Write([]byte("version"))
		h.Write(n[:])
		h.Write([]byte(doc))
		h.Write([]byte(key))
	} else {
		h.Write([]byte("body"))
		h.Write([]byte(body))
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// New makes the dead letter of one event of a message. doc and key may be empty where the message
// could not be decoded; index is the event's position in it. The caller adds Sink and Lane, and
// what it knows of refusals and errors.
func New(m queue.Message, reason Reason, detail string, doc shard.DocID, key shard.OrderKey, index int,
	now time.Time,
) Letter {
	return Letter{
		Facts: Facts{
			ID: ID(doc, key, m.Body), Reason: reason, Detail: cut(detail), Doc: doc, Key: key, Event: index,
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

// Transient reports whether a dead letter with this reason may well succeed when it is tried again
// without anybody fixing anything: what it met was a state of the sink or of lull, not of the
// message.
func (r Reason) Transient() bool {
	switch r {
	case Refusals, ReceiveCount, DeadDeadline:
		return true
	}
	return false
}

// Known reports whether r is one of the reasons.
func (r Reason) Known() bool { return slices.Contains(reasons, r) }

// Shown is the state as people see it: a dead letter may have been redriven longer than the
// dead-letter queue's retention ago and still be here. It was neither committed nor parked again,
// so it counts as parked.
func (f Facts) Shown(now time.Time, retention time.Duration) State {
	if f.State == Redriven && !now.Before(f.RedrivenAt.Add(retention)) {
		return Parked
	}
	return f.State
}

// reasons lists every reason.
var reasons = []Reason{
	Undecodable, Contract, VersionInvalid, ClassMismatch, TooOld, DeadDeadline, TooFarAhead, RejectedBySink, Refusals,
	Payload,
	ReceiveCount, Cancelled,
}

// Reasons names every reason, for messages.
func Reasons() string {
	words := make([]string, len(reasons))
	for i, r := range reasons {
		words[i] = string(r)
	}
	return strings.Join(words, ", ")
}
