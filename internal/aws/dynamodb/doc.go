// Package dynamodb is the DynamoDB half of the seams shard.Store, shard.Scanner, deadletter.Store
// and schedule.Store: one table for everything that lull remembers.
//
// What it promises:
//
//   - A shard.Write is one UpdateItem or one DeleteItem. Its condition and its update come from the
//     write's own Expression and are spelt nowhere else. Both answers carry the old row (ALL_OLD),
//     so that a refusal needs no second read.
//   - A refused condition is *shard.Refused. A throttled request is shard.ErrThrottled: nothing was
//     applied. A missing table or permission is an error that says what to fix and is not tried
//     again. After any other error the outcome is unknown.
//   - Requests are bounded in time and made once: package backoff is the one layer of retries. The
//     one exception: this package requests the keys again that BatchGetItem leaves unprocessed,
//     because no caller could.
//
// Letters and scheduled events are items of the same table whose keys begin with "!dead#" and
// "!sched#". They alone carry the attributes of the index "waiting". So the index holds only items
// that wait, and a document's row never costs an index write. Bodies are in S3.
//
// The index's partition is one of eight numbers per kind, by a hash of the item's id, and its order
// is time. The hour is not part of the partition: a reader need not know which hours exist, and so
// finds every item, however old. Eight partitions take eight thousand new items a second.
package dynamodb
