// SPDX-License-Identifier: Apache-2.0

// Package prune keeps the state of a sink tidy: it deletes old rows, and sends events that have
// become due (design section 9). A run takes place every few minutes.
//
// A run has five segments: scheduled events, dead letters, orphaned flights, rows, and a random
// sample of rows. A segment first only reads, with a cursor and within budgets of reads and time.
// Then it writes, with conditions. The package promises:
//
//   - At most one run takes place at a time and in an interval, even if several rules fire. A
//     conditional write of the run row decides this. If two runs overlap nevertheless, or if a run
//     is killed, the result is the same.
//   - A segment that fails is reported, and the other segments run.
//   - A row with a lease is never deleted. A row with a pending version is only deleted, and
//     reported as stuck, if the version waited for longer than rows are kept.
//   - A row that changed since it was read is skipped and counted. A full pass over the rows takes
//     a day, for any size of the table.
//   - A scheduled event is enqueued to the second and never early. It is deleted only after it was
//     sent.
//   - A dead letter is deleted only if the row shows that its version or a newer one is committed.
//     Dead letters with a transient reason are redriven automatically, a bounded number of times.
//     Only prune does this.
//   - Redelivery by SQS recovers from every crash. Stuck counts what it did not recover: that needs
//     an operator, see [Pruner.Rescue].
package prune
