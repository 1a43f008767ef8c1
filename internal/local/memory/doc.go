// Package memory implements every store and service in memory. `lull dev`, tests and the simulator
// use it in place of AWS.
//
// Each implementation keeps the promises in its interface's comments, and passes the same
// conformance suite as the one for AWS. [Shards] is a DynamoDB table. [Queue] and [Mapping] are an
// SQS standard queue and its event source mapping. [Flights] is S3, [Machine] is Step Functions.
// [DeadLetters] and [Schedule] are named for their contents. Package emulation has the rules of
// queue, mapping and machine.
//
// Everything is safe for concurrent use. Time comes from a [clock.Clock], so that tests can use a
// testing/synctest bubble or a fast clock. Nothing polls: a caller that waits sleeps until it is
// woken or its time has come. Nothing fails by itself: package fault injects failures.
// Nothing survives the process, unless a [Keeper] stores it.
package memory
