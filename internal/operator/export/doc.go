// SPDX-License-Identifier: Apache-2.0

// Package export compares the documents of a sink with an export of the source (design section 14).
// Package reconcile compares the sink with the rows, and reads both sides for this package.
//
// What it promises:
//
//   - It only reads.
//   - If lull has a newer version than an event of the export, this is not drift: the source has
//     sent that version after the export.
//   - A document is in motion, and not drift, if a version of it is pending or leased, or was
//     written a moment ago.
//   - It keeps only the documents of one page in memory, however large the export is.
package export
