// Package opensearch is the sink for OpenSearch 2.x, Amazon OpenSearch Service and, without
// versions, its serverless collections.
//
// # What it promises
//
// Every write is a whole document in a _bulk request, with the row's fence as its external version
// (version_type external_gte). The engine refuses a put or a delete that is older than its own
// version. It forgets a delete after index.gc_deletes. A serverless collection, or Options.Versions
// = false, gets requests without versions.
//
// Every op gets one outcome, and an op whose outcome is unknown is not repeated. The package speaks
// HTTP itself. The official client retries, probes and follows the cluster's nodes, all of which
// would have to be switched off. A second request carries an op only after a definite refusal of
// the first. If a request is too large (413) or malformed (400) as a whole, it is halved until the
// document to blame is alone. The number of halvings is bounded.
//
// The table in docs/sinks/opensearch.md says what each answer becomes, and why. The table is also
// the test.
//
// # Reasons
//
// OpenSearch quotes content in its error texts. A reason holds the type of the error and the name
// of the field, never more.
//
// # Indices
//
// A collection's index is Options.Index with the collection's name in it; the document's id is the
// _id. lull adds the object _lull to the document (see sink.Meta). template.json maps it, and keeps
// dynamic mapping from rejecting documents for small reasons: dates stay text, numbers are doubles
// (the document keeps its digits), and a number that does not fit is stored without being
// searchable. [Sink.Prepare] installs the template. If you have your own index templates, copy the
// mapping of _lull from it. An index with strict mapping rejects every document without that
// mapping.
package opensearch
