// Package sinktest is the conformance suite of package sink: every duty that the seam's comments
// lay on a sink, and on its reader, as a test named after it. Every sink passes it: the one in
// memory, Bleve, OpenSearch, and one of your own:
//
//	func TestSink(t *testing.T) {
//		sinktest.Run(t, sinktest.Options{New: open, Capabilities: sink.Capabilities{Versions: true}})
//	}
//
// The capabilities select the tests. The suite belongs to the seam: it is v0, and a new version of
// lull may add duties.
package sinktest
