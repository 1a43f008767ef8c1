// SPDX-License-Identifier: Apache-2.0

// Package emulation imitates the AWS services that lull uses: an SQS standard queue ([Queue]), the
// batches of an event source mapping ([Batch], [Succeeded]) and the flight state machine
// ([Execution]).
//
// The code uses no clock, no random numbers and no goroutines. The caller passes the current time,
// and gets back what happens now and the time of the next change. Two packages, called drivers, use
// this code, so that `lull dev` and the simulator behave in the same way. The driver in package
// memory uses a [clock.Clock]. The driver in package sim makes one I/O at a time, in an order that
// a seed chooses. AWS may deliver a message twice or out of order, or lose an answer. A driver
// causes such faults through [Hooks], or by its own calls.
//
// No type of this package is safe for concurrent use: a driver needs a lock.
package emulation
