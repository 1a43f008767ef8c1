// Package reconcile compares the rows of a collection with what its sink holds, and repairs what
// the two of them suffice for (design section 14).
//
// What it promises:
//
//   - A row is raised only to what the sink still holds. A delete is asserted under a lease. So it
//     may run beside live traffic, as often as anybody likes.
//   - What is being written, or was a moment ago, is not called different.
//   - It holds one page of documents at a time, however large the collection is.
//   - With DryRun nothing is written, neither to the table nor to the sink.
package reconcile
