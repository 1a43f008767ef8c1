// Package job runs the work of operators that takes long, in steps: resync, replay, backfill and
// the others. It is the only place that paces, retries, saves and continues such work.
//
// What it promises:
//
//   - A job runs once at a time. Its row in the table has a lease, and each save extends it. A
//     program that lost the lease stops at its next save.
//   - A job continues where it stopped, on any machine that can read its input.
//   - A step is done at least once. Counts and lines are stored together with the cursor, so a step
//     that is repeated after a crash is counted once.
//   - A job that continues has the arguments with which it began. With others it begins anew if it
//     has done no step, or if its kind says so. Otherwise it is refused.
//   - The table lists the last jobs, with their counts and their errors.
package job
