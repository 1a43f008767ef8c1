// Package sim runs a whole stack, and the services around it, in virtual time under one seed.
//
// # What is real and what is simulated
//
// The use cases are the product's own: receive, index, dlq, prune and the operator's redrive, with
// the real sources, conditions, manifests and dead letters. The services around them are simulated:
// SQS standard queues with their event source mappings, the table, the bucket, Step Functions,
// Lambda, and a sink. The stores of package memory and the rules of package emulation do the work.
// This package adds the failures of real services: a service answers late, twice, not at all, or
// after the caller has died.
//
// # How it runs
//
// One scheduler is the only clock. Every invocation is a coroutine, and so is every part of an
// invocation that runs concurrently. Every I/O parks its coroutine. The service carries the request
// out at one virtual moment, and the answer arrives at another. The seed draws both moments, even
// if the caller dies in between. Exactly one coroutine runs at a time, so nothing depends on the
// number of processors: the same seed gives the same trace, to the bit.
//
// # What it checks
//
// After every step that changes the world the oracles look at it (oracle.go). The sink never goes
// back to an older version, and the committed version never goes back. No message is deleted before
// each of its events is done. Two writers never share a document, no invocation writes without a
// claim, and every event has a place. When the injected failures have ended everything must settle
// within a bound, at the newest version of every document (end.go). Counts of writes and freshness
// are checked too, because nothing else shows a failure that redelivery repairs.
//
// A World and its parts must be used by one goroutine at a time. Several Worlds may run
// concurrently.
package sim
