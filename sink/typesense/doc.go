// Package typesense is the kind of sink for Typesense.
//
// Each collection of lull's is a collection of Typesense's. Typesense has no versions: whatever
// comes last stays, so lull's lease alone keeps the order. It reads numbers as floating point and
// sorts members. So the field _lull, which is kept and not indexed, holds the document as it was
// written, digit for digit, with lull's mark. The members stand beside it for whoever reads search
// results.
//
// A schema of Typesense's that guesses types from documents breaks by a single one of them: a field
// that is a number today and a text tomorrow, or one without a name. So lull makes collections in
// which only the fields that the settings name are typed. Without any, the field _lull_text holds
// all words of a document. docs/sinks/typesense.md says what its users need to know.
package typesense
