package config

import (
	"time"

	"github.com/lullhq/lull/internal/seam/flight"
)

// Config is everything lull.yaml may say. The zero value is not usable; start from Default.
//
// A Config is a plain value without locks. Many goroutines may read it if none of them changes it.
type Config struct {
	// Stack is the prefix of every resource name: [a-z][a-z0-9-]{0,31}. Default "lull".
	Stack string `json:"stack"`
	Table Table  `json:"table"`

	// Sources are the adapters from upstream formats to events, by name ([a-z][a-z0-9-]{0,31}).
	// Default: "native" of kind native.
	Sources map[string]Source `json:"sources"`
	// DefaultSource decodes a message that no rule under sources.<name>.match takes. Default: the
	// only source. Required if there are several.
	DefaultSource string `json:"defaultSource"`

	// Collections are options per collection, by name ([a-z0-9][a-z0-9-]{0,31}). If there is an
	// entry, events may name only the collections listed here. Default: none, and events may name
	// any collection. Each then has the settings of debounce and the default sink.
	Collections map[string]Collection `json:"collections"`
	// DefaultCollection is the collection of an event that names none, unless its source names one.
	// Default: the only collection, or "content" if Collections is empty.
	DefaultCollection string `json:"defaultCollection"`

	// Sinks are where documents are written, by name ([a-z][a-z0-9-]{0,31}). Default: "search" of
	// kind bleve.
	Sinks map[string]Sink `json:"sinks"`
	// DefaultSink takes the collections that name no sink. Default: the only sink. Required if
	// there are several.
	DefaultSink string `json:"defaultSink"`

	Debounce  Debounce  `json:"debounce"`
	Receive   Receive   `json:"receive"`
	Index     Index     `json:"index"`
	Queues    Queues    `json:"queues"`
	Retry     Retry     `json:"retry"`
	Lifecycle Lifecycle `json:"lifecycle"`
	Flight    Flight    `json:"flight"`
	Payload   Payload   `json:"payload"`
	Tracing   Tracing   `json:"tracing"`
	Memory    Memory    `json:"memory"`
	Archive   Archive   `json:"archive"`

	// Recovery is how much later than its collection's own window a document is fresh at most, after
	// one lost invocation or flight (promise 4). Default 60s. A sink without versions adds its
	// applyDelay.
	Recovery time.Duration `json:"recovery"`
	// DeadLetters says what happens to a message that will not be tried again. "queue" keeps it.
	// "none" logs, counts and deletes it; with it, the operator accepts that messages are dropped.
	// Default "queue".
	DeadLetters DeadLetters `json:"deadLetters"`
	// CommitFeed gives the table a stream, and sends an event for each commit. Default false.
	CommitFeed bool `json:"commitFeed"`
	// TableOutage says what receive does while the table is unreachable. "closed" lets everything
	// wait. "open" writes to the sink at once, so an older version may replace a newer one. Default
	// "closed".
	TableOutage TableOutage `json:"tableOutage"`
}

// DeadLetters is what happens to dead letters.
type DeadLetters string

// TableOutage is what receive does while the table is unreachable.
type TableOutage string

// The values of Config.DeadLetters and Config.TableOutage.
const (
	DeadLettersQueue DeadLetters = "queue"
	DeadLettersNone  DeadLetters = "none"

	TableOutageClosed TableOutage = "closed"
	TableOutageOpen   TableOutage = "open"
)

// Elsewhere is what happens to an event in another sink's queue.
type Elsewhere string

// The values of Queues.Elsewhere.
const (
	ElsewhereDeadLetter Elsewhere = "deadLetter"
	ElsewhereSkip       Elsewhere = "skip"
)

// Debounce is the timing of a burst. A collection may override each of its settings.
type Debounce struct {
	// Quiet is the window: an event is due Quiet after it was sent. Default 5s, at most 15m.
	Quiet time.Duration `json:"quiet"`
	// MaxWait is the longest time that a document which never stops changing is postponed. It
	// counts from the first event of the burst. Default, and if negative: four times Quiet, at
	// least 30s.
	MaxWait time.Duration `json:"maxWait"`
	// CapGrace is how much later than the cap a version admitted before it may be claimed, so that
	// the newest goes first. Default 10s.
	CapGrace time.Duration `json:"capGrace"`
	// MinInterval is the least time between two committed writes of one document. Default 1s; 0 for
	// no limit.
	MinInterval time.Duration `json:"minInterval"`
	// Leading makes the first event of a burst due at once when its document was not written within
	// Quiet. Default false.
	Leading bool `json:"leading"`
}

// Receive is the function that admits and holds.
type Receive struct {
	// Timeout, Tr, is the function's time-out in whole seconds. Default 6s.
	Timeout time.Duration `json:"timeout"`
}

// Index is the function that claims, writes and commits.
type Index struct {
	// Timeout, Ti, is the function's time-out in whole seconds. Default 10s.
	Timeout time.Duration `json:"timeout"`
	// Guard, G, is how far past its time-out an invocation may still run, and how far clocks may
	// differ. Part of every lease. Default 3s.
	Guard time.Duration `json:"guard"`
	// SinkDeadline is the longest one call to a sink may take. Default 6s.
	SinkDeadline time.Duration `json:"sinkDeadline"`
	// MaxItemsPerTurn bounds the documents that one turn of a flight works on. Default 2,000.
	MaxItemsPerTurn int `json:"maxItemsPerTurn"`
	// WaitingTurns is how often a superseded version wakes for the quiet window before it sleeps to
	// the cap. Default 3.
	WaitingTurns int `json:"waitingTurns"`
}

// Queues are the two ingest queues of a sink and what every queue has in common.
type Queues struct {
	// Live is the lane of ordinary changes. Default 1,000 messages, 3s, no limit.
	Live Lane `json:"live"`
	// Bulk is the lane of resyncs. Default 1,000 messages, 3s, 4.
	Bulk Lane `json:"bulk"`
	// Visibility, V, is how long a received message stays invisible, in whole seconds. Default 40s.
	Visibility time.Duration `json:"visibility"`
	// Retention is how long a queue keeps a message, in whole seconds. Default 7d.
	Retention time.Duration `json:"retention"`
	// DeadLetterRetention is how long the dead-letter queue keeps a message, counted from when it
	// was first sent. Default 14d.
	DeadLetterRetention time.Duration `json:"deadLetterRetention"`
	// BurstSpread is how far apart the events of one burst are sent. Default 2s.
	BurstSpread time.Duration `json:"burstSpread"`
	// ExpectedRate is the traffic of one queue, in messages a second. Default, and where 0: 500, or
	// what MaxInFlight has room for with the windows of the collections.
	ExpectedRate int `json:"expectedRate"`
	// MaxInFlight is how many messages of one queue may be held at once: two thirds of the quota of
	// 120,000. Default 80,000.
	MaxInFlight int `json:"maxInFlight"`
	// Elsewhere is what happens to an event in the queue of a sink that its collection does not
	// have. "deadLetter" loses nothing. "skip" skips and counts it, for a topic or bus that sends
	// every event to the queues of several sinks. Default, and if empty: skip if a collection has
	// several sinks, otherwise deadLetter.
	Elsewhere Elsewhere `json:"elsewhere"`
}

// Lane is the event source mapping of one queue.
type Lane struct {
	// Batch is the most messages of one invocation, 1 to 10,000.
	Batch int `json:"batch"`
	// Window, W, is how long a batch is gathered, in whole seconds, up to 300s.
	Window time.Duration `json:"window"`
	// MaxConcurrency is the most invocations at once, 2 to 1,000. In the live lane, 0 means only
	// the account's limit. Then AWS may poll with two receivers at low traffic instead of five.
	MaxConcurrency int `json:"maxConcurrency"`
}

// Concurrency is how many invocations the lane may have at once where there is room for limit.
func (l Lane) Concurrency(limit int) int {
	if l.MaxConcurrency == 0 {
		return limit
	}
	return min(limit, l.MaxConcurrency)
}

// Retry is when to try again and when to give up.
type Retry struct {
	// MaxRefusals is how often a sink may refuse a document, for no known reason, before it is a
	// dead letter. Default 5.
	MaxRefusals int `json:"maxRefusals"`
	// DeadDeadline is the age at which a message becomes a dead letter. Default 72h.
	DeadDeadline time.Duration `json:"deadDeadline"`
	// BackoffMin and BackoffMax bound the back-off, which has full jitter. Default 1s and 60s.
	BackoffMin time.Duration `json:"backoffMin"`
	BackoffMax time.Duration `json:"backoffMax"`
	// AutoRedrives is how often lull redrives a dead letter with a transient reason without an
	// operator. Default 3; 0 for never.
	AutoRedrives int `json:"autoRedrives"`
}

// Overdue reports whether a message has been tried for longer than DeadDeadline. A redriven or
// scheduled copy has its own SentTimestamp, so its time starts again (docs/design.md, section 6).
// If the queue kept an event back, its time counts from when it was due.
func (r Retry) Overdue(sent, notBefore, now time.Time) bool {
	if notBefore.After(sent) {
		sent = notBefore
	}
	return now.Sub(sent) > r.DeadDeadline
}

// Lifecycle is how long rows live and how often prune runs.
type Lifecycle struct {
	// RowRetention is how long a row is kept after its last commit. Default 30d.
	RowRetention time.Duration `json:"rowRetention"`
	// TTLExtra is how much later than RowRetention the table's own expiry comes, as a backstop.
	// Default 7d.
	TTLExtra time.Duration `json:"ttlExtra"`
	// ProducerLateness is how long after a change its message may still be sent. Default 1d.
	ProducerLateness time.Duration `json:"producerLateness"`
	// RedriveSpan is how long a redriven message may stay in a queue. Default 1d.
	RedriveSpan time.Duration `json:"redriveSpan"`
	// PruneEvery is the interval of prune, in whole minutes. Default 5m.
	PruneEvery time.Duration `json:"pruneEvery"`
	// DriftSample is how many rows of each run of prune are compared with the sink. Default 20; 0
	// for none.
	DriftSample int `json:"driftSample"`
}

// Aged says that a message, first sent then, is older than rows are certain to be kept: only a
// commit in its row can judge it (docs/design.md, sections 5 and 6).
func (l Lifecycle) Aged(firstSent, now time.Time) bool {
	return now.Sub(firstSent) > l.RowRetention-l.ProducerLateness
}

// FlightKind is the kind of state machine that times the flights.
type FlightKind = flight.Kind

// The values of Flight.Kind.
const (
	FlightAuto     FlightKind = "auto" // of the setting only: by the wait, see [Flight.KindFor]
	FlightExpress             = flight.Express
	FlightStandard            = flight.Standard
)

// Flight is the clock: the state machine's executions.
type Flight struct {
	// Kind is "express", "standard", or "auto": each execution by how long it waits. Default "auto".
	Kind FlightKind `json:"kind"`
	// ContinueAfter is the age at which an Express flight continues as a new execution. Default
	// 240s.
	ContinueAfter time.Duration `json:"continueAfter"`
	// AmbiguousRetry is the state machine's first retry, in whole seconds, after an invocation
	// whose outcome is unknown. Default, and if 0: the sink's lease, rounded up.
	AmbiguousRetry time.Duration `json:"ambiguousRetry"`
}

// Payload is what a message may carry and what it may refer to.
type Payload struct {
	// ReferenceAbove is the size above which a payload travels by reference. Default 256KB.
	ReferenceAbove Size `json:"referenceAbove"`
	// EnvelopeDepth is how many envelopes are unwrapped. Default 4.
	EnvelopeDepth int `json:"envelopeDepth"`
	// MissingWait is for an event whose reference points to nothing. It waits this long after it
	// was admitted, for the delete that should follow. Then it is a dead letter. Default 15m.
	MissingWait time.Duration `json:"missingWait"`
	// Allow are the places in S3 that a reference may point to. Default: none.
	Allow []BucketPrefix `json:"allow"`
	// HTTPHosts are the host names that an http reference may point to. Default: none.
	HTTPHosts []string `json:"httpHosts"`
}

// Tracing is what happens to the trace contexts of messages.
type Tracing struct {
	// Endpoint is where an OpenTelemetry collector takes OTLP over HTTP, without /v1/traces, such as
	// http://localhost:4318. Default: none, and nothing is traced.
	Endpoint string `json:"endpoint"`
}

// Archive is where receive keeps the messages that it received, for lull replay.
type Archive struct {
	// Keep is how long, in whole days. Default 0: nothing is kept.
	Keep time.Duration `json:"keep"`
}

// BucketPrefix is a place in S3.
type BucketPrefix struct {
	// Bucket is the bucket's name.
	Bucket string `json:"bucket"`
	// Prefix is what a key must begin with: a folder, which ends in /. Empty means the whole bucket.
	Prefix string `json:"prefix"`
	// Sources names the sources whose events may refer to this place. Empty means every source.
	Sources []string `json:"sources"`
}
