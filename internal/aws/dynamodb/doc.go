// Package dynamodb is the DynamoDB half of the seams shard.Store, shard.Scanner, deadletter.Store
// and schedule.Store: one table for everything that lull remembers.
//
// What it promises:
//
//   - A shard.Write is one UpdateItem or one DeleteItem. Its condition and its update come from the
//     write's own Expression and are spelt nowhere else. Both answers carry the row as it was
//     (ALL_OLD), so that a refusal is judged without a second read.
//   - A refused condition is *shard.Refused, and a throttled request shard.ErrThrottled (nothing
//     was applied). A missing table or permission is an error that says what to fix and is not
//     tried again. After any other error the outcome is unknown.
//   - Requests are bounded in time and made once: package backoff is the one layer of retries. Only
//     what BatchGetItem leaves unprocessed is asked for again in here, because no caller could.
//
// Letters and scheduled events are items of the same table whose keys begin with "!dead#" and
// "!sched#". They alone carry the attributes of the index "waiting". So the index holds what waits
// and nothing else, and a document's row never costs an index write. Bodies are in S3.
//
// The index's partition is one of eight numbers per kind, by a hash of the item's id, and its order
// is time. The design proposed the hour as part of the partition; without it a reader need not know
// which hours or days there are. So nothing is ever left out, however long ago it was stored. Eight
// partitions take eight thousand new items a second.
package dynamodb
