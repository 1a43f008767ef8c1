// Package sqs is the SQS half of the seam queue.Queue: it sends to, holds in and deletes from one
// standard queue. The event source mapping receives.
//
// What it promises:
//
//   - Calls go out in batches of ten entries and at most 1 MiB, several at a time and bounded.
//   - A failure inside a successful answer affects only its entry.
//   - If a handle no longer names a message in flight, Hold returns queue.ErrGone and Delete no
//     error. Three implementations of SQS give three answers to stale and repeated handles. For
//     lull, each means that the message is deleted or redelivered.
//   - Entries that were throttled or got no answer are tried again a few times. All three calls may
//     be repeated: a message sent twice is a duplicate, which the row recognises.
package sqs
