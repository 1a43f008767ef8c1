package sim

import (
	"context"
	"time"

	"github.com/lullhq/lull/internal/local/fault"
)

// pace is how long a service usually takes: half of a request's time at least, up to all of it.
var pace = map[fault.Service]time.Duration{
	fault.Table: 10 * time.Millisecond, fault.SQS: 20 * time.Millisecond, fault.Bucket: 50 * time.Millisecond,
	fault.States: 50 * time.Millisecond, fault.Search: 150 * time.Millisecond,
}

// Decide is the verdict on one I/O: every one comes through here.
func (w *World) Decide(ctx context.Context, v *fault.Invocation, op fault.Op) fault.Verdict {
	inv := w.live[v.ID]
	verdict := w.verdict(inv, op)
	w.decisions++
	w.timeline.decided(op, verdict)
	w.trace.decision(v, op, verdict)
	switch verdict {
	case fault.FailBefore, fault.Throttle, fault.CrashBefore:
		_ = inv.await(ctx, w.now+w.travel(op.Service)) // no time is too short to die in
	}
	return verdict
}

func (w *World) verdict(inv *invocation, op fault.Op) fault.Verdict {
	r := &w.rates
	if inv.doom > 0 {
		if inv.doom--; inv.doom == 0 {
			return oneOf(w.dice, fault.CrashBefore, fault.CrashAfter)
		}
	}
	for i := range w.outages {
		if o := &w.outages[i]; o.service == op.Service && o.from <= w.now && w.now < o.to {
			return oneOf(w.dice, fault.FailBefore, fault.FailBefore, fault.Throttle)
		}
	}
	p := w.dice.Float64()
	if op.Service == fault.Search && op.Call == "_bulk" {
		if p -= r.SinkThrottle; p < 0 {
			return fault.Throttle
		}
	}
	if p -= r.IOFailBefore; p < 0 {
		return fault.FailBefore
	}
	if p -= r.IOFailAfter; p < 0 {
		return fault.FailAfter
	}
	if p -= r.IOThrottle; p < 0 {
		return fault.Throttle
	}
	return fault.OK
}

// travel is one way of a request.
func (w *World) travel(s fault.Service) time.Duration {
	d := pace[s] / 2
	d = d/2 + w.dice.upTo(d/2)
	if w.rates.Slow > 0 {
		d = time.Duration(float64(d) * w.rates.Slow)
	}
	return d
}

// request is one request of an invocation to a service: it is carried out at one moment and
// answered at another. Once sent, it is carried out whatever becomes of the caller. The error is
// for a caller that heard nothing.
func (v *invocation) request(ctx context.Context, s fault.Service, do func()) error {
	return v.requestLate(ctx, s, 0, do)
}

// requestLate is a request that needs so much longer on its way.
func (v *invocation) requestLate(ctx context.Context, s fault.Service, late time.Duration, do func()) error {
	w := v.w
	if err := ctx.Err(); err != nil {
		return err
	}
	there, back := w.travel(s)+late, w.travel(s)
	if w.dice.chance(w.rates.Stall) {
		switch by := w.dice.upTo(w.rates.StallBy); w.dice.IntN(3) {
		case 0: // the caller pauses after its last look at the clock
			if err := v.pause(by); err != nil {
				return err
			}
		case 1:
			there += by
		default:
			back += by
		}
	}
	w.after(there, do)
	return v.await(ctx, w.now+there+back)
}

// ask is a request whose service may refuse: the error is the service's, or that nothing was heard
// of it.
func (v *invocation) ask(ctx context.Context, s fault.Service, do func() error) error {
	return v.askLate(ctx, s, 0, do)
}

func (v *invocation) askLate(ctx context.Context, s fault.Service, late time.Duration, do func() error) error {
	var answer error
	if err := v.requestLate(ctx, s, late, func() { answer = do() }); err != nil {
		return err
	}
	return answer
}

// pause stops the caller as a platform does: nothing but a kill ends it early.
func (v *invocation) pause(d time.Duration) error {
	return v.await(context.Background(), v.w.now+d)
}
