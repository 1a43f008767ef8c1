package sink

import (
	"context"
	"errors"

	"github.com/lullhq/lull/event"
)

// Mirror is a sink that can write to a second index. index needs no more of a Rebuilder.
type Mirror interface {
	// Into returns the sink of one collection whose documents go to the index of that name, which
	// Create has made. It sends nothing. A write never makes the index: after Drop it answers
	// Configuration. From then on, the sink itself takes an answer of that index for its own: its name
	// may have been switched since it last looked.
	Into(c event.Collection, index string) Sink
}

// Rebuilder is a sink with versions that can fill a new index and put it in place of the one in use
// (design section 15). A sink may be one. Every method may be repeated: what is done already stays
// so.
type Rebuilder interface {
	Mirror

	// Standing returns the index behind the name of a collection. An ErrUnfit says why the index
	// cannot be rebuilt as it is, and what to do.
	Standing(ctx context.Context, c event.Collection) (Standing, error)
	// Create makes an empty index that no reader finds. It has the settings and mapping of n.Like,
	// except for what n replaces.
	Create(ctx context.Context, n NewIndex) error
	// Fill lets the engine copy each document of f.From that f.Into lacks or has in an older
	// version. If a copy is already running, Fill waits for that one. It returns when the copy has
	// ended. If the context ends, the copy keeps running. ErrNoCopy says that the engine cannot
	// copy.
	Fill(ctx context.Context, f Fill) (Filled, error)
	// StopFill stops running copies into an index, and returns when they have ended.
	StopFill(ctx context.Context, into string) error
	// Walk calls f with every document that the index held at the start, several at a time.
	Walk(ctx context.Context, index string, f func([]Versioned) error) error
	// VersionsOf returns the current versions of documents, in the order asked; -1 for a missing
	// document.
	VersionsOf(ctx context.Context, index string, ids []string) ([]int64, error)
	// Transfer writes the current documents of one index to another, unless the other has a version
	// at least as new. It returns one outcome for each, in their order. If the first index lacks a
	// document, its outcome is Applied, too.
	Transfer(ctx context.Context, c event.Collection, from, into string, ids []string) ([]Outcome, error)
	// Erase deletes documents from an index, unless that has a newer version.
	Erase(ctx context.Context, c event.Collection, index string, docs []Versioned) []Outcome
	// Switch moves the name of the collection, and every other name of from, to into. Readers and
	// writers see one step. If from itself has the name, it is deleted in the same step. After the
	// deadline of ctx by the time of day, Switch sends nothing: a timer does not run while a
	// machine is suspended.
	Switch(ctx context.Context, c event.Collection, from, into string) error
	// Settle removes what an index no longer needs after the switch to it.
	Settle(ctx context.Context, index string) error
	// Earlier returns the indices that rebuilds of the collection have left and that have no name,
	// the newest first.
	Earlier(ctx context.Context, c event.Collection) ([]string, error)
	// Drop deletes an index. A missing index counts as deleted.
	Drop(ctx context.Context, index string) error
}

// Standing is the index behind the name of a collection.
type Standing struct {
	Name      string // the name that readers and lull use
	Index     string // the index behind the name
	Alias     bool   // false if the index itself has that name
	Documents int64
}

// NewIndex is an index to create.
type NewIndex struct {
	Collection event.Collection
	Name       string
	Like       string // the index whose settings and mapping it copies
	Mapping    []byte // JSON of the engine, instead of the mapping; nil to copy it
	Settings   []byte // JSON of the engine, merged over the settings; nil to copy them
}

// Fill is an order to copy one index into another.
type Fill struct {
	From, Into string
	Task       string                  // the engine's name of a copy that was started before; empty for none
	Rate       float64                 // documents a second, 0 for no limit
	Started    func(task string) error // called once it is under way
	Progress   func(documents int64)   // called now and then with how many documents Into has
}

// Filled says how a copy ended.
type Filled struct {
	// Refused are documents that the new index did not take. The engine stops at the first ones.
	Refused []RefusedCopy
}

// RefusedCopy is a document that an index does not take.
type RefusedCopy struct {
	ID     string
	Reason string // class and field, never content
}

// Versioned is a document's id in its index, and its version there. For documents of lull the
// version is the fence.
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
