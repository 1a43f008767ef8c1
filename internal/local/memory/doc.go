// Package memory holds the in-memory half of every seam: what `lull dev` runs on, what tests and
// the simulator start from.
//
// Each half keeps the promises of its seam's comments and passes the same conformance suite as the
// AWS half: [Shards] (a DynamoDB table), [Queue] and [Mapping] (an SQS standard queue and its event
// source mapping), [Flights] (S3), [Machine] (Step Functions), [Letters], [Schedule] and [Sink].
// The rules of queue, mapping and machine are package emulation's.
//
// Everything is safe for concurrent use and takes its time from a [clock.Clock], so that it runs in
// a testing/synctest bubble and on a fast clock. Nothing polls: whoever waits sleeps until the
// moment that concerns it. Nothing fails by itself: package fault injects failures around these
// halves, and [Sink] has scripted answers. Nothing survives the process.
package memory
