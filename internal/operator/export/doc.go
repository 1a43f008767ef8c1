// Package export compares the documents of a sink with an export of the source (design section 14).
// Package reconcile compares the sink with the rows, and reads both sides for this package.
//
// What it promises:
//
//   - It only reads.
//   - An event of the export that is older than lull's version is not drift: the source has sent a
//     newer one since.
//   - A version that is pending, leased, or was written a moment ago is in motion, and not drift.
//   - It keeps only the documents of one page in memory, however large the export is.
package export
