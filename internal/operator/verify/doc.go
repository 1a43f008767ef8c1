// Package verify is the job of `lull index check`: it compares a collection in its sink with its
// rows and with an export of the source, and repairs what differs. A verification without an export
// compares sink and rows only.
//
// The job has up to three phases: it compares the messages of the export, then the documents of
// the sink and their rows, and then it removes what a complete export lacks. What is in motion or
// was sent again is compared again before the next phase begins, and also when there is much of
// it.
//
// What it promises:
//
//   - A step is bounded, and may be repeated: a repair is an event of one resync run, RAISE or
//     REASSERT, and each of them has an effect once.
//   - The cursor is bounded: 4,000 documents that differ, 2,000 messages to compare again, and
//     40 KB of keys. If more documents differ, the export and the walk may both count one. If more
//     are in motion at a time, the rest are counted as in motion without a second look.
//   - A job that continues reads the same export: its first bytes are checked by their digest.
package verify
