// SPDX-License-Identifier: Apache-2.0

// Package verify is the job of `lull index check`. It compares the documents of a collection in its
// sink with their rows and with an export of the source, and repairs the differences. A
// verification without an export compares only the sink and the rows.
//
// The job has up to three phases. First it compares the messages of the export. Then it compares
// the documents of the sink with their rows. At the end it removes the documents that a complete
// export lacks. Documents that are in motion or were sent again are compared again before the next
// phase begins. If there are many of them, this also happens during a phase.
//
// What it promises:
//
//   - A step is bounded, and may be repeated. A repair sends an event of one resync run, or writes
//     RAISE or REASSERT. Each of these has its effect only once.
//   - The cursor is bounded: 4,000 documents that differ, 2,000 messages to compare again, and
//     40 KB of keys. If more documents differ, a document may be counted twice, by the export and
//     by the walk. If more documents are in motion at a time, the job counts the others as in
//     motion and does not compare them again.
//   - A job that continues must read the same export. The digest of the part that was read before
//     proves it.
package verify
