// SPDX-License-Identifier: Apache-2.0

// Package blevesink is a sink with versions on the local disk: a Bleve index in its own folder.
// `lull dev` can write to this sink.
//
// # What it promises
//
// Every document is written together with its fence and metadata, in one Bleve batch per Write
// call. Write returns when the batch is on disk. A document with the outcome Applied survives a
// crash. A batch without an answer is on disk completely or not at all.
//
// Write compares fences under a lock per document. The package writes a delete as a tombstone: the
// fence without a document. Tombstones are kept as long as the folder, so that a delete is never
// forgotten (OpenSearch forgets a delete after index.gc_deletes). Each tombstone takes about a
// hundred bytes. To remove tombstones, start with a new folder, or resync into a new folder.
//
// Documents are stored as they arrived, on one line, digit for digit. In addition, text is indexed
// for searches: strings, numbers and booleans under the path of their names ("details.body"), in
// English. Words are changed to lower case and to their stems. Some documents would fit into Bleve,
// but are too large or too deep for other search engines. This sink rejects such documents, with a
// reason that does not quote them: see [MaxDocumentBytes].
//
// Most of the cost of a document is processor time. For single events through `lull dev`, splitting
// text into words takes about a third of the processor time. Building segments takes a fifth, and
// merging segments takes a twelfth. System calls, including syncs, take about 1 %. So fewer syncs
// would not make writes faster while the processors are busy.
//
// Bleve analyses text in background goroutines that live as long as the process. So an Index cannot
// be used inside testing/synctest.
//
// Only one process can open a folder at a time. The file lull.json marks a folder as lull's. This
// package never changes a folder with other contents.
package blevesink
