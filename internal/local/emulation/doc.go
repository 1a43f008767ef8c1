// Package emulation holds the rules of the AWS services that lull uses: an SQS standard queue
// ([Queue]), the batches of an event source mapping ([Batch], [Succeeded]) and the flight state
// machine ([Execution]).
//
// The rules use no clock, no random numbers and no goroutines. The caller passes the time, and
// learns what happens and when the next thing happens. Two drivers use the same rules, so that
// `lull dev` and the simulator cannot differ. Package memory runs them with a [clock.Clock].
// Package sim runs them one I/O at a time, from a seed. AWS may deliver a message twice or out of
// order, or lose an answer. A driver causes this through [Hooks], or by its own calls.
//
// Nothing here is safe for concurrent use: a driver needs a lock.
package emulation
