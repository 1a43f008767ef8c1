// SPDX-License-Identifier: Apache-2.0

// Package shard decides which version of a document lull writes to a sink.
//
// # The story
//
// Upstream systems report changes in bursts, out of order and more than once. Every document has
// one row, the shard. Only the row decides which version is new. Every event carries an order key.
// The keys of one document are totally ordered. So two readers of the same events always agree on
// the newest, in whatever order the events arrive.
//
// receive ADMITs the newest key it has seen, which becomes pending. After the quiet window, index
// CLAIMs that key: it takes a lease under a random token, which is new for each claim. Then index
// writes the document to the sink and COMMITs: the key becomes committed. Only then may the message
// be deleted. If a function stops in between, nothing has to be repaired: SQS makes the message
// visible again, and the lease expires.
//
//	ADMIT              CLAIM                COMMIT
//
// (absent) ------> pending=k -------> owner, lease -------> committed=k
//
//	 ^                  | RELEASE (nothing was applied; claimed stays)
//	 +------------------+
//	 |                  | REJECT (refused for good; the dead letter is stored)
//	 v                  v
//	PARK  ---------> dead=k
//
// # The promises that the conditions keep
//
//   - committed never decreases: every write that sets it requires committed < k.
//   - claimed is the highest key that may ever have reached the sink. No older key is claimed
//     after it. So after a crash between a write and its COMMIT, no older version can overwrite
//     the document. claimed decreases only to claimed_was, and only when its version became a
//     dead letter.
//   - The time of a claim is the fence: the external version that sinks with versions store. A
//     claim requires lease_until < now and last_write < now, and a RELEASE erases neither. So the
//     fence of a document grows with every write that may have been applied, even if clocks differ.
//   - Every claim has its own token: a late RELEASE finds another token in the row and changes
//     nothing.
//   - dead = k means that a dead letter with this key is stored, so the message may be deleted.
//     This needs a consistent read, because a redrive removes the mark.
//
// # How to read the package
//
// orderkey.go and version.go define which version is newer. row.go defines the row. Read
// conditions.go first: it holds the writes of a document's row, each with its condition and its
// update, as data. reset.go and repair.go hold those of operators. write.go evaluates and applies
// this data to a [Row], for the store in memory. expression.go renders the same data as DynamoDB
// expressions. judge.go holds the decisions of receive, turn.go those that index makes. store.go is
// the interface of the store, and package shardtest the suite that every store passes.
// testdata/scenarios explains the protocol in examples.
//
// The package is pure: it uses no clock, no I/O and no log, and imports no other package of lull.
package shard
