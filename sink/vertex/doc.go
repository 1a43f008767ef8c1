// Package vertex is the sink for Vertex AI Search, whose API is called Discovery Engine.
//
// # What it promises
//
// Each document is one request: documents.patch with allowMissing, or documents.delete. The engine
// has no versions, so lull's lease alone keeps the order of writes. Every document gets one
// outcome, and nothing is sent again whose fate is unknown.
//
// The document is sent as jsonData: its text, digit for digit, with the object _lull in it. The
// engine may store numbers differently. An id that is not a name by RFC 1034 is replaced by a
// digest. The original id is in _lull.
//
// Reasons contain the status of Google's error and the name of a field, never its message, because
// the message quotes content.
package vertex
