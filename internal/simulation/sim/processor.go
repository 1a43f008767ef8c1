// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"time"

	"github.com/lullhq/lull/internal/deploy/names"
)

// The processor time of the functions on one whole processor, as assumed in docs/numbers.md.
const (
	invocationCPU = time.Millisecond
	eventCPU      = 40 * time.Microsecond // for receive and index together; the simulator spends all of it in receive
	callCPU       = 100 * time.Microsecond
	coreMegabytes = 1769 // https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html
)

// operators is the name under which an operator's command runs as an invocation. An operator's
// command has no memory size.
const operators = "operator"

// compute takes processor time, more of it with less memory. An invocation computes one thing at a
// time, and more than one processor does not help.
func (v *invocation) compute(ctx context.Context, d time.Duration) {
	if !v.w.options.Processor || v.Name == operators {
		return
	}
	megabytes := min(names.Function(v.Name).MegabytesIn(v.w.cfg), coreMegabytes)
	v.busy = max(v.busy, v.w.now) + d*coreMegabytes/time.Duration(megabytes)
	_ = v.await(ctx, v.busy) // if the context has ended, the next request fails
}

// ProcessorGBSeconds returns what the processor time adds to the bill of a run without
// Options.Processor. Up to one whole processor, the cost does not depend on the memory size.
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
