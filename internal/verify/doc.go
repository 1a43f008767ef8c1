// Package verify compares what a sink holds with an export of the source (design section 14).
// Package reconcile compares it with the rows, and reads both sides for it.
//
// What it promises:
//
//   - It only reads.
//   - An event of the export that is older than what lull has is not drift: the source went on.
//   - What is pending, leased, or was written a moment ago is in motion, and not drift.
//   - It holds the documents of one page, however large the export is.
package verify
