// Package source turns messages of upstream systems into events, and the payload of an event into
// the document that is written. There is one format for each upstream: native, govuk, s3,
// dynamodb-stream, debezium and json; docs/events.md says what each of them reads where.
//
// # What the package promises
//
//   - Every message gives at least one result, and each result is exactly one of an event, a skip
//     and a fault. Nothing panics.
//   - The order key is a function of the body alone: epoch, version, resync run, event time and
//     digest. The one exception is the policy arrival, whose version is the time at which the first
//     copy of the message was sent.
//   - Numbers are never read through a float: versions, ids and documents keep the digits that were
//     sent.
//   - A fault says which field is wrong and what is allowed. It quotes at most 64 bytes of a field
//     that identifies something, never of a document.
//   - Deciding is cheap and reading is not repeated: a raw native event is scanned, not copied;
//     HTML is read and projections are made in Document only, once for each write.
//
// Where a key is given twice in one JSON object, the last one counts.
//
// # Files
//
// set.go chooses the source and is the package's face. rules.go is what all formats have in common:
// document ids, order keys, references. One file for each format decides; projection.go and
// govukdocument.go make documents.
package source
