// Package event is one upstream change, decoded, and what can be wrong with one. Package source
// makes events. This package takes off the envelopes that services wrap around them.
//
// A format (package source) or a sink (package sink) of your own needs no internal package:
// names.go gives the names that events are made of.
//
// # Stability
//
// This package is v0. The events and the order keys that a message becomes do not change, because
// they are in your tables. Names, fields and limits in Go may change with a minor release, and
// CHANGELOG.md says so. Fields may be added: name the fields in composite literals.
//
// # What the package promises
//
//   - Nothing panics and nothing is guessed: a body is checked once (UTF-8, JSON, depth) before
//     anything looks inside.
//   - Envelopes are taken off repeatedly, up to a depth: raw, SNS, EventBridge, notifications of
//     S3, records of DynamoDB Streams, Amazon MQ for RabbitMQ, the pointer of the extended client
//     libraries of SQS.
//   - What comes out is a function of the body. Attributes of the message add only what envelopes
//     say themselves: content type, event type, routing key. None of it is part of an order key.
//   - A raw body is neither copied nor parsed into values.
//
// Where a key is given twice in one JSON object the last one counts, as for most readers of JSON.
package event
