// SPDX-License-Identifier: Apache-2.0

package shard

import "time"

// SchemaVersion is the newest row schema that this code understands. A row without the attribute
// has schema 1. The condition of every write refuses a row with a newer schema.
const SchemaVersion = 1

// Micros is a time in microseconds since 1970, by the writer's clock. 0 means none.
type Micros int64

// MicrosOf cuts a time to microseconds. The zero time becomes 0.
func MicrosOf(t time.Time) Micros {
	if t.IsZero() {
		return 0
	}
	return Micros(t.UnixMicro())
}

// Time returns the instant in UTC, and the zero time for 0.
func (m Micros) Time() time.Time {
	if m == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(m)).UTC()
}

// Add returns the instant d later.
func (m Micros) Add(d time.Duration) Micros { return m + Micros(d.Microseconds()) }

// Sub returns the time from n to m.
func (m Micros) Sub(n Micros) time.Duration { return time.Duration(m-n) * time.Microsecond }

// Operation is what a version does to its document.
type Operation string

// The operations that a row records as committed_op.
const (
	Put    Operation = "put"
	Delete Operation = "delete"
)

// Token identifies the owner of a lease. It is random and new for every claim. It is never the id
// of an invocation, a flight or an execution, because these can claim twice.
type Token string

// Fence is the time of a claim in microseconds. Sinks with versions store it as the external
// version. It grows with every applied write of a document.
type Fence int64

// Row is the item of one document in the table `shards`. Only the row decides which version is new.
// A field with its zero value is an absent attribute. An absent Pending or Claimed means the same
// as Committed. A Row is a value: copies do not share state.
//
// Rows that are not documents (see [DocID.IsDocument]) use only the last group of fields, and
// Owner, LeaseUntil, LastWrite, LastError and ExpiresAt.
type Row struct {
	Doc          DocID
	Schema       int64
	VersionClass Class
	Pending      OrderKey // the newest admitted key
	Committed    OrderKey // the newest key that was written to the sink
	CommittedOp  Operation
	Claimed      OrderKey // the highest key that any claim may have written to the sink
	ClaimedWas   OrderKey // Claimed before the last claim, Lowest for none
	Dead         OrderKey // a dead letter with this key is stored
	TakenBack    KeySet   // events that an operator took back, at most MaxTakenBack: see [OrderKey.Event]
	BurstStart   Micros   // when the first event of the waiting burst was admitted
	Flight       string   // the flight that admitted Pending, as information for people
	Group        string   // the message group (a tenant) of the newest admitted version that had one
	Owner        Token    // the token of the newest claim that has not ended; its lease may have expired
	LeaseUntil   Micros
	LastWrite    Micros  // the time of the last committed claim
	Attempts     int64   // number of claims without an answer from the sink
	Refusals     int64   // number of times that the sink refused this document
	Content      Content // recognises the bytes of the committed version; "" if the sink may have other bytes
	LastError    string  // class, status and field of the last error, never content; at most 200 bytes
	ExpiresAt    int64   // TTL, in seconds

	OpenUntil  Micros // health row: nothing is claimed before this time
	Level      int64  // health row: how often the circuit has opened, minus the levels that healthy time has removed
	ProbeUntil Micros // health row: a caller probes the sink until then
	Rate       int64  // health row: the speed after the last cut, in thousandths of a document a second
	RateTop    int64  // health row: the speed before the last cut; 0 if lull does not know yet what the sink accepts
	RateAt     Micros // health row: when Rate was set
	PaidUntil  Micros // health row: the time up to which flights have taken the budget
	Paid       int64  // health row: how much time flights have taken since RateAt, in microseconds
	SentUntil  Micros // health row: the time up to which the documents sent so far use the ceiling
	PausedAt   Micros // health row: when an operator paused the sink; 0 if it is not paused
	PausedBy   string // health row: the operator who paused the sink; at most 200 bytes
	PausedWhy  string // health row: the reason for the pause; at most 200 bytes
	// Fields of a health row, empty if no collection is being rebuilt. They are the collection, the
	// new index, and when the rebuild was recorded. They are also how many writes the new index
	// missed, and since when no write may be missed.
	RebuildOf     string
	RebuildInto   string
	RebuildAt     Micros
	RebuildMissed int64
	RebuildSeal   Micros
	RanAt         Micros // run row: the last start; object row: the last change
	Cursor        string // run row and object row: where the work continues
}

// Exists reports whether the table has an item for the row. An item always has an attribute besides
// its key.
func (r Row) Exists() bool { return r != (Row{Doc: r.Doc}) }

// Foreign reports whether the row has a newer schema. This code must not change it.
func (r Row) Foreign() bool { return r.Schema > SchemaVersion }

// Leased reports whether a lease is running at now. The time LeaseUntil itself belongs to the
// lease: CLAIM requires lease_until < now.
func (r Row) Leased(now Micros) bool { return r.Owner != "" && r.LeaseUntil >= now }

// Attr names an attribute of the item, spelt as in the table.
type Attr string

// These are the attributes of design section 5.
const (
	AttrSchema       Attr = "schema"
	AttrVersionClass Attr = "version_class"
	AttrPending      Attr = "pending"
	AttrCommitted    Attr = "committed"
	AttrCommittedOp  Attr = "committed_op"
	AttrClaimed      Attr = "claimed"
	AttrClaimedWas   Attr = "claimed_was"
	AttrDead         Attr = "dead"
	AttrTakenBack    Attr = "taken_back"
	AttrBurstStart   Attr = "burst_start"
	AttrFlight       Attr = "flight"
	AttrGroup        Attr = "group"
	AttrOwner        Attr = "owner"
	AttrLeaseUntil   Attr = "lease_until"
	AttrLastWrite    Attr = "last_write"
	AttrAttempts     Attr = "attempts"
	AttrRefusals     Attr = "refusals"
	// the name is short, because a row with a commit and the mark of a dead letter must fit into
	// 200 bytes
	AttrContent       Attr = "c"
	AttrLastError     Attr = "last_error"
	AttrExpiresAt     Attr = "expires_at"
	AttrOpenUntil     Attr = "open_until"
	AttrLevel         Attr = "level"
	AttrProbeUntil    Attr = "probe_until"
	AttrRate          Attr = "rate"
	AttrRateTop       Attr = "rate_top"
	AttrRateAt        Attr = "rate_at"
	AttrPaidUntil     Attr = "paid_until"
	AttrPaid          Attr = "paid"
	AttrSentUntil     Attr = "sent_until"
	AttrPausedAt      Attr = "paused_at"
	AttrPausedBy      Attr = "paused_by"
	AttrPausedWhy     Attr = "paused_why"
	AttrRebuildOf     Attr = "rebuild_of"
	AttrRebuildInto   Attr = "rebuild_into"
	AttrRebuildAt     Attr = "rebuild_at"
	AttrRebuildMissed Attr = "rebuild_missed"
	AttrRebuildSeal   Attr = "rebuild_seal"
	AttrRanAt         Attr = "ran_at"
	AttrCursor        Attr = "cursor"
)

// Attrs lists every attribute except the key, in the order of [Row].
func Attrs() []Attr {
	return []Attr{
		AttrSchema, AttrVersionClass, AttrPending, AttrCommitted, AttrCommittedOp, AttrClaimed, AttrClaimedWas,
		AttrDead, AttrTakenBack, AttrBurstStart, AttrFlight, AttrGroup, AttrOwner, AttrLeaseUntil,
		AttrLastWrite, AttrAttempts, AttrRefusals, AttrContent, AttrLastError, AttrExpiresAt, AttrOpenUntil,
		AttrLevel, AttrProbeUntil, AttrRate, AttrRateTop, AttrRateAt, AttrPaidUntil, AttrPaid, AttrSentUntil,
		AttrPausedAt, AttrPausedBy, AttrPausedWhy, AttrRebuildOf, AttrRebuildInto, AttrRebuildAt,
		AttrRebuildMissed, AttrRebuildSeal, AttrRanAt, AttrCursor,
	}
}

// ValueKind is the DynamoDB type of a value.
type ValueKind byte

// An order key is binary, a name is a string, a time or count is a number. A set of order keys is a
// set of binaries.
const (
	KindBinary ValueKind = 'B'
	KindKeySet ValueKind = 'K'
	KindString ValueKind = 'S'
	KindNumber ValueKind = 'N'
)

// Value is the value of an attribute. Only values of one kind can be compared.
type Value struct {
	Kind ValueKind
	Text string // set for B and S; a [KeySet] for K
	Num  int64  // set for N
}

func keyValue(k OrderKey) Value { return Value{Kind: KindBinary, Text: string(k)} }
func keySetValue(s KeySet) Value {
	return Value{Kind: KindKeySet, Text: string(s)}
}

func contentValue(c Content) Value {
	return Value{Kind: KindBinary, Text: string(c)}
}
func textValue(s string) Value  { return Value{Kind: KindString, Text: s} }
func timeValue(m Micros) Value  { return Value{Kind: KindNumber, Num: int64(m)} }
func numberValue(n int64) Value { return Value{Kind: KindNumber, Num: n} }
func (v Value) compare(w Value) int {
	switch {
	case v.Num < w.Num || v.Text < w.Text:
		return -1
	case v.Num > w.Num || v.Text > w.Text:
		return 1
	}
	return 0
}

// Get returns the value of an attribute, and whether the row has the attribute.
func (r *Row) Get(a Attr) (Value, bool) {
	switch p := r.field(a).(type) {
	case *OrderKey:
		return keyValue(*p), *p != ""
	case *KeySet:
		return keySetValue(*p), *p != ""
	case *Content:
		return contentValue(*p), *p != ""
	case *string:
		return textValue(*p), *p != ""
	case *Token:
		return textValue(string(*p)), *p != ""
	case *Operation:
		return textValue(string(*p)), *p != ""
	case *Class:
		if *p == 0 {
			return Value{}, false
		}
		return textValue(string(rune(*p))), true
	case *Micros:
		return timeValue(*p), *p != 0
	case *int64:
		return numberValue(*p), *p != 0
	}
	return Value{}, false
}

// Set writes a value into the attribute's field. The zero Value removes it. Set returns false if
// the row has no such attribute, or if the value is of the wrong kind.
func (r *Row) Set(a Attr, v Value) bool {
	kind := KindString
	switch p := r.field(a).(type) {
	case *OrderKey:
		*p, kind = OrderKey(v.Text), KindBinary
	case *KeySet:
		*p, kind = KeySet(v.Text), KindKeySet
	case *Content:
		*p, kind = Content(v.Text), KindBinary
	case *string:
		*p = v.Text
	case *Token:
		*p = Token(v.Text)
	case *Operation:
		*p = Operation(v.Text)
	case *Class:
		*p = 0
		if v.Text != "" {
			*p = Class(v.Text[0])
		}
	case *Micros:
		*p, kind = Micros(v.Num), KindNumber
	case *int64:
		*p, kind = v.Num, KindNumber
	case nil:
		return false
	}
	return v.Kind == kind || v.Kind == 0
}

// field returns a pointer to the field of an attribute, nil for an unknown name. It is a switch,
// because it runs several times for each write of a row.
func (r *Row) field(a Attr) any {
	switch a {
	case AttrSchema:
		return &r.Schema
	case AttrVersionClass:
		return &r.VersionClass
	case AttrPending:
		return &r.Pending
	case AttrCommitted:
		return &r.Committed
	case AttrCommittedOp:
		return &r.CommittedOp
	case AttrClaimed:
		return &r.Claimed
	case AttrClaimedWas:
		return &r.ClaimedWas
	case AttrDead:
		return &r.Dead
	case AttrTakenBack:
		return &r.TakenBack
	case AttrBurstStart:
		return &r.BurstStart
	case AttrFlight:
		return &r.Flight
	case AttrGroup:
		return &r.Group
	case AttrOwner:
		return &r.Owner
	case AttrLeaseUntil:
		return &r.LeaseUntil
	case AttrLastWrite:
		return &r.LastWrite
	case AttrAttempts:
		return &r.Attempts
	case AttrRefusals:
		return &r.Refusals
	case AttrContent:
		return &r.Content
	case AttrLastError:
		return &r.LastError
	case AttrExpiresAt:
		return &r.ExpiresAt
	case AttrOpenUntil:
		return &r.OpenUntil
	case AttrLevel:
		return &r.Level
	case AttrProbeUntil:
		return &r.ProbeUntil
	case AttrRate:
		return &r.Rate
	case AttrRateTop:
		return &r.RateTop
	case AttrRateAt:
		return &r.RateAt
	case AttrPaidUntil:
		return &r.PaidUntil
	case AttrPaid:
		return &r.Paid
	case AttrSentUntil:
		return &r.SentUntil
	case AttrPausedAt:
		return &r.PausedAt
	case AttrPausedBy:
		return &r.PausedBy
	case AttrPausedWhy:
		return &r.PausedWhy
	case AttrRebuildOf:
		return &r.RebuildOf
	case AttrRebuildInto:
		return &r.RebuildInto
	case AttrRebuildAt:
		return &r.RebuildAt
	case AttrRebuildMissed:
		return &r.RebuildMissed
	case AttrRebuildSeal:
		return &r.RebuildSeal
	case AttrRanAt:
		return &r.RanAt
	case AttrCursor:
		return &r.Cursor
	}
	return nil
}
