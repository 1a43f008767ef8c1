// SPDX-License-Identifier: Apache-2.0

// Package vertex is the sink for Vertex AI Search, whose API is called Discovery Engine.
//
// # What it promises
//
// The sink sends one request for each document: documents.patch with allowMissing, or
// documents.delete. The engine has no versions, so only lull's lease keeps the order of writes.
// Every document gets one outcome. The sink does not send a document again if the outcome is
// unknown.
//
// The sink sends a document as jsonData: the text of the document, digit for digit, with the object
// _lull added. The engine may store numbers differently. If an id is not a valid name by RFC 1034,
// a digest replaces it. The original id is in _lull.
//
// Reasons contain the status of Google's error and the name of a field, never its message, because
// the message quotes content.
package vertex
