// Package queuetest is the conformance suite of [queue.Queue]: what the rest of lull may rely on,
// of a queue in memory and of SQS alike. What standard queues leave open (order, a message twice, a
// late deletion by a stale receipt) it does not ask for.
package queuetest
