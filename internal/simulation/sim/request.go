// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"time"

	"github.com/lullhq/lull/internal/fault"
)

// pace is how long each service usually takes. A request takes between half of that and all of it.
var pace = map[fault.Service]time.Duration{
	fault.Table: 10 * time.Millisecond, fault.SQS: 20 * time.Millisecond, fault.Bucket: 50 * time.Millisecond,
	fault.States: 50 * time.Millisecond, fault.Search: 150 * time.Millisecond,
}

// Decide returns the verdict on one I/O. Every I/O passes through this method.
func (w *World) Decide(ctx context.Context, v *fault.Invocation, op fault.Op) fault.Verdict {
	inv := w.live[v.ID]
	w.counts.Calls[v.Name]++
	inv.compute(ctx, callCPU)
	verdict := w.verdict(inv, op)
	if v.Failure = w.call(v, op); v.Failure != nil {
		verdict = fault.FailBefore
	}
	w.decisions++
	w.coverage[point{aVerdict, string(op.Service), verdict.String()}]++
	inv.verdict = verdict
	w.timeline.decided(op, verdict)
	w.trace.decision(v, op, verdict)
	switch verdict {
	case fault.FailBefore, fault.Throttle, fault.CrashBefore:
		answer := w.now + w.travel(op.Service) // the answer always takes some time, in which the caller may be killed
		if op.Service == fault.Search {
			answer = max(answer, w.options.Strain.silentUntil(w.now))
		}
		_ = inv.await(ctx, answer)
	}
	return verdict
}

func (w *World) verdict(inv *invocation, op fault.Op) fault.Verdict {
	if inv.doom > 0 {
		if inv.doom--; inv.doom == 0 {
			return oneOf(w.dice, fault.CrashBefore, fault.CrashAfter)
		}
	}
	// A turn that makes outage writes has few I/Os, mostly retries of its read. The usual kill
	// would rarely happen at a write, so there is a separate chance here.
	if inv.open && op.Service == fault.Search && w.strikes("kill of an open turn", w.rates.Kill) {
		return fault.CrashAfter
	}
	for i := range w.outages {
		o := &w.outages[i]
		if o.service == op.Service && o.from <= w.now && w.now < o.to && (o.of == nil || o.of == inv.pipe) {
			return oneOf(w.dice, fault.FailBefore, fault.FailBefore, fault.Throttle)
		}
	}
	return w.rates.Verdict(op, w.dice.Float64())
}

// travel returns a random time for one way of a request.
func (w *World) travel(s fault.Service) time.Duration {
	d := pace[s] / 2
	d = d/2 + w.dice.upTo(d/2)
	if w.rates.Slow > 0 {
		d = time.Duration(float64(d) * w.rates.Slow)
	}
	return d
}

// carry sends the request of an I/O that will be applied. A sink sends its requests itself: see
// engineClient.
func (v *invocation) carry(ctx context.Context, op fault.Op, do func(context.Context) error) error {
	if op.Service == fault.Search {
		return do(ctx)
	}
	late := time.Duration(0)
	if op.Transition.EndsLease() && v.w.strikes("late end of a lease", v.w.rates.LateEnd) {
		late = v.w.dice.upTo(v.w.rates.StallBy)
	}
	r := &request{
		caller: ctx, do: do, fate: fate{coverage: v.w.coverage, op: op.Transition},
	}
	if v.verdict != fault.OK {
		r.silent()
	}
	if err := v.request(ctx, op.Service, late, r.arrive); err != nil {
		r.silent()
		return err
	}
	return r.answer
}

// request is one I/O on its way to a service. It is the context with which the service carries out
// the I/O: the values are the caller's, and nothing ends it, because the caller may be gone.
type request struct {
	fate
	caller context.Context
	do     func(context.Context) error
	answer error
}

// arrive carries out the I/O.
func (r *request) arrive() {
	r.answer = r.do(r)
	r.done(r.answer)
}

// Deadline, Done, Err and Value make the request a context, as [context.WithoutCancel] would.
func (r *request) Deadline() (at time.Time, limited bool) { return at, false }

// Done returns nil.
func (r *request) Done() <-chan struct{} { return nil }

// Err returns nil.
func (r *request) Err() error { return nil }

// Value returns a value of the caller's context.
func (r *request) Value(key any) any { return r.caller.Value(key) }

// carriedOut is the context key of a function. The function is called when a part of a request is
// carried out.
type carriedOut struct{}

// carried calls that function for the n-th part of the request.
func carried(ctx context.Context, n int) {
	if tell, ok := ctx.Value(carriedOut{}).(func(int)); ok {
		tell(n)
	}
}

// request sends one request of an invocation to a service. The argument late delays the arrival of
// the request. The answer arrives at another moment. A sent request is carried out even if the
// caller is killed. The error is for a caller that gets no answer.
func (v *invocation) request(ctx context.Context, s fault.Service, late time.Duration, do func()) error {
	return v.send(ctx, s, late, func() {}, do)
}

// send is like request, and also calls sent when the request is sent.
func (v *invocation) send(ctx context.Context, s fault.Service, late time.Duration, sent, do func()) error {
	w := v.w
	if err := ctx.Err(); err != nil {
		return err
	}
	there, back := w.travel(s)+late, w.travel(s)
	if w.strikes("stall", w.rates.Stall) {
		switch by := w.dice.upTo(w.rates.StallBy); w.dice.IntN(3) {
		case 0: // the caller pauses after it has read the clock
			if err := v.pause(by); err != nil {
				return err
			}
		case 1:
			there += by
		default:
			back += by
		}
	}
	sent()
	w.after(there, do)
	return v.await(ctx, w.now+there+back)
}

// pause stops the caller, as a platform may do. Only a kill ends the pause early.
func (v *invocation) pause(d time.Duration) error {
	return v.await(context.Background(), v.w.now+d)
}
