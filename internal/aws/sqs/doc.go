// Package sqs is the SQS half of the seam queue.Queue: it sends to, holds in and deletes from one
// standard queue. Receiving is the event source mapping's work.
//
// What it promises:
//
//   - Calls go out in batches of ten entries and at most 1 MiB, several at a time and bounded.
//   - A failure inside a successful answer belongs to its entry alone.
//   - A handle that names no message in flight any more is queue.ErrGone for Hold and no error for
//     Delete. Three implementations of SQS give three answers to stale and repeated handles; for
//     lull each means done or redelivered.
//   - What was throttled or got no answer is tried again a few times, entry by entry. All three
//     calls bear it: a message sent twice is a duplicate, which the row judges.
package sqs
