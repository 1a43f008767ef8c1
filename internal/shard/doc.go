// Package shard is lull's protocol: what one row per document decides.
//
// # The story
//
// Upstream systems tell of changes in bursts, out of order and more than once. For every document
// there is one row, the shard, and the row alone says what is new. Every event carries an order
// key; keys of one document are totally ordered, so two readers of the same events always agree on
// the newest, whatever the order of arrival.
//
// receive ADMITs the newest key it has seen (pending). After the lull, an index invocation CLAIMs
// that key: it takes a lease under a token that is random and fresh for this claim, writes the
// document to the sink, and COMMITs: the key becomes committed. Only then may the message be
// deleted. Whatever dies in between needs no repair: the message becomes visible in SQS again, and
// the lease of the dead runs out.
//
//	          ADMIT              CLAIM                COMMIT
//	(absent) ------> pending=k -------> owner, lease -------> committed=k
//	                    ^                  | RELEASE (nothing was applied; claimed stays)
//	                    +------------------+
//	                    |                  | REJECT (refused for good; the dead letter is stored)
//	                    v                  v
//	                   PARK  ---------> dead=k
//
// # The promises that the conditions keep
//
//   - committed never goes back: every write that sets it demands committed < k.
//   - claimed is the highest key that ever may have reached the sink: nothing older is claimed
//     after it, so a crash between a write and its commit cannot let an older version follow. It
//     goes back only to claimed_was, and only for a version that became a dead letter.
//   - The time of a claim is the fence, the external version that sinks with versions get. A claim
//     needs lease_until < now and last_write < now, and a RELEASE never erases either. So fences of
//     one document grow with every write that may have been applied, whatever the skew of the
//     clocks.
//   - Tokens are per claim: a late RELEASE finds somebody else's token and does nothing.
//   - dead = k says that a dead letter with this key is stored: a message may be deleted on that
//     ground, but only when it was read consistently, because a redrive takes the mark away.
//
// # How to read the package
//
// orderkey.go and version.go say what is newer. row.go is the row. conditions.go is the page that
// matters: every write, its condition and its update, once, as data. write.go evaluates and applies
// that data on a [Row] (the in-memory store); expression.go renders the same data as DynamoDB
// expressions. judge.go holds receive's decisions, turn.go index's. store.go is the seam, and
// package shardtest the suite that every store passes. testdata/scenarios tells the protocol as
// stories.
//
// Everything here is pure: no clock, no I/O, no log. The package imports nothing of ours.
package shard
