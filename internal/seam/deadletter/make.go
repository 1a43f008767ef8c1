package deadletter

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"io"
	"maps"
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
// it dies; by the hash of its message where it has no order key. IDs are 32 hexadecimal digits.
func ID(doc shard.DocID, key shard.OrderKey, hash string) string {
	if doc == "" || key == "" {
		return hash
	}
	return digest("version", string(doc), string(key))
}

// Astray names the dead letter of a version that came to the queue of a sink which is not its own.
func Astray(sink string, doc shard.DocID, key shard.OrderKey) string {
	return digest("astray", sink, string(doc), string(key))
}

// OfSink names the dead letter of a message without an order key, in a sink that is not the default
// one. A topic sends the message to several sinks, and each has its own dead letter.
func OfSink(sink, hash string) string { return digest("sink", sink, hash) }

// Hash names a message: by its body, and by its attributes where it has any. lull's own marks do
// not count, so a copy has its original's hash. A hash has 32 hexadecimal digits.
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

// digest hashes texts. Each but the last is led by its length: none can pretend to be a piece of
// another.
func digest(kind string, parts ...string) string {
	h := sha256.New()
	write := func(s string) { _, _ = io.WriteString(h, s) }
	write(kind)
	for i, p := range parts {
		if i < len(parts)-1 {
			h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(p))))
		}
		write(p)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Maker makes the dead letters of one message, which is hashed once at most. It is for one
// goroutine.
type Maker struct {
	message queue.Message
	hash    string
}

// Of makes the dead letters of a message.
func Of(m queue.Message) *Maker { return &Maker{message: m} }

// Hash is the message's hash.
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

// New makes the dead letter of one event. doc and key may be empty where the message could not be
// decoded; index is the event's position in it. The caller adds Sink and Lane, and what it knows of
// refusals and errors.
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

// Under is the facts of a death with those of another message of the same version: the one that is
// stored.
func (f Facts) Under(stored Facts) Facts {
	f.Hash, f.MessageID, f.Event = stored.Hash, stored.MessageID, stored.Event
	f.FirstSent, f.Sent, f.Sink, f.Lane = stored.FirstSent, stored.Sent, stored.Sink, stored.Lane
	return f
}

// SameDeath reports whether the facts are of the death that is stored: the same message died of the
// same, and is not under way again. When it died is not asked: who could not tell that it is stored
// says so anew.
func (f Facts) SameDeath(stored Facts) bool {
	stored.Died, stored.RedrivenAt, stored.Redrives, stored.Auto = f.Died, f.RedrivenAt, f.Redrives, f.Auto
	stored.FirstError = f.FirstError
	stored.FirstSent, stored.Sent = same(stored.FirstSent, f.FirstSent), same(stored.Sent, f.Sent)
	return f == stored
}

// same is b where both are the same moment.
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

// Transient reports whether a dead letter with this reason may well succeed when it is tried again
// without anybody fixing anything: what it met was a state of the sink, of the source or of lull,
// not of the message.
func (r Reason) Transient() bool {
	switch r {
	case Refusals, ReceiveCount, DeadDeadline, StaleSource:
		return true
	}
	return false
}

// Begins reports whether an error in a row says that this is why its version is not written.
func (r Reason) Begins(lastError string) bool { return strings.HasPrefix(lastError, string(r)+": ") }

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
	Payload, StaleSource,
	ReceiveCount, Panic, Cancelled, EnrichRejected,
}

// Reasons names every reason, for messages.
func Reasons() string {
	words := make([]string, len(reasons))
	for i, r := range reasons {
		words[i] = string(r)
	}
	return strings.Join(words, ", ")
}
