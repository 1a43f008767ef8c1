// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"context"
	"errors"

	"github.com/lullhq/lull/event"
)

// Mirror is a sink that can also write to a second index. The index function uses only this part of
// a Rebuilder.
type Mirror interface {
	// Into returns a sink for one collection that writes to the named index, which Create has made.
	// Into sends nothing. A write never creates the index: after Drop, the returned sink answers
	// Configuration. After Into, the original sink also accepts an answer that comes from the named
	// index. The reason: the collection's name may have been switched to that index since the last
	// look.
	Into(c event.Collection, index string) Sink
}

// Rebuilder is a sink with versions that can fill a new index and replace the index in use with it
// (design section 15). A sink need not implement Rebuilder. Every method may be called again: work
// that is already done stays done.
type Rebuilder interface {
	Mirror

	// Standing returns the index behind the name of a collection. If Standing returns ErrUnfit, the
	// error's text says why the index cannot be rebuilt as it is, and what to do.
	Standing(ctx context.Context, c event.Collection) (Standing, error)
	// Create makes an empty index that no reader finds. The index has the settings and the mapping
	// of the index n.Like, unless n replaces them.
	Create(ctx context.Context, n NewIndex) error
	// Fill lets the engine copy each document of f.From that f.Into lacks or has in an older
	// version. If a copy is already running, Fill waits for that copy. Fill returns when the copy
	// has ended. If the context ends, the copy keeps running. ErrNoCopy says that the engine cannot
	// copy.
	Fill(ctx context.Context, f Fill) (Filled, error)
	// StopFill stops running copies into an index, and returns when the copies have ended.
	StopFill(ctx context.Context, into string) error
	// Walk returns the next documents of an index, and the place after them. The first place is
	// empty, and so is the place after the last page. The pages together have every document that
	// the index contained when the walk began. A place can be used once. After an error, or after
	// an answer that was lost, the walk has to begin again.
	Walk(ctx context.Context, index, place string) (docs []Versioned, next string, err error)
	// VersionsOf returns the current versions of documents, in the order of ids. The version of a
	// missing document is -1.
	VersionsOf(ctx context.Context, index string, ids []string) ([]int64, error)
	// Transfer writes the current documents of one index to another, unless the other has a version
	// at least as new. Transfer returns one outcome for each id, in the order of ids. If the first
	// index lacks a document, the outcome of that document is Applied.
	Transfer(ctx context.Context, c event.Collection, from, into string, ids []string) ([]Outcome, error)
	// Erase deletes documents from an index. If the index has a newer version of a document, Erase
	// does not delete that document.
	Erase(ctx context.Context, c event.Collection, index string, docs []Versioned) []Outcome
	// Switch moves the name of the collection, and every other name of from, to into. Readers and
	// writers see one step. If from itself has the name of the collection, from is deleted in the
	// same step. Switch sends nothing if the wall clock is past the deadline of ctx. The timer of
	// ctx is not enough, because it does not run while a machine is suspended.
	Switch(ctx context.Context, c event.Collection, from, into string) error
	// Settle removes what an index no longer needs after the switch to it.
	Settle(ctx context.Context, index string) error
	// Earlier returns the indices that earlier rebuilds of the collection have left behind and that
	// no alias names. The newest comes first.
	Earlier(ctx context.Context, c event.Collection) ([]string, error)
	// Drop deletes an index. A missing index counts as deleted.
	Drop(ctx context.Context, index string) error
}

// Standing describes the index behind the name of a collection.
type Standing struct {
	Name      string // the name that readers and lull use
	Index     string // the index behind the name
	Alias     bool   // false if the index itself has that name
	Documents int64
}

// NewIndex describes an index to create.
type NewIndex struct {
	Collection event.Collection
	Name       string
	Like       string // the index whose settings and mapping it copies
	Mapping    []byte // JSON in the engine's syntax, which replaces the mapping; nil to copy the mapping
	Settings   []byte // JSON in the engine's syntax, merged over the settings; nil to copy the settings
}

// Fill is an order to copy one index into another.
type Fill struct {
	From, Into string
	Task       string                  // the engine's name of an earlier copy; empty if no copy was started
	Rate       float64                 // documents a second, 0 for no limit
	Started    func(task string) error // called once the copy is running
	Progress   func(documents int64)   // called from time to time with the number of documents in Into
}

// Filled says how a copy ended.
type Filled struct {
	// Refused are documents that the new index did not accept. The engine stops after the first
	// such documents.
	Refused []RefusedCopy
}

// RefusedCopy is a document that the new index does not accept.
type RefusedCopy struct {
	ID     string
	Reason string // class and field, never content
}

// Versioned is the id of a document in an index, and its version in that index. For documents that
// lull wrote, the version is the fence.
type Versioned struct {
	ID      string
	Version int64
}

var (
	// ErrUnfit says that a collection's index cannot be rebuilt as it is.
	ErrUnfit = errors.New("cannot be rebuilt")
	// ErrNoCopy says that an engine cannot copy an index itself, or does not allow it.
	ErrNoCopy = errors.New("the engine cannot copy an index")
)
