// SPDX-License-Identifier: Apache-2.0

// Package sqs implements queue.Queue with SQS: it sends, holds and deletes messages of one standard
// queue. Event source mappings receive the messages.
//
// What it promises:
//
//   - Entries are sent in batches of at most ten entries and 1 MiB. A limited number of batches is
//     sent at the same time.
//   - If a successful answer reports a failed entry, only that entry has failed.
//   - If a receipt handle no longer names a message in flight, Hold returns queue.ErrGone, and
//     Delete returns no error. Implementations of SQS answer differently to old and repeated
//     handles. For lull, each of these answers means that the message was deleted or is received
//     again.
//   - An entry that was throttled or got no answer is sent again a few times. All three calls may
//     be repeated: a message that is sent twice is a duplicate, which the row recognises.
package sqs
