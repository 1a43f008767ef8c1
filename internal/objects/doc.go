// Package objects reads objects of S3 that hold many documents: one on each line, perhaps
// compressed with gzip (docs/objects.md, ADR 0053).
//
// What it promises:
//
//   - An object is read in slices, whatever its size, in a few hundred kilobytes of memory beside
//     one line. A [Progress] of at most 60 KB says where the next slice goes on: at the end of a
//     line, or within one that is too long. It also goes on in the middle of a block of gzip, so
//     that nothing is decompressed twice.
//   - Every line is sent on, is blank, or is a [Fault] that is counted. A Progress says nothing of
//     a line that was not sent.
//   - Whatever an object holds, a slice ends when [Limits] say so: gzip bombs, lines without an
//     end, millions of empty lines or members.
//   - [Decide] makes of a message and a row what is to be done. It calls nothing.
package objects
