// SPDX-License-Identifier: Apache-2.0

// Package forecast predicts how settings handle a load. The package predicts how fresh documents
// are over time, how often lull writes to the sinks, and the cost of a month. `lull simulate` and
// the page "What if" of the console use it.
//
// The answers come from package sim, which runs the real functions in virtual time, and from
// package cost. The same settings and load give the same answer. If a comparison runs out of time,
// its answer covers only the virtual time until then. A question may come from an attacker. Loads
// and the number of sinks are therefore bounded, and a context ends a simulation within a virtual
// second.
package forecast
