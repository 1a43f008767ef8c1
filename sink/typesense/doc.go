// SPDX-License-Identifier: Apache-2.0

// Package typesense is the kind of sink for Typesense.
//
// Each collection of lull is a collection of Typesense. Typesense has no versions: the last write
// wins, so only lull's lease keeps the order. Typesense reads numbers as floating point and sorts
// the members of a document. So the field _lull contains the document as it was written, digit for
// digit, with lull's metadata. This field is stored but not indexed. The members of the document
// are stored next to it for readers of search results.
//
// If Typesense guesses the types of a schema from documents, a single document can break the
// schema. For example, a field is a number in one document and a text in the next, or it has no
// name. So lull creates collections in which only the fields of the settings are typed. If the
// settings name no fields, the field _lull_text contains all words of a document.
// docs/sinks/typesense.md is the page for users of this sink.
package typesense
