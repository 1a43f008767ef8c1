// SPDX-License-Identifier: Apache-2.0

// Package objects reads S3 objects that contain many documents, one document per line. The object
// may be compressed with gzip (docs/objects.md, ADR 0053).
//
// What it promises:
//
//   - An object of any size is read in slices. A slice needs a few hundred kilobytes of memory
//     besides one line. A [Progress] of at most 60 KB records where the next slice continues: at
//     the end of a line, or within a line that is too long. It can also continue in the middle of
//     a gzip block, so that nothing is decompressed twice.
//   - Every line is sent, is blank, or is a [Fault] that is counted. A Progress never includes a
//     line that is still to be sent.
//   - A slice ends when [Limits] say so, whatever the object contains: gzip bombs, lines without an
//     end, millions of empty lines or members.
//   - [Decide] returns what to do with a message, by the message and a row. It makes no calls.
package objects
