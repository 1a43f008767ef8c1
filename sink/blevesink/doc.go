// Package blevesink is a sink with versions on the local disk: a Bleve index in a folder of its
// own. lull dev writes to it.
//
// # What it promises
//
// Every document is written together with its fence and metadata in one Bleve batch per Write call.
// Write answers when the batch is on disk. What was answered as applied is still there after a
// crash; a batch that was not answered is there whole or not at all.
//
// Fences are compared under a lock per document. A delete is written as a tombstone: the fence
// without a document. Tombstones stay for as long as the folder does, so that a delete is never
// forgotten (OpenSearch forgets after index.gc_deletes). They cost about a hundred bytes each; a
// new folder, or a resync into one, gets rid of them.
//
// Documents are kept as they came, on one line, digit for digit. Beside that, text is indexed for
// searching: strings, numbers and booleans under the path of their names ("details.body"), in
// English: words are folded to lower case and to their stems. A document that Bleve can hold but no
// search engine should is rejected, with a reason that does not quote it: see [MaxDocumentBytes].
//
// Most of what a document costs is processor time. Of single events through lull dev, about a third
// goes into taking text apart into words. A fifth goes into building segments, and a twelfth into
// merging them. System calls, syncs among them, take about a hundredth. So fewer syncs would not
// make it faster where the processors are busy, and every answered batch is on disk.
//
// Bleve analyses in goroutines of its own that live as long as the process: an Index cannot be used
// inside testing/synctest.
//
// One process opens a folder at a time. The folder is recognised by a file lull.json; one that
// holds anything else is left alone.
package blevesink
