// Package vertex is the sink for Vertex AI Search, whose API is called Discovery Engine.
//
// # What it promises
//
// Each document is one request: documents.patch with allowMissing, or documents.delete. The engine
// has no versions, so lull's lease alone keeps the order of writes. Every document gets one
// outcome, and nothing is sent again whose fate is unknown.
//
// The document goes as jsonData: its text, digit for digit, with the object _lull in it. What the
// engine keeps of numbers is its own. Ids that are not names as RFC 1034 has them are replaced by a
// digest. The id itself stands in _lull.
//
// Reasons hold the status of Google's error and the name of a field, never its message: that quotes
// content.
package vertex
