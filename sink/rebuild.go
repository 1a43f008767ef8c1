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

	// Standing says what the name of a collection's index stands for. An error that is ErrUnfit says
	// why it cannot be rebuilt as it is, and what to do.
	Standing(ctx context.Context, c event.Collection) (Standing, error)
	// Create makes an empty index that no reader finds. Its settings and mapping are those of
	// n.Like, with what n has in their place.
	Create(ctx context.Context, n NewIndex) error
	// Fill copies every document of f.From that f.Into does not have, or has in an older version, by
	// the engine itself. It goes on with a copy that is under way, and returns once it has ended. A
	// context that ends leaves it under way. ErrNoCopy says that the engine cannot do it.
	Fill(ctx context.Context, f Fill) (Filled, error)
	// StopFill ends copies into an index that are under way, and returns when they have ended.
	StopFill(ctx context.Context, into string) error
	// Walk calls f with every document that the index held when it began, some at a time.
	Walk(ctx context.Context, index string, f func([]Versioned) error) error
	// VersionsOf are those of documents as they are now, in the order asked; -1 for one that is missing.
	VersionsOf(ctx context.Context, index string, ids []string) ([]int64, error)
	// Transfer writes documents as they are now in one index to the other, unless that has them as
	// new. One outcome for each, in their order: Applied also for one that the first lacks.
	Transfer(ctx context.Context, c event.Collection, from, into string, ids []string) ([]Outcome, error)
	// Erase deletes documents from an index, unless that has a newer version.
	Erase(ctx context.Context, c event.Collection, index string, docs []Versioned) []Outcome
	// Switch lets the name of the collection, and every other name of from, stand for into. It is one
	// step for readers and writers. Where from has the name itself it is deleted in the same step.
	Switch(ctx context.Context, c event.Collection, from, into string) error
	// Settle takes away what an index that was switched to needs no more.
	Settle(ctx context.Context, index string) error
	// Earlier names the indices that rebuilds of the collection have left, and that no name stands
	// for, the newest first.
	Earlier(ctx context.Context, c event.Collection) ([]string, error)
	// Drop deletes an index. One that is missing is deleted already.
	Drop(ctx context.Context, index string) error
}

// Standing is what the name of a collection's index stands for.
type Standing struct {
	Name      string // that readers and lull use
	Index     string // the index that it stands for
	Alias     bool   // false where the index has that name itself
	Documents int64
}

// NewIndex is an index to create.
type NewIndex struct {
	Collection event.Collection
	Name       string
	Like       string // the index whose settings and mapping it has
	Mapping    []byte // JSON of the engine, in place of the mapping; nil for the same
	Settings   []byte // JSON of the engine, over the settings; nil for the same
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

// Versioned is a document's id in its index, and its version there: the fence, of what lull wrote.
type Versioned struct {
	ID      string
	Version int64
}

var (
	// ErrUnfit says that a collection's index cannot be rebuilt as it is.
	ErrUnfit = errors.New("cannot be rebuilt as it is")
	// ErrNoCopy says that an engine cannot copy an index by itself, or does not let us.
	ErrNoCopy = errors.New("the engine cannot copy an index")
)
