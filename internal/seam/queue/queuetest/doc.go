// Package queuetest is the conformance suite of [queue.Queue]. It checks what the rest of lull
// relies on, for a queue in memory and for SQS. It does not check what standard queues may do
// either way: the order, duplicates, and a late deletion by a stale receipt handle.
package queuetest
