// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"context"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/simulation/sim"
)

// maxPollers is more than any event source mapping of SQS has. The concurrency of a lane limits its
// pollers further.
const maxPollers = 1000

// Run simulates a load with as many pollers as a lane may have. Run ends early with the context's
// error, or without an error if o.GoOn returns false. If the settings set the memory of a function,
// the simulated functions take processor time. progress may be nil. Run calls progress a few times
// with the finished share, from 0 to 1.
func Run(ctx context.Context, o sim.Options, progress func(share float64)) (sim.Result, error) {
	o.MostPollers = maxPollers
	o.Processor = o.Config.Memory != config.Memory{}
	told, before := time.Duration(-1), o.GoOn
	o.GoOn = func(now time.Duration) bool {
		// After the last event is sent, the run continues until all are done. The time until then
		// is not known in advance.
		const steps = 50
		if step := o.Upstream.Calm/steps + 1; progress != nil && now/step > told && now <= o.Upstream.Calm {
			told = now / step
			progress(float64(now) / float64(o.Upstream.Calm))
		}
		return before == nil || before(now)
	}
	return sim.Simulate(ctx, o)
}
