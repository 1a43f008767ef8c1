// SPDX-License-Identifier: Apache-2.0

// Package event defines an event, which is one decoded change in an upstream system, and the errors
// of an invalid event. Package source makes events. Package event also removes the envelopes that
// services put around an event.
//
// If you write your own format (package source) or sink (package sink), you need no internal
// package: the file names.go exports the internal types that an event has.
//
// # Stability
//
// This package is v0. The events and order keys that lull makes from a message do not change,
// because they are in your tables. Names, fields and limits in Go may change with a minor release,
// and CHANGELOG.md says so. Fields may be added: name the fields in composite literals.
//
// # What the package promises
//
//   - No input causes a panic, and the package never guesses. A body is checked once (UTF-8, JSON,
//     depth) before any other code reads the body.
//   - Envelopes are removed one after the other, up to a depth. The package knows these: SNS,
//     EventBridge, notifications of S3, records of DynamoDB Streams, Amazon MQ for RabbitMQ, and
//     the pointer of the extended client libraries of SQS. It reads records of Kafka, Kinesis and
//     ActiveMQ in the form that EventBridge Pipes sends.
//   - The result depends only on the body, with one exception: a content type, an event type or a
//     routing key may also be in the attributes of the message. None of the three is part of an
//     order key.
//   - A body without an envelope is neither copied nor parsed into values.
//
// If a JSON object has a key twice, the last one counts, as for most JSON readers.
package event
