// Package opensearch is the sink for OpenSearch 2.x, Amazon OpenSearch Service and, without
// versions, its serverless collections.
//
// # What it promises
//
// Every write is a whole document in a _bulk request, with the row's fence as its external version
// (version_type external_gte): the engine refuses what is older than what it holds, deletes too,
// until it forgets a delete after index.gc_deletes. A serverless collection, or Options.Versions =
// false, gets requests without versions.
//
// Every op gets one outcome, and nothing is repeated whose fate is unknown. The package speaks HTTP
// itself: the official client retries, probes and follows the cluster's nodes, all of which would
// have to be off. A second request carries an op only after a definite refusal of the first. A
// request that was too large (413) or malformed (400) as a whole is cut in halves until the
// document to blame is alone. The number of cuts is bounded.
//
// What each answer becomes, and why, is the table in docs/answers.md, which is also the test.
//
// # Reasons
//
// OpenSearch quotes content in its error texts. A reason holds the type of the error and the name
// of the field, never more.
//
// # Indices
//
// A collection's index is Options.Index with the collection's name in it; the document's id is the
// _id. Beside the document stands the object _lull (see sink.Meta). template.json maps it and keeps
// dynamic mapping from rejecting documents over trifles: dates stay text, numbers are doubles (the
// document keeps its digits), and a number that does not fit is stored without being searchable.
// [Sink.Prepare] installs it; whoever has index templates of their own copies the mapping of
// _lull from there. An index with strict mapping rejects every document without it.
package opensearch
