package sim

import (
	"context"
	"time"

	"github.com/lullhq/lull/internal/deploy/names"
)

// The processor time of the functions on a whole processor, as docs/numbers.md assumes it.
const (
	invocationCPU = time.Millisecond
	eventCPU      = 40 * time.Microsecond // in receive and in index; the simulator spends it in receive
	callCPU       = 100 * time.Microsecond
	coreMegabytes = 1769 // https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html
)

// operators is the name of an operator's command among the invocations: it has no memory.
const operators = "operator"

// compute takes processor time: more with less memory. An invocation computes one thing at a time,
// and more than one processor does not help it.
func (v *invocation) compute(ctx context.Context, d time.Duration) {
	if !v.w.options.Processor || v.Name == operators {
		return
	}
	megabytes := min(names.Function(v.Name).MegabytesIn(v.w.cfg), coreMegabytes)
	v.busy = max(v.busy, v.w.now) + d*coreMegabytes/time.Duration(megabytes)
	_ = v.await(ctx, v.busy) // the next request fails if the context has ended
}

// ProcessorGBSeconds is what the processor time of the functions adds to the bill of a run without
// Options.Processor. Up to a whole processor it costs the same with any memory.
func (c Counts) ProcessorGBSeconds(megabytes func(names.Function) int) (sum float64) {
	for name, n := range c.Invocations {
		cpu := time.Duration(n)*invocationCPU + time.Duration(c.Calls[name])*callCPU
		if names.Function(name) == names.Receive {
			cpu += time.Duration(c.Events) * eventCPU
		}
		if name != operators {
			sum += cpu.Seconds() * float64(max(megabytes(names.Function(name)), coreMegabytes)) / 1024
		}
	}
	return sum
}
