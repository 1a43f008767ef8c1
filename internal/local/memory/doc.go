// Package memory holds the in-memory half of every seam: what `lull dev` runs on, what tests and
// the simulator start from.
//
// Each half keeps the promises of its seam's comments and passes the same conformance suite as the
// AWS half. [Shards] is a DynamoDB table. [Queue] and [Mapping] are an SQS standard queue and its
// event source mapping. [Flights] is S3, [Machine] is Step Functions. [DeadLetters], [Schedule] and
// [Sink] are named for what they hold. The rules of queue, mapping and machine are package
// emulation's.
//
// Everything is safe for concurrent use. Time comes from a [clock.Clock], so that the halves run in
// a testing/synctest bubble and on a fast clock. Nothing polls: whoever waits sleeps until the
// moment that concerns it. Nothing fails by itself: package fault injects failures around these
// halves, and [Sink] has scripted answers. Nothing survives the process.
package memory
