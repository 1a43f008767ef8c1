// SPDX-License-Identifier: Apache-2.0

// Package opensearch is the sink for OpenSearch 2.x, Amazon OpenSearch Service and, without
// versions, its serverless collections.
//
// # What it promises
//
// Every write sends a whole document in a _bulk request. The fence of the row is the external
// version of the document (version_type external_gte). The engine refuses a put or a delete that is
// older than the engine's version. The engine forgets a delete after the time in index.gc_deletes.
// A serverless collection, or Options.Versions = false, gets requests without versions.
//
// Every op gets one outcome, and lull does not repeat an op whose outcome is unknown. The package
// sends HTTP requests itself. The official client retries, probes and follows the cluster's nodes,
// and all of that would have to be switched off. The sink sends an op again only after a definite
// refusal. The engine may refuse a whole request as too large (413) or malformed (400). The sink
// then halves the request until the document to blame is alone. The number of halvings is bounded.
//
// The table in testdata/answers.md says which outcome each answer becomes, and why. A test
// compares the code with that table.
//
// # Reasons
//
// OpenSearch quotes content of documents in its error texts. So the reason of an outcome contains
// only the type of the error and the name of the field.
//
// # Indices
//
// The name of a collection's index is Options.Index, with the collection's name in place of
// {collection}. The id of the document is the _id. lull adds the object _lull to the document (see
// sink.Meta). template.json contains the mapping of _lull. The template also prevents dynamic
// mapping from rejecting documents for small reasons. Dates stay text. Numbers are doubles, and the
// document keeps its digits. A number that does not fit is stored without being searchable.
// [Sink.Prepare] installs the template. If you have your own index templates, copy the mapping of
// _lull from template.json. An index with strict mapping rejects every document without that
// mapping.
package opensearch
