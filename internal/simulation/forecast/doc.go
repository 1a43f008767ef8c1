// Package forecast says what settings make of a load: how fresh documents are over time, how often
// the sinks are written, and what a month costs. `lull simulate` and the console's What if ask it.
//
// The answers come from package sim, which runs the real functions in virtual time, and from
// package cost. The same settings and load give the same answer. What is asked may be hostile:
// loads have bounds, and a context ends a simulation within a virtual second.
package forecast
