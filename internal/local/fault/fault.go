// Package fault puts a decision in front of every I/O of an invocation: it may go well, fail before
// or after it was applied, be throttled, or be the last thing the invocation does. `lull dev
// --faults` draws the decisions from the standard fault mix (docs/faults.md); the simulator decides
// them one at a time.
//
// An invocation that was killed does not stop its goroutines: from then on nothing that it does has
// any effect, which is what a kill looks like from outside. Its caller discards what it returns.
package fault

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/lullhq/lull/internal/backoff"
	"github.com/lullhq/lull/internal/shard"
)

// Service is who performs an I/O.
type Service string

// The services.
const (
	Table  Service = "table"
	SQS    Service = "queue"
	Bucket Service = "bucket"
	States Service = "states"
	Search Service = "sink"
)

// Op is an I/O about to happen.
type Op struct {
	Service Service
	Call    string // "ADMIT", "Read", "DeleteMessageBatch", "_bulk"
	Doc     shard.DocID
	Flight  string
	Count   int // entries

	Transition shard.Transition // of a row's write; the zero one of every other I/O
}

// Verdict is what happens to an I/O.
type Verdict byte

// The verdicts.
const (
	OK          Verdict = iota
	FailBefore          // an error, and it was not applied; the caller cannot know
	FailAfter           // applied, and the answer is lost
	Throttle            // definitely not applied, and the caller knows
	CrashBefore         // the invocation is killed before it
	CrashAfter          // the invocation is killed right after it was applied
)

// String names the verdict in traces.
func (v Verdict) String() string {
	return [...]string{"ok", "failed before", "failed after", "throttled", "crash before", "crash after"}[v]
}

// Injector decides. Decide may block: the simulator parks every I/O in it.
type Injector interface {
	Decide(ctx context.Context, inv *Invocation, op Op) Verdict
}

// Errors that injected faults look like.
var (
	ErrInjected = errors.New("injected fault: no answer")
	ErrKilled   = backoff.Permanent(errors.New("injected fault: invocation killed"))
)

// Invocation is one run of a function, and whose I/O it is.
type Invocation struct {
	Name string // "receive", "index", "dlq", "prune"
	ID   int64
	inj  Injector
	dead atomic.Bool
}

// NewInvocation begins an invocation.
func NewInvocation(inj Injector, name string, id int64) *Invocation {
	return &Invocation{Name: name, ID: id, inj: inj}
}

// Killed reports whether the invocation was killed: discard what it returned.
func (v *Invocation) Killed() bool { return v.dead.Load() }

// Kill ends the invocation: nothing it does from now on has any effect.
func (v *Invocation) Kill() { v.dead.Store(true) }

// do performs f as the injector decides. throttled is the error that a throttle looks like.
func (v *Invocation) do(ctx context.Context, op Op, throttled error, f func() error) error {
	if v.dead.Load() {
		return ErrKilled
	}
	verdict := v.inj.Decide(ctx, v, op)
	if v.dead.Load() { // killed while it was parked
		return ErrKilled
	}
	switch verdict {
	case FailBefore:
		return ErrInjected
	case FailAfter:
		_ = f() // its answer is what is lost
		return ErrInjected
	case Throttle:
		return throttled
	case CrashBefore:
		v.Kill()
		return ErrKilled
	case CrashAfter:
		_ = f() // nobody is left to read the answer
		v.Kill()
		return ErrKilled
	}
	return f()
}
