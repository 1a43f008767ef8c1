// SPDX-License-Identifier: Apache-2.0

// Package dynamodb implements shard.Store, shard.Scanner, deadletter.Store and schedule.Store with
// one DynamoDB table.
//
// What it promises:
//
//   - A shard.Write is one UpdateItem or one DeleteItem. The condition and the update come from the
//     method Expression of the write, and from no other place. Both success and refusal return the
//     old row (ALL_OLD), so that a refusal needs no second read.
//   - The error of a refused condition is *shard.Refused. The error of a throttled request, which
//     applied nothing, is shard.ErrThrottled. If a table or permission is missing, the error says
//     what to fix, and the request is not retried. After any other error the outcome is unknown.
//   - Each request has a time-out and is made once, because package backoff is the only layer of
//     retries. There is one exception: if BatchGetItem leaves keys unprocessed, this package
//     requests these keys again.
//
// Dead letters and scheduled events are items of the same table. Their keys begin with "!dead#" and
// "!sched#". Only these items have the attributes of the index "waiting". So the index contains no
// rows of documents, and a write of such a row never costs an index write. The bodies of messages
// are in S3.
//
// The index has eight partitions for each kind of item. A hash of the item's id selects the
// partition, and items in a partition are sorted by time. The time is not part of the partition, so
// a reader finds every item, however old. Eight partitions accept eight thousand new items a
// second.
package dynamodb
