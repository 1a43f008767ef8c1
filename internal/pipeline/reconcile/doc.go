// SPDX-License-Identifier: Apache-2.0

// Package reconcile compares the rows of a collection with the documents in its sink. It repairs
// the differences for which the row and the sink are enough (design section 14).
//
// The package promises:
//
//   - A row is only raised to a version that the sink still holds. A delete is written under a
//     lease. So a comparison can run during normal traffic, any number of times.
//   - A document that is being written, or was written a moment ago, is not reported as different.
//   - A comparison holds one page of documents in memory, for any size of the collection.
//   - With DryRun, a comparison writes nothing, neither to the table nor to the sink.
package reconcile
