package forecast

import (
	"context"
	"time"

	"github.com/lullhq/lull/internal/proof/sim"
)

// maxPollers is more than any event source mapping of SQS has: the lane's concurrency bounds them.
const maxPollers = 1000

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
		return true
	}
	return sim.Simulate(ctx, o)
}
