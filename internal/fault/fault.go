// SPDX-License-Identifier: Apache-2.0

// Package fault injects failures. An injector decides about every I/O of an invocation. The I/O may
// succeed, fail before or after it was applied, or be throttled. The injector may also kill the
// invocation at the I/O. `lull dev --faults` takes random decisions from the standard mix
// (docs/faults.md). The simulator decides about one I/O at a time.
//
// The goroutines of a killed invocation continue, but their I/O has no effect. From outside, that
// looks like a real kill. The caller discards the result of the invocation.
package fault

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// Service is the service to which an I/O goes.
type Service string

// The services to which an I/O may go.
const (
	Table  Service = "table"
	SQS    Service = "queue"
	Bucket Service = "bucket"
	States Service = "states"
	Search Service = "sink"
)

// Op is an I/O that is about to happen.
type Op struct {
	Service Service
	Call    string // "ADMIT", "Read", "DeleteMessageBatch", Bulk
	Doc     shard.DocID
	Flight  string
	Queue   string // the name of the queue, if known
	Count   int    // how many rows, messages, objects or documents the call carries

	Transition shard.Transition // the transition of a row write; zero for every other I/O
}

// Bulk is the call that writes documents to a sink. Every other call to a sink reads or asks.
const Bulk = "_bulk"

// Writes reports whether the I/O writes documents to a sink.
func (o Op) Writes() bool { return o.Service == Search && o.Call == Bulk }

// Verdict is the injector's decision about an I/O.
type Verdict byte

// The possible verdicts.
const (
	OK          Verdict = iota
	FailBefore          // the I/O fails and was not applied, but the caller cannot know that
	FailAfter           // the I/O was applied, and its answer is lost
	Throttle            // the I/O was not applied, and the caller knows that
	CrashBefore         // the invocation is killed before the I/O
	CrashAfter          // the invocation is killed right after the I/O was applied
)

// String names the verdict in traces.
func (v Verdict) String() string {
	return [...]string{"ok", "failed before", "failed after", "throttled", "crash before", "crash after"}[v]
}

// Injector decides about each I/O. Decide may block. The simulator keeps every I/O waiting in
// Decide.
type Injector interface {
	Decide(ctx context.Context, inv *Invocation, op Op) Verdict
}

// Errors of injected failures.
var (
	ErrInjected = errors.New("injected failure: no answer")
	ErrKilled   = backoff.Permanent(errors.New("injected failure: invocation killed"))

	errThrottled = errors.New("injected failure: throttled")
)

// Invocation is one run of a function. Every I/O belongs to an invocation.
type Invocation struct {
	Name string // "receive", "index", "dlq", "prune"
	ID   int64

	// Carry, if set, calls f, which applies an I/O. The simulator uses it to send the I/O as a
	// request with a delay. Carry may call f after the caller has stopped waiting. If Carry is nil,
	// f is called at once.
	Carry func(ctx context.Context, op Op, f func(context.Context) error) error

	// Failure is the error of a failed I/O. nil means ErrInjected.
	Failure error

	// Refuses, if set, says which documents a sink refuses for good.
	Refuses func(sink.Op) bool

	inj  Injector
	dead atomic.Bool
}

// NewInvocation starts an invocation.
func NewInvocation(inj Injector, name string, id int64) *Invocation {
	return &Invocation{Name: name, ID: id, inj: inj}
}

// Killed reports whether the invocation was killed. The caller must then discard its result.
func (v *Invocation) Killed() bool { return v.dead.Load() }

// Kill ends the invocation. Later I/O of the invocation has no effect.
func (v *Invocation) Kill() { v.dead.Store(true) }

// Do performs an I/O as the injector decides, if this package has no method for the I/O's seam.
func (v *Invocation) Do(ctx context.Context, op Op, f func(context.Context) error) error {
	verdict, err := v.decide(ctx, op)
	if err != nil {
		return err
	}
	return v.outcome(verdict, v.carry(ctx, op, f))
}

// decide asks the injector about an I/O. The error says that the I/O must not be applied.
func (v *Invocation) decide(ctx context.Context, op Op) (Verdict, error) {
	if v.dead.Load() {
		return OK, ErrKilled
	}
	verdict := v.inj.Decide(ctx, v, op)
	if v.dead.Load() { // killed while the I/O waited in Decide
		return verdict, ErrKilled
	}
	switch verdict {
	case FailBefore:
		return verdict, v.failure()
	case Throttle:
		if op.Service == Table {
			return verdict, shard.ErrThrottled
		}
		return verdict, errThrottled
	case CrashBefore:
		v.Kill()
		return verdict, ErrKilled
	}
	return verdict, nil
}

// outcome returns the error of an I/O that was applied with the error err.
func (v *Invocation) outcome(verdict Verdict, err error) error {
	switch verdict {
	case FailAfter:
		return v.failure()
	case CrashAfter:
		v.Kill()
		return ErrKilled
	}
	return err
}

func (v *Invocation) failure() error {
	if v.Failure != nil {
		return v.Failure
	}
	return ErrInjected
}

func (v *Invocation) carry(ctx context.Context, op Op, f func(context.Context) error) error {
	if v.Carry == nil {
		return f(ctx)
	}
	return v.Carry(ctx, op, f)
}
