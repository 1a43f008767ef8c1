// SPDX-License-Identifier: Apache-2.0

package event

import (
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

// The types below belong to lull's protocol. Internal packages define them, so that these packages
// may change without notice. A format or a sink uses the aliases of this package.
type (
	// DocID is the id of a document: "<collection>#<id>".
	DocID = shard.DocID
	// Collection is the name of a collection.
	Collection = shard.Collection
	// Operation is put or delete.
	Operation = shard.Operation
	// Class says how the versions of a source are compared.
	Class = shard.Class
	// OrderKey orders the events of one document: the greater key is the newer event.
	OrderKey = shard.OrderKey
	// Run is the ULID of a resync run. The zero Run means that there is no run.
	Run = shard.Run
	// Fence is the external version of a write, which a sink compares with that of its document.
	Fence = shard.Fence
	// Micros is a time in microseconds since 1970.
	Micros = shard.Micros
	// Message is a message as SQS delivered it.
	Message = queue.Message
	// Attribute is an attribute of a message.
	Attribute = queue.Attribute
	// Reason says why an event becomes a dead letter.
	Reason = deadletter.Reason
)

// The operations.
const (
	Put    = shard.Put
	Delete = shard.Delete
)

// The classes of versions. docs/events.md says how the versions of each class are compared.
const (
	ClassInt  = shard.ClassInt
	ClassSeq  = shard.ClassSeq
	ClassTime = shard.ClassTime
	ClassLSN  = shard.ClassLSN
	ClassLex  = shard.ClassLex
)

// The reasons that a format may use.
const (
	Undecodable    = deadletter.Undecodable
	Contract       = deadletter.Contract
	VersionInvalid = deadletter.VersionInvalid
	ClassMismatch  = deadletter.ClassMismatch
	Payload        = deadletter.Payload
	StaleSource    = deadletter.StaleSource
)

// Limits of a document's id and of a message, in bytes.
const (
	MaxIDBytes   = shard.MaxIDBytes
	MaxBodyBytes = queue.MaxBytes
)

// ParseClass parses the name of a class in the settings: int, seq, time, lsn, lex.
func ParseClass(name string) (Class, error) { return shard.ParseClass(name) }
