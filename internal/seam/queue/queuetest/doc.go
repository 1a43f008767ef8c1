// SPDX-License-Identifier: Apache-2.0

// Package queuetest is the conformance suite of [queue.Queue]. The suite checks the behaviour on
// which the rest of lull relies, for a queue in memory and for SQS. It does not check what a
// standard queue may or may not do: the order, duplicates, and a late deletion by a stale receipt
// handle.
package queuetest
