// SPDX-License-Identifier: Apache-2.0

// Package job runs long commands of operators in steps: resync, replay, backfill and others. It is
// the only place that limits the rate of such work, retries a step, saves the progress and
// continues.
//
// What it promises:
//
//   - A job runs once at a time. Its row in the table has a lease, and each save extends it. A
//     program that lost the lease stops at its next save.
//   - A job continues where it stopped, on any machine that can read its input.
//   - A step is done at least once. Counts and lines are stored together with the cursor, so a step
//     that is repeated after a crash is counted once.
//   - A job continues only with the arguments with which it began. If a command gives other
//     arguments, the job begins again if it has done no step, or if its kind allows that (Anew).
//     Otherwise the command is refused.
//   - The table lists the newest jobs, with their counts and their errors.
package job
