// SPDX-License-Identifier: Apache-2.0

// Package s3 implements flight.Store with S3, and stores the messages of dead letters and scheduled
// events. All objects are in one bucket:
//
//	flights/<flight>/manifest   the messages of a flight, packed; a lifecycle rule deletes it if lull does not
//	flights/<flight>/next-<n>   the checkpoint of leg n: its creation decides who starts that leg
//	dead/<id>                   the message of a dead letter
//	scheduled/<id>              the message of an event that is not due yet
//	archive/<time>_...          messages that receive has archived, if the settings ask for it (package archive)
//
// What it promises:
//
//   - Only one caller can create a checkpoint, because the request has the header If-None-Match: *.
//   - A message is stored byte for byte. The object is one line with the attributes, followed by
//     the unchanged body.
//   - Each request has a time-out and is made once, because package backoff is the only layer of
//     retries. If a bucket or a permission is missing, the error says what to fix, and the request
//     is not retried.
//
// S3 answers "access denied" for a missing object if the caller may not list the bucket. A role
// that reads flights therefore needs s3:ListBucket for their prefix. Without this permission, a
// finished flight would look like a permission error.
package s3
