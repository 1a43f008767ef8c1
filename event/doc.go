// Package event defines an event: one decoded change in an upstream system, and what can be wrong
// with it. Package source makes events. This package removes the envelopes that services add around
// them.
//
// A format (package source) or a sink (package sink) of your own needs no internal package:
// names.go gives the names that events are made of.
//
// # Stability
//
// This package is v0. The events and order keys that lull makes from a message do not change,
// because they are in your tables. Names, fields and limits in Go may change with a minor release,
// and CHANGELOG.md says so. Fields may be added: name the fields in composite literals.
//
// # What the package promises
//
//   - No input causes a panic, and the package guesses nothing. A body is checked once (UTF-8,
//     JSON, depth) before any other code reads it.
//   - Envelopes are removed one after the other, up to a depth. The package knows these: SNS,
//     EventBridge, notifications of S3, records of DynamoDB Streams, Amazon MQ for RabbitMQ, and
//     the pointer of the extended client libraries of SQS. It reads records of Kafka, Kinesis and
//     ActiveMQ in the form that EventBridge Pipes sends.
//   - The result depends only on the body. Attributes of the message add only what envelopes
//     contain too: content type, event type, routing key. They are not part of an order key.
//   - A raw body is neither copied nor parsed into values.
//
// If a JSON object has a key twice, the last one counts, as for most JSON readers.
package event
