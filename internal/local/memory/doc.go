// SPDX-License-Identifier: Apache-2.0

// Package memory implements every store and service in memory. `lull dev`, tests and the simulator
// use this package in place of AWS.
//
// Each implementation keeps the promises in the comments of its interface. The package passes the
// same conformance suite as the implementation for AWS. [Shards] takes the place of a DynamoDB
// table. [Queue] and [Mapping] take the place of an SQS standard queue and its event source
// mapping. [Flights] takes the place of S3, and [Machine] of Step Functions. [DeadLetters] and
// [Schedule] store dead letters and scheduled events. Queue, Mapping and Machine use the rules in
// package emulation.
//
// Every type is safe for concurrent use. Time comes from a [clock.Clock], so that tests can use a
// testing/synctest bubble or a fast clock. Waiting calls do not poll: they sleep until they are
// woken or until a known time. No call fails by itself: package fault injects failures. All
// contents are lost when the process ends, unless a [Keeper] stores them.
package memory
