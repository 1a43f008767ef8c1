// Package sinktest is the conformance suite of package sink: for every duty
// that the comments of package sink give to a sink or to its reader, it has a test of that name.
// Every sink of lull passes it. This is how your own sink runs it:
//
//	func TestSink(t *testing.T) {
//		sinktest.Run(t, sinktest.Options{New: open, Capabilities: sink.Capabilities{Versions: true}})
//	}
//
// The capabilities select the tests. The suite is v0, as the seam is: a new version of
// lull may add duties.
package sinktest
