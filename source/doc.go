// Package source turns messages of upstream systems into events, and the payload of an event into
// the document that is written. Each upstream's format is a [Kind] in its own package, which
// registers itself: source/native, source/govuk, source/s3, source/dynamodbstream, source/debezium,
// source/json. docs/events.md says which fields each of them reads.
//
// # Your own format
//
// Write a package with a type that implements [Format] and an init function that calls [Register].
// Import the package in the programs that decode, and run the suite in package sourcetest.
// examples/outoftree does this in a separate module. Give the kind an [Example], which every
// command that sends a trial event uses. A format fills in a [Draft]. These parts are ready to use:
//
//   - [Rules] hold the settings of one source and make document ids, references and projections.
//   - [Object], [Identity], [Optional], [Instant] and [ResyncRun] read a field and say what is
//     wrong with it. [Invalid] and [VersionInvalid] report any other problem.
//   - [Pointer] and [event.Child] find a value in JSON. JSON values are gjson.Result: numbers stay
//     text, and nothing is copied.
//   - [ColumnsText] makes an id from a key of several columns. [AppendEach] writes an object or an
//     array with other values.
//
// # What the package promises
//
//   - Every message gives at least one result, and each result is exactly one of an event, a skip
//     and an Invalid. Nothing panics.
//   - The order key is a function of the body alone: epoch, version, resync run, event time and
//     digest. The one exception is the policy arrival, whose version is the time at which the first
//     copy of the message was sent.
//   - Numbers are never read through a float: versions, ids and documents keep the digits that were
//     sent.
//   - An Invalid says which field is wrong and what is allowed. It quotes at most 64 bytes of a
//     field that identifies something, never of a document.
//   - Deciding is cheap and reading is not repeated: a raw native event is scanned, not copied.
//     HTML is read and projections are made in Document only, once for each write.
//
// If a JSON object has a key twice, the last one counts.
//
// # Stability
//
// This package is v0. Names in Go may change with a minor release, and CHANGELOG.md says so. Today
// one body is one event, because package event splits envelopes with several events. A body may
// give several events in a later release. The events of existing messages do not change.
package source
