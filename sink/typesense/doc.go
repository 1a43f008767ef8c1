// Package typesense is the kind of sink for Typesense.
//
// Each collection of lull is a collection of Typesense. Typesense has no versions: the last write
// wins, so only lull's lease keeps the order. It reads numbers as floating point and sorts members.
// So the field _lull, which is stored but not indexed, holds the document as it was written, digit
// for digit, with lull's mark. The members are stored next to it for readers of search results.
//
// If Typesense guesses the types of a schema from documents, a single document can break it. It is
// enough that a field is a number today and a text tomorrow, or has no name. So lull makes
// collections in which only the fields of the settings are typed. If the settings name none, the
// field _lull_text holds all words of a document. docs/sinks/typesense.md says what its users need
// to know.
package typesense
