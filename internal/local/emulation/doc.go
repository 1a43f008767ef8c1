// Package emulation holds the rules of the services that lull runs on: an SQS standard queue
// ([Queue]), the batches of an event source mapping ([Batch], [Succeeded]) and the flight state
// machine ([Execution]).
//
// The rules know neither a clock nor chance nor goroutines. A caller says what time it is and gets
// what happens, and when something happens next. Two drivers use them, so that `lull dev` and the
// simulator cannot differ: package memory runs them by a [clock.Clock], package sim one I/O at a
// time under a seed. A service may deliver twice or out of order, or lose an answer: a driver adds
// that through [Hooks], or by what it calls.
//
// Nothing here is safe for concurrent use: a driver brings its own lock.
package emulation
