// SPDX-License-Identifier: Apache-2.0

// Package sinktest is the conformance suite of package sink. The comments of package sink say what
// a sink must do; sinktest has a test for each of these duties. Every sink of lull passes the
// suite. This is how your own sink runs the suite:
//
//	func TestSink(t *testing.T) {
//		sinktest.Run(t, sinktest.Options{New: open, Capabilities: sink.Capabilities{Versions: true}})
//	}
//
// The capabilities of the sink select the tests. The suite is v0, like package sink: a new version
// of lull may add tests.
package sinktest
