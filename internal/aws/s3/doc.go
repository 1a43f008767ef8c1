// Package s3 is the S3 half of the seam flight.Store, and keeps the messages of dead letters and
// scheduled events. One bucket holds all of it:
//
//	flights/<flight>/manifest   what a flight holds, packed; expires by the bucket's lifecycle if nobody deletes it
//	flights/<flight>/next-<n>   the checkpoint of leg n: its creation decides who starts that leg
//	dead/<id>                   the message of a dead letter
//	scheduled/<id>              the message of an event that is not due yet
//	archive/<time>_...          what receive was given, where the settings ask for it (package archive)
//
// What it promises:
//
//   - A checkpoint is created by one caller: the request carries If-None-Match: *.
//   - A message is kept byte for byte: the object is one line with the attributes, then the
//     unchanged body.
//   - Requests are bounded in time and made once; package backoff is the one layer of retries. A
//     missing bucket or permission is an error that says what to fix and is not tried again.
//
// S3 answers "access denied" for a missing object if the caller may not list the bucket. A role
// that reads flights therefore needs s3:ListBucket for their prefix. Otherwise a finished flight
// looks like a broken one.
package s3
