// SPDX-License-Identifier: Apache-2.0

package config

import (
	"time"

	"github.com/lullhq/lull/internal/seam/flight"
)

// Config is all settings that lull.yaml may contain. The zero value is not usable; start from
// Default.
//
// A Config is a plain value without locks. Many goroutines may read it if none of them changes it.
type Config struct {
	// Stack is the prefix of every resource name: [a-z][a-z0-9-]{0,31}. Default "lull".
	Stack string `json:"stack"`
	// Parts spreads the documents over several stacks.
	Parts Parts `json:"parts"`
	Table Table `json:"table"`

	// Sources are the adapters from upstream formats to events, by name ([a-z][a-z0-9-]{0,31}).
	// Default: "native" of kind native.
	Sources map[string]Source `json:"sources"`
	// DefaultSource decodes a message that no rule under sources.<name>.match takes. Default: the
	// only source. Required if there are several.
	DefaultSource string `json:"defaultSource"`

	// Collections are the settings of each collection, by name ([a-z0-9][a-z0-9-]{0,31}). If there
	// is an entry, events may name only the collections listed here. By default there is no entry,
	// and events may name any collection. Each collection then has the settings of debounce and the
	// default sink.
	Collections map[string]Collection `json:"collections"`
	// DefaultCollection is the collection of an event if neither the event nor its source names a
	// collection. Default: the only collection, or "content" if Collections is empty.
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
	Canary    Canary    `json:"canary"`

	// Recovery is the longest additional delay of a document after one lost invocation or flight.
	// It is counted from the end of the collection's own window (promise 4). Default 60s. A sink
	// without versions adds its applyDelay.
	Recovery time.Duration `json:"recovery"`
	// DeadLetters says what happens to a message that will not be tried again. "queue" keeps it.
	// "none" logs, counts and deletes it; with it, the operator accepts that messages are dropped.
	// Default "queue".
	DeadLetters DeadLetters `json:"deadLetters"`
	// CommitFeed adds a stream to the table, and lull sends an event for each commit. Default
	// false.
	CommitFeed bool `json:"commitFeed"`
	// SearchableCalls gives the stack a URL that says whether a search finds a version of a document
	// (docs/searchable.md). It is how many requests the URL answers at once. The default nil means
	// that there is no URL.
	SearchableCalls *int `json:"searchableCalls"`
	// TableOutage says what receive does while the table is unreachable. With "closed", all
	// messages wait. With "open", receive writes to the sink at once, so an older version may
	// replace a newer one. Default "closed".
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

// Elsewhere is what happens to an event in the queue of a sink that its collection does not have.
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
	// MaxWait is the longest time for which lull postpones a document that never stops changing. It
	// counts from the first event of the burst. The default is four times Quiet and at least 30s; a
	// negative value means the default.
	MaxWait time.Duration `json:"maxWait"`
	// CapGrace is how long after the cap an older version of the burst must still wait, so that the
	// newest version is written first. Default 10s.
	CapGrace time.Duration `json:"capGrace"`
	// MinInterval is the least time between two committed writes of one document. Default 1s; 0 for
	// no limit.
	MinInterval time.Duration `json:"minInterval"`
	// Leading makes the first event of a burst due at once if the document was not written during
	// the last Quiet. Default false.
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
	// Guard, G, is a margin in every lease. It covers an invocation that runs past its time-out,
	// and clocks that differ. Default 3s.
	Guard time.Duration `json:"guard"`
	// SinkDeadline is the longest one call to a sink may take. If the answer to a request takes more
	// than half of it, lull sends fewer documents. Default 6s.
	SinkDeadline time.Duration `json:"sinkDeadline"`
	// MaxItemsPerTurn bounds the documents that one turn of a flight works on. Default 2,000.
	MaxItemsPerTurn int `json:"maxItemsPerTurn"`
	// WaitingTurns is how many quiet windows a superseded version waits for. After that, it waits
	// until the cap. Default 3.
	WaitingTurns int `json:"waitingTurns"`
}

// Queues are the two ingest queues of a sink and what every queue has in common.
type Queues struct {
	// Live is the lane of ordinary changes. Default: batches of 1,000 messages, a window of 3s, and
	// no limit of concurrency.
	Live Lane `json:"live"`
	// Bulk is the lane of resyncs. Default: batches of 1,000 messages, a window of 3s, and 4
	// invocations at once.
	Bulk Lane `json:"bulk"`
	// Visibility, V, is how long a received message stays invisible, in whole seconds. Default 40s.
	Visibility time.Duration `json:"visibility"`
	// Retention is how long a queue keeps a message, in whole seconds. Default 7d.
	Retention time.Duration `json:"retention"`
	// DeadLetterRetention is how long the dead-letter queue keeps a message, counted from when the
	// message was first sent. Default 14d.
	DeadLetterRetention time.Duration `json:"deadLetterRetention"`
	// BurstSpread is how far apart the events of one burst are sent. Default 2s.
	BurstSpread time.Duration `json:"burstSpread"`
	// ExpectedRate is the traffic of one queue, in messages a second. The default, also for 0, is
	// 500. It is less if MaxInFlight and the windows of the collections do not allow 500.
	ExpectedRate int `json:"expectedRate"`
	// MaxInFlight is how many messages of one queue may be held at once: two thirds of the quota of
	// 120,000. Default 80,000.
	MaxInFlight int `json:"maxInFlight"`
	// Elsewhere is what happens to an event in the queue of a sink that its collection does not
	// have. With "deadLetter", the event becomes a dead letter. With "skip", the event is counted
	// and skipped: that suits a topic or bus that sends every event to the queues of several sinks.
	// The default, also for "", is skip if a collection has several sinks, otherwise deadLetter.
	Elsewhere Elsewhere `json:"elsewhere"`
}

// Lane is the event source mapping of one queue.
type Lane struct {
	// Batch is the most messages of one invocation, 1 to 10,000.
	Batch int `json:"batch"`
	// Window, W, is how long a batch is gathered, in whole seconds, up to 300s.
	Window time.Duration `json:"window"`
	// MaxConcurrency is the most invocations at once, 2 to 1,000. In the live lane, 0 means that
	// only the account's limit applies. AWS may then poll with two receivers at low traffic,
	// instead of five.
	MaxConcurrency int `json:"maxConcurrency"`
}

// Concurrency is how many invocations the lane may have at once if the account allows limit.
func (l Lane) Concurrency(limit int) int {
	if l.MaxConcurrency == 0 {
		return limit
	}
	return min(limit, l.MaxConcurrency)
}

// Retry says when lull retries, and when a message becomes a dead letter.
type Retry struct {
	// MaxRefusals is how often a sink may refuse a document for an unknown reason before the
	// message becomes a dead letter. Default 5.
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
// For an event that was scheduled for later, the time counts from notBefore.
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
	// TTLExtra is how long after RowRetention the table's own TTL deletes a row, if prune has not
	// deleted the row. Default 7d.
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

// Aged reports whether a message is so old that lull may have deleted its document's row. Only a
// commit in the row can then show whether the message is stale (docs/design.md, sections 5 and 6).
func (l Lifecycle) Aged(firstSent, now time.Time) bool {
	return now.Sub(firstSent) > l.RowRetention-l.ProducerLateness
}

// FlightKind is the kind of state machine that times the flights.
type FlightKind = flight.Kind

// The values of Flight.Kind.
const (
	FlightAuto     FlightKind = "auto" // only in the setting: the wait decides, see [Flight.KindFor]
	FlightExpress             = flight.Express
	FlightStandard            = flight.Standard
)

// Flight is the settings of the state machine, whose executions are the timers of flights.
type Flight struct {
	// Kind is "express", "standard" or "auto". With "auto", the kind of each execution depends on
	// how long it waits. Default "auto".
	Kind FlightKind `json:"kind"`
	// ContinueAfter is the age at which an Express flight continues as a new execution. Default
	// 240s.
	ContinueAfter time.Duration `json:"continueAfter"`
	// AmbiguousRetry is the wait before the state machine's first retry after an invocation whose
	// outcome is unknown. It is in whole seconds. The default, also for 0, is the sink's lease,
	// rounded up.
	AmbiguousRetry time.Duration `json:"ambiguousRetry"`
}

// Payload is what a message may carry and what it may refer to.
type Payload struct {
	// ReferenceAbove is the size above which a message carries a reference instead of the payload.
	// Default 256KB.
	ReferenceAbove Size `json:"referenceAbove"`
	// EnvelopeDepth is how many envelopes are unwrapped. Default 4.
	EnvelopeDepth int `json:"envelopeDepth"`
	// MissingWait is how long an event waits, after it was admitted, if its reference points to
	// nothing. A delete of the document should follow in this time. Otherwise the event becomes a
	// dead letter. Default 15m.
	MissingWait time.Duration `json:"missingWait"`
	// Allow lists the places in S3 that a reference may point to. By default it lists none.
	Allow []BucketPrefix `json:"allow"`
	// HTTPHosts lists the host names that an http reference may point to. By default it lists none.
	HTTPHosts []string `json:"httpHosts"`
}

// Tracing is what happens to the trace contexts of messages.
type Tracing struct {
	// Endpoint is the address of an OpenTelemetry collector that accepts OTLP over HTTP, without
	// /v1/traces, such as http://localhost:4318. By default it is empty, and nothing is traced.
	Endpoint string `json:"endpoint"`
}

// Archive is where receive keeps the messages that it received, for lull replay.
type Archive struct {
	// Keep is how long receive keeps a message in the archive, in whole days. The default 0 means
	// that nothing is kept.
	Keep time.Duration `json:"keep"`
}

// BucketPrefix is a place in S3.
type BucketPrefix struct {
	// Bucket is the bucket's name.
	Bucket string `json:"bucket"`
	// Prefix is the folder that a key must begin with; it ends in /. If Prefix is empty, the place
	// is the whole bucket.
	Prefix string `json:"prefix"`
	// Sources names the sources whose events may refer to this place. If it is empty, the events of
	// every source may.
	Sources []string `json:"sources"`
}
