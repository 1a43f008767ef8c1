// Package blevesink is a sink with versions on the local disk: a Bleve index in its own folder.
// lull dev writes to it.
//
// # What it promises
//
// Every document is written together with its fence and metadata, in one Bleve batch per Write
// call. Write returns when the batch is on disk. A document that was answered as applied is still
// there after a crash. A batch without an answer is there completely or not at all.
//
// Fences are compared under a lock per document. A delete is written as a tombstone: the fence
// without a document. Tombstones are kept as long as the folder, so that a delete is never
// forgotten (OpenSearch forgets after index.gc_deletes). Each takes about a hundred bytes. To
// remove them, start with a new folder, or resync into one.
//
// Documents are kept as they arrived, on one line, digit for digit. In addition, text is indexed
// for searches: strings, numbers and booleans under the path of their names ("details.body"), in
// English. Words are folded to lower case and to their stems. Some documents fit into Bleve, but no
// search engine should hold them. They are rejected, with a reason that does not quote them: see
// [MaxDocumentBytes].
//
// Most of a document's cost is processor time. For single events through lull dev, about a third is
// for splitting text into words. A fifth is for building segments, and a twelfth for merging them.
// System calls, including syncs, take about a hundredth. So fewer syncs would not make it faster
// while the processors are busy. Every answered batch is on disk.
//
// Bleve analyses in background goroutines that live as long as the process. So an Index cannot be
// used inside testing/synctest.
//
// One process opens a folder at a time. The file lull.json marks a folder as lull's. A folder with
// anything else is not touched.
package blevesink
