// Package sinktest is the conformance suite of package sink: every duty that the seam's comments
// lay on a sink, and on its reader, as a test named after it. Every sink passes it: the one in
// memory, Bleve, OpenSearch.
//
//	func TestSink(t *testing.T) {
//		sinktest.Run(t, sinktest.Options{New: open, Versions: true})
//	}
package sinktest
