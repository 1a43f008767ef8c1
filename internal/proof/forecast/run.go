package forecast

import (
	"context"
	"time"

	"github.com/lullhq/lull/internal/proof/sim"
)

// An event source mapping of SQS begins with five pollers; more come under load.
const (
	PollersAtFirst = 5
	maxPollers     = 1000 // the lane's concurrency bounds them
)

// Run simulates, with as many pollers under load as a lane may have. It ends early with the
// context's error. progress hears a few times how much of it is done, from 0 to 1; nil for nobody.
func Run(ctx context.Context, o sim.Options, progress func(share float64)) (sim.Result, error) {
	o.MostPollers = maxPollers
	told := time.Duration(-1)
	o.GoOn = func(now time.Duration) bool {
		// After the events comes the time that the last of them take: nobody knows how long that is.
		const steps = 50
		if step := o.Upstream.Calm/steps + 1; progress != nil && now/step > told && now <= o.Upstream.Calm {
			told = now / step
			progress(float64(now) / float64(o.Upstream.Calm))
		}
		return ctx.Err() == nil
	}
	w, err := sim.New(o)
	if err != nil {
		return sim.Result{}, err
	}
	r := w.Run()
	if r.Stopped {
		return r, ctx.Err()
	}
	return r, nil
}
