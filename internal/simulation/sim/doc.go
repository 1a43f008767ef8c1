// Package sim runs a whole stack, and the services around it, in virtual time under one seed.
//
// # What is real and what is simulated
//
// The use cases are the product's own: receive, index, dlq, prune and the operator's redrive, with
// the real sources, conditions, manifests and dead letters. Around them stand simulated services:
// SQS standard queues with their event source mappings, the table, the bucket, Step Functions,
// Lambda, and a sink. The stores of package memory and the rules of package emulation do the work.
// Added here is everything that they are too kind to do: a service answers late, twice, not at all,
// or after the caller has died.
//
// # How it runs
//
// One scheduler is the only clock. Every invocation, and every part of one that the use case runs
// beside others, is a coroutine. Every I/O parks its coroutine. The service carries the request out
// at one virtual moment, and the answer arrives at another. The seed draws both, whatever became of
// the caller in between. Exactly one coroutine runs at a time, so nothing depends on the number of
// processors: the same seed gives the same trace, to the bit.
//
// # What it checks
//
// After every step that changes the world the oracles look at it (oracle.go). The sink never goes
// back, and neither does what is committed. No message is deleted before each of its events is
// done. Two writers never share a document, nobody writes without a claim, and every event has a
// place. When the injected failures have ended everything must settle within a bound, at the newest
// version of every document (end.go). Counts of writes and freshness are checked too, because
// nothing else shows a failure that redelivery repairs.
//
// A World and what it is made of must be used by one goroutine at a time. Several Worlds may run
// beside each other.
package sim
