// SPDX-License-Identifier: Apache-2.0

// Package source turns messages of upstream systems into events, and the payload of an event into
// the document that lull writes. The format of each upstream is a [Kind] in its own package, which
// registers itself: source/native, source/govuk, source/s3, source/dynamodbstream, source/debezium,
// source/json. docs/events.md says which fields each kind reads.
//
// # Your own format
//
// Write a package with a type that implements [Format] and an init function that calls [Register].
// Import the package in the programs that decode, and run the suite in package sourcetest.
// examples/outoftree shows such a package in a separate module. Give the kind an [Example]: every
// command that sends a trial event uses the example. A format fills in a [Draft]. These parts are
// ready to use:
//
//   - [Rules] hold the settings of one source and make document ids, references and projections.
//   - [Object], [Identity], [Optional], [Instant] and [ResyncRun] read a field and report a wrong
//     value. [Invalid] and [VersionInvalid] report any other problem.
//   - [Pointer] and [event.Child] find a value in JSON. JSON values are gjson.Result: numbers stay
//     text, and nothing is copied.
//   - [ColumnsText] makes an id from a key of several columns. [AppendEach] writes an object or an
//     array with other values.
//
// # What the package promises
//
//   - Every message gives at least one result, and each result is exactly one of an event, a skip
//     and an Invalid. Nothing panics.
//   - The order key depends only on the body: epoch, version, resync run, event time and digest.
//     The only exception is the policy arrival, with which the version is the time at which the
//     first copy of the message was sent.
//   - Numbers are never read through a float: versions, ids and documents keep the digits that were
//     sent.
//   - An Invalid says which field is wrong and what is allowed. It quotes at most 64 bytes of a
//     field that identifies something, never of a document.
//   - Decoding is cheap: a native event without an envelope is scanned and not copied. Only
//     Document reads HTML and makes projections, once for each write.
//
// If a JSON object has a key twice, the last one counts.
//
// # Stability
//
// This package is v0. Names in Go may change with a minor release, and CHANGELOG.md says so. Today
// one body is one event, because package event splits envelopes with several events. A body may
// give several events in a later release. The events of existing messages do not change.
package source
