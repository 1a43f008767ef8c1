package shard

import "time"

// SchemaVersion is the newest row schema this code understands. A row without the attribute has
// schema 1. A row with a newer one is left alone, by condition.
const SchemaVersion = 1

// Micros is a time in microseconds since 1970, by the writer's clock; 0 is none.
type Micros int64

// MicrosOf cuts a time to microseconds; the zero time is 0.
func MicrosOf(t time.Time) Micros {
	if t.IsZero() {
		return 0
	}
	return Micros(t.UnixMicro())
}

// Time is the instant in UTC; the zero time for 0.
func (m Micros) Time() time.Time {
	if m == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(m)).UTC()
}

// Add moves the instant.
func (m Micros) Add(d time.Duration) Micros { return m + Micros(d.Microseconds()) }

// Sub is the time from n to m.
func (m Micros) Sub(n Micros) time.Duration { return time.Duration(m-n) * time.Microsecond }

// Operation is what a version does to its document.
type Operation string

// The operations that a row records as committed_op.
const (
	Put    Operation = "put"
	Delete Operation = "delete"
)

// Token is the owner of a lease: random and fresh for every claim, never an invocation's, flight's
// or execution's id.
type Token string

// Fence is the time of a claim in microseconds: the external version that sinks with versions get.
// It grows with every applied write of a document.
type Fence int64

// Row is the item of one document in the table `shards`, and the only arbiter of what is new. Zero
// fields are absent attributes. An absent Pending or Claimed means the same as Committed. A Row is
// a value: copies do not share state.
//
// Rows that are not documents (see [DocID.IsDocument]) use the last group of fields only, besides
// Owner and LeaseUntil.
type Row struct {
	Doc          DocID
	Schema       int64
	VersionClass Class
	Pending      OrderKey // the newest key admitted
	Committed    OrderKey // the newest key written to the sink
	CommittedOp  Operation
	Claimed      OrderKey // the highest key that any claim may have brought to the sink
	ClaimedWas   OrderKey // Claimed before this claim, Lowest for none
	Dead         OrderKey // a dead letter with this key is stored
	BurstStart   Micros   // first admission of the burst that waits
	Flight       string   // the flight that admitted Pending: a hint for people
	Owner        Token    // who holds, or held, the lease
	LeaseUntil   Micros
	LastWrite    Micros  // the time of the last committed claim
	Attempts     int64   // claims without an answer
	Refusals     int64   // times the sink refused this very document
	Content      Content // recognises the bytes of the committed version; "" where they may not be in the sink
	LastError    string  // class, status and field: never content; at most 200 bytes
	ExpiresAt    int64   // TTL, seconds

	OpenUntil  Micros // health row: nothing is claimed before
	Level      int64  // health row: how often it opened in a row
	ProbeUntil Micros // health row: somebody probes until then
	Rate       int64  // health row: documents a second after the last cut, in thousandths
	RateTop    int64  // health row: the same before it; 0 where what the sink takes is not known yet
	RateAt     Micros // health row: when that was
	PaidUntil  Micros // health row: the time up to which documents are spoken for
	Paid       int64  // health row: how much of the time from RateAt on was handed out, in microseconds
	SentUntil  Micros // health row: up to when the documents that went fill the time, at the ceiling
	PausedAt   Micros // health row: an operator paused the sink then; 0 where nobody has
	PausedBy   string // health row: who; at most 200 bytes
	PausedWhy  string // health row: why; at most 200 bytes
	// Health row, empty where nothing is rebuilt: the collection, the new index, when that was
	// announced, how many writes the new index missed, and since when none may be missed.
	RebuildOf     string
	RebuildInto   string
	RebuildAt     Micros
	RebuildMissed int64
	RebuildSeal   Micros
	RanAt         Micros // run row: the last start; object row: the last change
	Cursor        string // run row, object row: where it goes on
}

// Exists reports whether the row holds anything: an item that was written once has some attribute
// besides its key.
func (r Row) Exists() bool { return r != (Row{Doc: r.Doc}) }

// Foreign reports a row of a newer schema: hands off.
func (r Row) Foreign() bool { return r.Schema > SchemaVersion }

// Leased reports whether somebody may be writing at now. The bound belongs to the lease: CLAIM
// needs lease_until < now.
func (r Row) Leased(now Micros) bool { return r.Owner != "" && r.LeaseUntil >= now }

// Attr names an attribute of the item, spelt as in the table.
type Attr string

// The attributes of design section 5.
const (
	AttrSchema        Attr = "schema"
	AttrVersionClass  Attr = "version_class"
	AttrPending       Attr = "pending"
	AttrCommitted     Attr = "committed"
	AttrCommittedOp   Attr = "committed_op"
	AttrClaimed       Attr = "claimed"
	AttrClaimedWas    Attr = "claimed_was"
	AttrDead          Attr = "dead"
	AttrBurstStart    Attr = "burst_start"
	AttrFlight        Attr = "flight"
	AttrOwner         Attr = "owner"
	AttrLeaseUntil    Attr = "lease_until"
	AttrLastWrite     Attr = "last_write"
	AttrAttempts      Attr = "attempts"
	AttrRefusals      Attr = "refusals"
	AttrContent       Attr = "c" // short: a settled row with a dead letter's mark has at most 200 bytes
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

// Attrs lists every attribute but the key, in the order of [Row].
func Attrs() (names []Attr) {
	for _, a := range new(Row).attributes() {
		names = append(names, a.name)
	}
	return names
}

// ValueKind is the DynamoDB type of a value.
type ValueKind byte

// Order keys are binary, names are strings, times and counts numbers.
const (
	KindBinary ValueKind = 'B'
	KindString ValueKind = 'S'
	KindNumber ValueKind = 'N'
)

// Value is an attribute's value. Compare values of one kind only.
type Value struct {
	Kind ValueKind
	Text string // B and S
	Num  int64  // N
}

func keyValue(k OrderKey) Value { return Value{Kind: KindBinary, Text: string(k)} }
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

// Get is the value of an attribute and whether it is there.
func (r *Row) Get(a Attr) (Value, bool) {
	switch p := r.field(a).(type) {
	case *OrderKey:
		return keyValue(*p), *p != ""
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

// Set puts a value into the attribute's field; the zero Value takes it away. A value of the wrong
// kind is ignored and reported as false.
func (r *Row) Set(a Attr, v Value) bool {
	kind := KindString
	switch p := r.field(a).(type) {
	case *OrderKey:
		*p, kind = OrderKey(v.Text), KindBinary
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

func (r *Row) field(a Attr) any {
	for _, f := range r.attributes() {
		if f.name == a {
			return f.field
		}
	}
	return nil
}

// attribute is one of a row: its name in the table, and where it is kept.
type attribute struct {
	name  Attr
	field any
}

// attributes are all but the key, in the order of [Row].
func (r *Row) attributes() [37]attribute {
	return [...]attribute{
		{AttrSchema, &r.Schema},
		{AttrVersionClass, &r.VersionClass},
		{AttrPending, &r.Pending},
		{AttrCommitted, &r.Committed},
		{AttrCommittedOp, &r.CommittedOp},
		{AttrClaimed, &r.Claimed},
		{AttrClaimedWas, &r.ClaimedWas},
		{AttrDead, &r.Dead},
		{AttrBurstStart, &r.BurstStart},
		{AttrFlight, &r.Flight},
		{AttrOwner, &r.Owner},
		{AttrLeaseUntil, &r.LeaseUntil},
		{AttrLastWrite, &r.LastWrite},
		{AttrAttempts, &r.Attempts},
		{AttrRefusals, &r.Refusals},
		{AttrContent, &r.Content},
		{AttrLastError, &r.LastError},
		{AttrExpiresAt, &r.ExpiresAt},
		{AttrOpenUntil, &r.OpenUntil},
		{AttrLevel, &r.Level},
		{AttrProbeUntil, &r.ProbeUntil},
		{AttrRate, &r.Rate},
		{AttrRateTop, &r.RateTop},
		{AttrRateAt, &r.RateAt},
		{AttrPaidUntil, &r.PaidUntil},
		{AttrPaid, &r.Paid},
		{AttrSentUntil, &r.SentUntil},
		{AttrPausedAt, &r.PausedAt},
		{AttrPausedBy, &r.PausedBy},
		{AttrPausedWhy, &r.PausedWhy},
		{AttrRebuildOf, &r.RebuildOf},
		{AttrRebuildInto, &r.RebuildInto},
		{AttrRebuildAt, &r.RebuildAt},
		{AttrRebuildMissed, &r.RebuildMissed},
		{AttrRebuildSeal, &r.RebuildSeal},
		{AttrRanAt, &r.RanAt},
		{AttrCursor, &r.Cursor},
	}
}
