// SPDX-License-Identifier: Apache-2.0

// Package sim runs a whole stack, and the services around it, in virtual time under one seed.
//
// # What is real and what is simulated
//
// The use cases are the product's own: receive, index, dlq, prune and the operator's redrive, with
// the real sources, conditions, manifests and dead letters. The services around the use cases are
// simulated: SQS standard queues with their event source mappings, the table, the bucket, Step
// Functions, Lambda, and a sink. The stores of package memory and the rules of package emulation do
// the work. This package adds the failures of real services. For example, a service answers late,
// twice, not at all, or after the caller was killed.
//
// # How it runs
//
// One scheduler is the only clock. Every invocation is a coroutine, and so is every part of an
// invocation that runs concurrently. Every I/O parks its coroutine. The service carries the request
// out at one virtual moment, and the answer arrives at another. The seed decides both moments, even
// if the caller is killed in between. Exactly one coroutine runs at a time, so the number of
// processors has no effect. The same seed gives exactly the same trace.
//
// # What it checks
//
// After every step the oracles check the state of the simulated run (oracle.go). The sink never
// goes back to an older version, and the committed version never goes back. No message is deleted
// before each of its events is done. Two writers never write a document at the same time, no
// invocation writes without a claim, and every event is still somewhere. After the injected
// failures end, every document must settle at its newest version within a time limit (end.go).
// Counts of writes and freshness are checked too, because only they show a failure that redelivery
// repairs.
//
// Only one goroutine at a time may use a World and its parts. Several Worlds may run concurrently.
package sim
