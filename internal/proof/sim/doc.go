// Package sim runs a whole stack, and the services around it, in virtual time under one seed.
//
// # What is real and what is simulated
//
// The use cases are the product's own: receive, index, dlq, prune and the redrive desk, with the
// real sources, conditions, manifests and letters. Around them stand simulated services: SQS
// standard queues with their event source mappings, the table, the bucket, Step Functions, Lambda,
// and a sink. Where package memory has a half of a service, that half does the work; what is added
// here is everything that a half in memory is too kind to do: it answers late, twice, not at all,
// or after the caller has died.
//
// # How it runs
//
// There is one scheduler and no other clock. Every invocation, and every part of one that the use
// case runs beside others, is a coroutine. Every I/O parks its coroutine; the service carries the
// request out at one virtual moment and the answer arrives at another, both drawn from the seed,
// whatever became of the caller in between. Exactly one coroutine runs at a time, so there are no
// data races to find here and nothing depends on the number of processors: the same seed gives the
// same trace, to the bit.
//
// # What it checks
//
// After every step that changes the world the oracles look at it (oracle.go): the sink never goes
// back, neither does what is committed, no message is deleted before each of its events is done, no
// two writers share a document, nobody writes without a claim, and no event is without a place.
// When the faults have ended everything must settle within a bound, at the newest version of every
// document (end.go). Counts of writes and freshness are checked too, because a fault that
// redelivery repairs is seen nowhere else.
//
// A World and what it is made of must be used by one goroutine at a time. Several Worlds may run
// beside each other.
package sim
