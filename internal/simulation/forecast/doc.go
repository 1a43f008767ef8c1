// Package forecast predicts how settings handle a load: how fresh documents are over time, how
// often lull writes to the sinks, and the cost of a month. `lull simulate` and the console's What
// if use it.
//
// The answers come from package sim, which runs the real functions in virtual time, and from
// package cost. The same settings and load give the same answer, unless a comparison runs out of
// time: then the answer covers the virtual time until then. Questions may be hostile. So loads and
// the number of sinks have bounds, and a context ends a simulation within a virtual second.
package forecast
